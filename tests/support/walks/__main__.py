"""The command: `python -m tests.support.walks`."""

import argparse
import os
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")

import support.walks
from support import forkserver
from support.walks.places import MAKERS, prepare
from support.walks.walk import walk


def main() -> int:
    options = _options()
    if options.jobs:
        forkserver.start_server()
    with tempfile.TemporaryDirectory(prefix="walks-", ignore_cleanup_errors=True) as name:
        folder, started, counts = Path(name), time.monotonic(), Counter[str]()
        places = [prepare(model, folder / model, jobs=options.jobs) for model in options.models]
        for number in options.only or range(options.seed, options.seed + options.count):
            if time.monotonic() - started > options.minutes * 60:
                break
            counts["walks"] += 1
            try:
                place = places[number % len(places)]
                done = walk(place, folder / f"run{number}", number, options.steps, jobs=options.jobs)
                counts["steps"] += len(done)
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):
                    raise
                counts["bad"] += 1
                print(f"#{number}\n{_told(error, options.trace)}", flush=True)
            shutil.rmtree(folder / f"run{number}", ignore_errors=True)
        print(f"{time.monotonic() - started:.0f} s: {dict(counts)}")
    return 1 if counts["bad"] else 0


def _told(error: BaseException, lines: int) -> str:
    """The last lines of a traceback, and what was done."""
    frames = traceback.extract_tb(error.__traceback__)[-lines:]
    return "".join([*traceback.format_list(frames), *traceback.format_exception_only(error)])


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(support.walks.__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=1, help="the first walk")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--minutes", type=float, default=1e9, help="no further walk after so many")
    parser.add_argument("--only", type=int, nargs="+", metavar="N", help="these walks alone")
    parser.add_argument("--models", nargs="+", default=[*MAKERS], choices=[*MAKERS])
    parser.add_argument("--trace", type=int, default=6, help="lines of a traceback")
    parser.add_argument("--jobs", action="store_true", help="workspaces with jobs, and commands that start some")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
