"""Every screenful of real models at 80x24: no verdict is cut, and no two different names look equal.

`python tests/support/every_screen.py MODEL[=REFERENCE] …` pages through the Graph of each, and through the Errors of
its comparison with the reference (itself by default); exit code 1 if something was found.
"""

import asyncio
import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / ".editable")]

from support.bench import Bench, compare_spec, text_of  # noqa: E402

from layerwise._tool.tui.presenters.text import plain  # noqa: E402
from layerwise._tool.tui.presenters.verdicts import word_of  # noqa: E402
from layerwise._tool.tui.screens.errors_page import ErrorsScreen  # noqa: E402
from layerwise._tool.tui.screens.graph import GraphScreen  # noqa: E402
from layerwise._tool.tui.widgets.virtual_list import VirtualList  # noqa: E402
from layerwise._tool.tui.workbench import open_workbench  # noqa: E402

SIZE = (80, 24)


async def screenfuls(bench: Bench, rows: VirtualList) -> "list[tuple[int, list[str]]]":
    """First row and lines of each screenful."""
    found = []
    for top in range(0, max(1, len(rows.model)), max(1, rows.rows_shown)):
        rows.move_to(min(top + rows.rows_shown - 1, len(rows.model) - 1))
        rows.move_to(top)
        await bench.pilot.pause(0)
        shown = min(rows.rows_shown, len(rows.model) - rows.top)
        found.append((rows.top, [plain(rows.line(y)) for y in range(shown)]))
    return found


def equal_names(names: list[str], texts: list[str]) -> list[str]:
    """Different names that look the same."""
    by_text: dict[str, set[str]] = {}
    for name, text in zip(names, texts, strict=True):
        by_text.setdefault(text.strip(), set()).add(name)
    return [f"{text!r} is {sorted(both)[:3]}" for text, both in by_text.items() if len(both) > 1]


async def of_graph(bench: Bench) -> tuple[int, list[str]]:
    await bench.app.show_page("graph")
    await bench.pilot.pause()
    view, index = bench.app.query_one(GraphScreen).view, bench.app.state.session.index
    assert index is not None
    pages, found = await screenfuls(bench, view.list), list[str]()
    shape = view.model.columns(view.list.size.width - 2)
    start = shape.number + 1 + 13 + 2 + 2
    for top, lines in pages:
        names = [index.node_name(top + k) for k in range(len(lines))]
        found += equal_names(names, [line[start : start + shape.name] for line in lines])
    return len(pages), found


async def of_errors(bench: Bench) -> tuple[int, list[str]]:
    await bench.app.show_page("errors")
    await bench.pilot.pause()
    screen, errors = bench.app.query_one(ErrorsScreen), bench.app.state.errors
    found = list[str]()
    head = next(line for line in text_of(bench.app).splitlines() if "verdict" in line and "tensor" in line)
    names_end = head.index("max-abs" if "max-abs" in head else "local")
    pages = await screenfuls(bench, screen.table.list)
    for top, lines in pages:
        places = [errors.place(top + y) for y in range(len(lines))]
        for place, line in zip(places, lines, strict=True):
            word = word_of(errors.table, place)[0]
            if not re.search(rf" {re.escape(word)}( |$)", line):
                found.append(f"verdict {word!r} is cut: {line!r}")
        names = [errors.table.tensors[place] for place in places]
        found += equal_names(names, [line[head.index("tensor") : names_end] for line in lines])
    said = text_of(bench.app)
    told = errors.facts.result.conclusion
    if told and " ".join(told.split()[:4]) not in " ".join(said.split()):
        found.append(f"the conclusion is not there: {told!r}")
    return len(pages), found


async def of_model(model: Path, reference: Path, home: Path) -> list[str]:
    app = open_workbench(model, home)
    async with app.run_test(size=SIZE) as pilot:
        bench = Bench(app, pilot)
        await bench.until(lambda: app.state.session.index is not None, 120)
        count, found = await of_graph(bench)
        await bench.compare(compare_spec(model, reference))
        more, others = await of_errors(bench)
        print(
            f"{model.name}: {count} screenfuls of Graph, {more} of Errors, {len(found + others)} findings", flush=True
        )
        return [*found, *others]


def main() -> int:
    bad = 0
    for word in sys.argv[1:]:
        model, _, reference = word.partition("=")
        with tempfile.TemporaryDirectory(prefix="every-screen-", ignore_cleanup_errors=True) as home:
            found = asyncio.run(of_model(Path(model), Path(reference or model), Path(home)))
        print(*(f"  {text}" for text in found[:10]), sep="\n", end="\n" if found else "")
        bad += len(found)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
