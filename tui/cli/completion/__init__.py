"""Completion of the command line in shells, and the manual page: made from what the commands declare."""
