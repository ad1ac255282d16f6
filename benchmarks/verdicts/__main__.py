"""How far verdicts are to be trusted: `python -m benchmarks.verdicts WHAT [--models DIR] [--only NAME…] [--seed N]`.

WHAT: masks, clean, ulps, truth, invariants, same. DIR holds further NAME.onnx, with inputs in NAME.npz where they are
not random; NAME_fp16.onnx is the FP16 export of NAME. benchmarks/verdicts/export.py makes nine such networks.
"""

import argparse
import importlib
import sys
from pathlib import Path

from benchmarks.verdicts.pairs import Options

WHAT = ("masks", "clean", "ulps", "truth", "invariants", "same")


def main() -> None:
    """Run one measurement; exit code 1 if it is not as it must be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=WHAT)
    parser.add_argument("--models", type=Path, metavar="DIR", help="a folder with further *.onnx files")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these models")
    parser.add_argument("--kinds", nargs="+", default=[], metavar="KIND", help="these kinds of pairs, faults or leaks")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cuda", action="store_true", help="of clean: pairs on a GPU too; of invariants: there alone")
    parser.add_argument("--old", type=Path, metavar="TREE", help="of same: the tree of another commit")
    given = parser.parse_args()
    options = Options(given.models, tuple(given.only), tuple(given.kinds), given.seed, given.cuda, given.old)
    module = importlib.import_module(f"benchmarks.verdicts.{given.what}")
    sys.exit(0 if module.main(options) else 1)


if __name__ == "__main__":
    main()
