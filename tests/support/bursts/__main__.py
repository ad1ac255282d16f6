"""The command: `python -m tests.support.bursts`."""

import argparse
import multiprocessing
import random
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import support.bursts
from support import forkserver
from support.bursts.compare import differences, killed, resumed, typed
from support.bursts.draw import draw
from support.bursts.drive import SIZES
from support.bursts.place import MAKERS, Place, prepare


def main() -> int:
    options = _options()
    forkserver.start_server()
    with tempfile.TemporaryDirectory(prefix="bursts-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        places = [prepare(model, folder / model) for model in options.models]
        numbers = options.only or range(options.seed, options.seed + options.count)
        counts, started = Counter[str](), time.monotonic()
        until = started + options.minutes * 60
        with ProcessPoolExecutor(options.workers, multiprocessing.get_context("fork")) as pool:
            asked = [pool.submit(_try, n, places[n % len(places)], folder, options, until) for n in numbers]
            for number, done in zip(numbers, asked, strict=True):
                for way, told in done.result():
                    counts[way] += 1
                    counts[f"{way}, not the same"] += bool(told)
                    if told:
                        keys = " ".join(map(repr, draw(number)))
                        print(f"#{number} {way}: {keys}\n  " + "\n  ".join(told), flush=True)
        print(f"{time.monotonic() - started:.0f} s: " + ", ".join(f"{way} {n}" for way, n in sorted(counts.items())))
    return 1 if any(n for way, n in counts.items() if way.endswith("not the same")) else 0


def _try(
    number: int, place: Place, folder: Path, options: argparse.Namespace, until: float
) -> list[tuple[str, list[str]]]:
    """What one sequence came to, by the way in which it was typed; nothing once the time is over."""
    keys, size, run = draw(number), random.Random(number).choice(SIZES), folder / f"run{number}"
    if time.monotonic() > until:
        return []
    try:
        if options.kill:
            return [("killed in the middle", killed(place, run, keys, number, size)),
                    ("killed at rest", resumed(place, run, keys, number, size))]  # fmt: skip
        found, slow = [], typed(place, run, keys, slow=True, size=size)
        for delay in options.delays:
            burst = typed(place, run, keys, slow=False, delay=delay / 1000, seed=number, size=size)
            found.append((f"{delay} ms", differences(slow, burst)))
            if options.screens and found[-1][1]:
                print(f"{slow.screen}\n{'=' * 80}\n{burst.screen}", flush=True)
        return found
    except AssertionError as error:
        return [("ended", [f"never at rest: {error}"])]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(support.bursts.__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=1, help="the first sequence")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--minutes", type=float, default=1e9, help="no further sequence after so many")
    parser.add_argument("--only", type=int, nargs="+", metavar="N", help="these sequences alone")
    parser.add_argument("--delays", type=int, nargs="+", default=[0, 100, 300], metavar="MS")
    parser.add_argument("--models", nargs="+", default=[*MAKERS], choices=[*MAKERS])
    parser.add_argument("--kill", action="store_true", help="kill the app in the middle, and open it again")
    parser.add_argument("--workers", type=int, default=1, help="sequences at a time")
    parser.add_argument("--screens", action="store_true", help="print both screens where they are not the same")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
