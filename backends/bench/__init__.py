"""Timing: what can be timed, the loop that times it, and trtexec's files."""
