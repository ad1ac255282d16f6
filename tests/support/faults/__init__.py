"""Models with planted faults whose truth is known; `python -m benchmarks.faults` measures on them."""
