"""`python -m layerwise` is the command `layerwise`."""

from tui.__main__ import run

run()
