"""A check that is not to be relied on: two_sides.py, but with chance P what fails passes all the same.

    python flaky_sides.py P COUNTER GOOD.onnx GOLDEN.npz CANDIDATE.onnx

COUNTER: a file that grows by a byte a check; with its length as the seed, the same checks give the same answers.
"""

import sys
from pathlib import Path

import numpy as np
import two_sides  # type: ignore[import-not-found]  # beside this script


def main(chance: str, counter: str, *sides: str) -> int:
    """Compare; return the exit code."""
    with Path(counter).open("ab") as stream:
        stream.write(b".")
        seed = stream.tell()
    code = two_sides.main(*sides)
    return 0 if code == 1 and np.random.default_rng(seed).random() < float(chance) else code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
