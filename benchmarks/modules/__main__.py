"""Measurements on PyTorch modules, and their exports in a folder.

`python -m benchmarks.modules mapped|faults|tree|exports [--only NAME …] [--count N] [--out DIR] [--further]
[--attention]`
"""

import argparse
import importlib
import sys
from pathlib import Path

WHAT = ("mapped", "faults", "tree", "exports")


def main() -> None:
    """Run one measurement; exit code 1 if it is not as it must be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=WHAT)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these models")
    parser.add_argument("--exports", nargs="+", default=["dynamo", "torchscript"], metavar="EXPORTER")
    parser.add_argument("--count", type=int, default=9, help="of faults: for each model and side; 9")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--table", type=Path, help="write a JSON line per row here")
    parser.add_argument("--out", type=Path, default=Path("exports"), help="of exports: the folder")
    parser.add_argument("--further", action="store_true", help="of exports: those beside the twelve")
    parser.add_argument("--attention", action="store_true", help="of exports: attention by torch's function instead")
    given = parser.parse_args()
    module = importlib.import_module(f"benchmarks.modules.{given.what}")
    sys.exit(0 if module.main(given) else 1)


if __name__ == "__main__":
    main()
