"""Edits as a job, and their effect on the outputs."""
