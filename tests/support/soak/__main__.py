"""The command: `python -m tests.support.soak`."""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import support.soak
from support.soak.plan import plans
from support.soak.run import comparison, soak

ROOT = Path(__file__).resolve().parents[3]


def main() -> int:
    parser = argparse.ArgumentParser(description=(support.soak.__doc__ or "").splitlines()[0])
    parser.add_argument("--comparisons", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--together", type=int, default=2, help="comparisons at the same time")
    parser.add_argument("--output", type=Path, help="also write the report to this file")
    options = parser.parse_args()
    lines: list[str] = []

    def say(text: str) -> None:
        print(text, flush=True)
        lines.append(text)

    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(LAYERWISE_HOME=f"{folder}/home", LAYERWISE_LEASES=f"{folder}/leases", PYTHONPATH=str(ROOT))
        say(f"soak: {options.comparisons} comparisons, seed {options.seed}, {options.together} at a time")
        start = time.monotonic()
        wrong = soak(comparison(Path(folder, "demo")), plans(options.comparisons, options.seed), options.together, say)
        say(f"{time.monotonic() - start:.0f} s; wrong: {len(wrong)}")
        for text in wrong:
            say(f"WRONG {text}")
    if options.output is not None:
        options.output.write_text("\n".join(lines) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
