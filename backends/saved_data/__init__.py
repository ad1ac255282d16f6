"""Saved inputs and results looked at and put together: `inspect data`, `data concat`, `data merge`."""
