"""`python -m layerwise` is the command `layerwise`."""

from layerwise._tool.tui.__main__ import run

run()
