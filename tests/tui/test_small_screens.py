"""What is drawn on screens of all sizes: no verdict is cut, and no two different names look equal."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from rich.style import Style
from support.bench import run_story, text_of
from support.screens import (
    FAMILIES,
    SIZES,
    at_rest,
    errors_are_whole,
    errors_of,
    model_of,
    nodes_are_told_apart,
    reason_is_whole,
)
from textual.pilot import Pilot

from layerwise._tool.tui.workbench import Workbench, open_workbench


async def check_errors(app: Workbench, pilot: Pilot[None]) -> None:
    await app.show_page("errors")
    await at_rest(app, pilot, "verdict")
    for down in ("", "G"):
        await pilot.press(*([down] if down else []))
        await at_rest(app, pilot)
        errors_are_whole(app)
    reason_is_whole(app)


async def check_graph(app: Workbench, pilot: Pilot[None]) -> None:
    await app.show_page("graph")
    await at_rest(app, pilot, "type")
    for down in ("", "G"):
        await pilot.press(*([down] if down else []))
        await at_rest(app, pilot)
        nodes_are_told_apart(app)


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
                await check_graph(app, pilot)
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
