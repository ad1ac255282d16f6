"""Searches for the culprit: what they ask, who judges, and how they run as jobs."""
