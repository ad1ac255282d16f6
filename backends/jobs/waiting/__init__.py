"""Sleeping until a file changes, a process ends or a signal comes."""
