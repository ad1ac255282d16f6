"""Starting up: `--help` and a command's own help, beside real Polygraphy; fresh processes, interpreter start included.

    python -m benchmarks.startup [--repeat 15]

Both tools are run in turn, the first run of each thrown away; the figures are medians in milliseconds.
Polygraphy is the one installed beside this Python.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OURS = [sys.executable, "-m", "layerwise"]
THEIRS = [str(Path(sys.executable).with_name("polygraphy"))]
HELP_BUDGET = 0.12  # seconds, for `layerwise --help`
LINES = (["--help"], ["run", "--help"], ["inspect", "model", "--help"], ["check", "accuracy", "--help"])


def seconds(command: list[str]) -> float:
    """How long a command takes, its output thrown away."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    start = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment, check=True)
    return time.perf_counter() - start


def medians(line: list[str], repeat: int) -> tuple[float, float]:
    """Median seconds of ours and theirs, run in turn."""
    ours, theirs = [], []
    for _ in range(repeat + 1):
        ours.append(seconds([*OURS, *line]))
        theirs.append(seconds([*THEIRS, *line]))
    return statistics.median(ours[1:]), statistics.median(theirs[1:])


def main() -> int:
    """Print the table; exit code 1 if ours is slower or over its budget."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=15)
    repeat = parser.parse_args().repeat
    good = True
    print(f"{'command':<26} {'layerwise':>10} {'Polygraphy':>10}")
    for line in LINES:
        ours, theirs = medians(line, repeat)
        budget = HELP_BUDGET if line == ["--help"] else theirs
        good = good and ours <= min(budget, theirs)
        print(f"{' '.join(line):<26} {ours * 1000:>7.0f} ms {theirs * 1000:>7.0f} ms")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
