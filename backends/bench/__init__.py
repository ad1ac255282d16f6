"""Benchmarks: what can be timed, the timing loop, and trtexec's files."""
