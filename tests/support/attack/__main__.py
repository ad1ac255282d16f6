"""The command: `python -m tests.support.attack`."""

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import support.attack
from support import forkserver
from support.attack import processes
from support.attack.plan import SHARES
from support.attack.report import Report
from support.attack.run import Attacker


def main() -> int:
    options = _options()
    file = Path(options.out).open("a") if options.out else None  # noqa: SIM115 (it lives as long as the process)
    with tempfile.TemporaryDirectory(prefix="attack-", ignore_cleanup_errors=True) as folder:
        signal.signal(signal.SIGTERM, lambda *_: _leave(Path(folder)))
        signal.signal(signal.SIGINT, lambda *_: _leave(Path(folder)))
        forkserver.start_server()
        started, report = time.monotonic(), Report(file)
        attacker = Attacker(Path(folder), options.seed, options.only)
        if options.attempt:
            for number in options.attempt:
                made = attacker.make(number)
                print("; ".join(made.story), made.last and made.last.said, sep="\n")
                report.add(made)
        else:
            attacker.run(options.minutes, options.count, options.together, report.add)
        print(f"seed {options.seed}, {time.monotonic() - started:.0f} s\n{report.table()}")
    return 1 if report.findings else 0


def _leave(folder: Path) -> None:
    """End what was started, and this process, whatever its threads are at."""
    processes.end(processes.below(folder))
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(130)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(support.attack.__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--count", type=int, help="so many attempts at most")
    parser.add_argument("--only", type=_kinds, default=set(), metavar="KIND,…", help=", ".join(SHARES))
    parser.add_argument("--attempt", type=int, nargs="+", metavar="N", help="these attempts alone, with what was said")
    parser.add_argument("--together", type=int, default=4, help="attempts at the same time")
    parser.add_argument("--out", metavar="FILE", help="a JSON line for each attempt that found something")
    return parser.parse_args()


def _kinds(text: str) -> set[str]:
    kinds = set(text.split(","))
    if kinds - SHARES.keys():
        raise argparse.ArgumentTypeError(f"the kinds are {', '.join(SHARES)}")
    return kinds


if __name__ == "__main__":
    sys.exit(main())
