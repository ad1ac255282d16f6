"""Verdicts, reasons and names on screens of three sizes, on models of one's own: nothing that matters is cut.

`python -m tests.support.whole_words SUSPECT REFERENCE […]` compares each pair, locates, and pages through
Graph and Errors at 80x24, 120x40 and 200x60; exit code 1 where a verdict or its reason is cut, or two names look equal.
"""

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.bench import Bench, compare_spec, with_bench
from support.screens import SIZES, at_rest, errors_are_whole, nodes_are_told_apart, reason_is_whole


async def _paged(bench: Bench, page: str, seen: str, told: list[str]) -> int:
    """Page through a list from its first row to its last; how many screens that were."""
    app, count, last = bench.app, 0, -1
    await app.show_page(page)
    await at_rest(app, bench.pilot, seen)
    await bench.press("g")
    while app.page.main_list.cursor != last:
        last, count = app.page.main_list.cursor, count + 1
        await at_rest(app, bench.pilot)
        for check in (errors_are_whole, reason_is_whole) if page == "errors" else (nodes_are_told_apart,):
            try:
                check(app)
            except AssertionError as error:
                told.append(f"{app.size.width}x{app.size.height} {page}, row {last}: {str(error)[:400]}")
        await bench.press("pagedown")
    return count


def look(suspect: Path, reference: Path, root: Path) -> tuple[int, list[str]]:
    """How many screens were looked at, and what is cut on them."""
    told: list[str] = []
    screens = 0

    async def story(bench: Bench) -> None:
        nonlocal screens
        await bench.compare(compare_spec(suspect, reference))
        for located in (False, True):
            if located:
                await bench.app.show_page("errors")
                await bench.press("L")
                await bench.see("local errors of job", seconds=300)  # until then verdicts change
            for size in SIZES:
                await bench.pilot.resize_terminal(*size)
                screens += await _paged(bench, "errors", "verdict", told)
                if not located:
                    screens += await _paged(bench, "graph", "type", told)

    with_bench(suspect, story, SIZES[0], root)
    return screens, told


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", type=Path, nargs="+", metavar="SUSPECT REFERENCE")
    models = [path.absolute() for path in parser.parse_args().models]
    bad = 0
    for suspect, reference in zip(models[::2], models[1::2], strict=True):
        with tempfile.TemporaryDirectory(prefix="words-", ignore_cleanup_errors=True) as folder:
            screens, told = look(suspect, reference, Path(folder))
        bad += len(told)
        print(f"{suspect.name}: {screens} screens, {len(told)} with something cut", *told, sep="\n  ", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
