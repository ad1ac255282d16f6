"""Inspecting and combining saved inputs and results: `inspect data`, `data concat`, `data merge`."""
