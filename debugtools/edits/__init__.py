"""Edits as a job, and what they do to the outputs."""
