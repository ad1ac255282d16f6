"""Which outputs of two sides belong together, under which names, and what has no counterpart."""
