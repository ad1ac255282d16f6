"""Measurements on the fault corpus: `python -m benchmarks.faults WHAT [--seed 0] [--count N] [--models DIR]`."""

import importlib
import sys

from benchmarks.faults.tables import parse

WHAT = {
    "locate": ("locating", 25),
    "aligned": ("aligned", 2),
    "quantised": ("quantised", 4),
    "reduce": ("reducing", 25),
    "multi": ("several", 10),
    "canary": ("canaries", 4),
    "polygraphy": ("beside", 3),
    "inputs": ("hidden", 4),
    "flaky": ("unsteady", 1),
}


def main() -> None:
    """Run one measurement; exit code 1 if it is not as it must be."""
    name, *rest = sys.argv[1:] or [""]
    if name not in WHAT:
        sys.exit(f"{__doc__}\nWHAT: {', '.join(WHAT)}")
    module_name, count = WHAT[name]
    module = importlib.import_module(f"benchmarks.faults.{module_name}")
    sys.exit(0 if module.main(parse(rest, module.__doc__ or "", count)) else 1)


if __name__ == "__main__":
    main()
