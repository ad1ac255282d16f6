"""Options of `run` and its relatives as requests, and requests as command lines."""
