"""Benchmarks beside the real Polygraphy, and the models they run."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))  # for support
