"""What is drawn on screens of all sizes: no verdict is cut, and no two different names look equal."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from rich.style import Style
from support.bench import run_story, text_of
from support.screens import FAMILIES, SIZES, at_rest, errors_of, model_of
from textual.pilot import Pilot

from layerwise._tool.tui.presenters.text import plain
from layerwise._tool.tui.presenters.verdicts import MEANINGS, word_of
from layerwise._tool.tui.screens.errors_page import ErrorsScreen
from layerwise._tool.tui.screens.graph import GraphScreen
from layerwise._tool.tui.widgets.virtual_list import VirtualList
from layerwise._tool.tui.workbench import Workbench, open_workbench


def lines_of(shown: VirtualList) -> list[str]:
    """The rows on screen."""
    return [plain(shown.line(y)) for y in range(min(shown.rows_shown, len(shown.model) - shown.top))]


def told_apart(names: list[str], texts: list[str]) -> None:
    assert len({text.strip() for text in texts}) == len(set(names))


async def check_errors(app: Workbench, pilot: Pilot[None]) -> None:
    await app.show_page("errors")
    await at_rest(app, pilot, "verdict")
    table, screen = app.state.errors.table, app.query_one(ErrorsScreen)
    for down in ("", "G"):
        await pilot.press(*([down] if down else []))
        await at_rest(app, pilot)
        listed = screen.table.list
        drawn = text_of(app).splitlines()
        at = next(y for y, line in enumerate(drawn) if "verdict" in line and "tensor" in line) + 1
        visible = [app.state.errors.place(listed.top + y) for y in range(len(lines_of(listed)))]
        column = (
            drawn[at - 1].index("tensor"),
            drawn[at - 1].index("max-abs" if "max-abs" in drawn[at - 1] else "local"),
        )
        for y, place in enumerate(visible):
            word = word_of(table, place)[0]
            assert re.search(rf" {re.escape(word)}[ │|]", f"{drawn[at + y]} "), drawn[at + y]
        names = [table.tensors[place] for place in visible]
        told_apart(names, [line[slice(*column)] for line in lines_of(listed)])
    word = word_of(table, screen.table.place)[0]
    told = f"{word}: {MEANINGS[word]}"
    assert len(told) < 78 and told[: 78 if app.size.width < 200 else 40] in text_of(app)


async def check_graph(app: Workbench, pilot: Pilot[None], names: list[str]) -> None:
    await app.show_page("graph")
    await at_rest(app, pilot, "type")
    view = app.query_one(GraphScreen).view
    for down in ("", "G"):
        await pilot.press(*([down] if down else []))
        await at_rest(app, pilot)
        lines = lines_of(view.list)
        shape = view.model.columns(view.list.size.width - 2)
        start = shape.number + 1 + 13 + 2 + 2
        told_apart(
            names[view.list.top : view.list.top + len(lines)], [line[start : start + shape.name] for line in lines]
        )


@pytest.mark.parametrize(
    ("family", "environment", "sizes"),
    [
        ("modules", "", SIZES),
        ("fx", "NO_COLOR", SIZES[:1]),
        ("numbers", "LAYERWISE_ASCII", SIZES[:2]),
        ("scopes", "", SIZES[:1]),
        ("hostile", "LAYERWISE_ASCII", SIZES[:1]),
    ],
)
def test_nothing_that_matters_is_cut(
    family: str, environment: str, sizes: Sequence[tuple[int, int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = FAMILIES[family]
    model = model_of(names, tmp_path / "m.onnx")
    if environment:
        monkeypatch.setenv(environment, "1")

    async def story() -> None:
        app = open_workbench(model, tmp_path / "home")
        async with app.run_test(size=SIZES[0]) as pilot:
            while app.state.session.index is None:
                await pilot.pause(0.02)
            for size in sizes:
                await pilot.resize_terminal(*size)
                for located in (False, True)[size != SIZES[0] :]:
                    await errors_of(app, pilot, names, located)
                    await check_errors(app, pilot)
                await check_graph(app, pilot, names)
                ours = text_of(app).replace("\n", "")
                assert environment != "LAYERWISE_ASCII" or ours.isascii()
            if environment == "NO_COLOR":
                strips = app.screen._compositor.render_strips()
                styles = [segment.style or Style() for strip in strips for segment in strip]
                colours = {
                    color.name for style in styles for color in (style.color, style.bgcolor) if color is not None
                }
                assert colours <= {"default"} and any(style.bold for style in styles)

    run_story(story())
