"""Screens as they are: their text in three sizes, and in every look the same text, readable.

`SCREENS=write pytest tests/tui/test_snapshots.py` writes the texts anew; look at the difference before it is committed.
"""

import asyncio
import os
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from rich.color import ColorSystem, ColorTriplet
from rich.segment import Segment
from rich.style import Style
from support.forked_jobs import forked_jobs
from support.screens import FAMILIES, SIZES, at_rest, errors_of, model_of
from textual.pilot import Pilot

from layerwise._tool.tui.presenters.text import in_ascii
from layerwise._tool.tui.themes import PALETTES
from layerwise._tool.tui.workbench import Workbench, open_workbench

FOLDER = Path(__file__).parent.parent / "data" / "screens"
PAGES = {"graph": "type", "errors": "verdict", "debug": "No search yet", "surgery": "as the file"}
LEAST_CONTRAST = 2.9


def segments_of(app: Workbench) -> list[list[Segment]]:
    return [list(strip) for strip in app.screen._compositor.render_strips()]


def plain(lines: list[list[Segment]]) -> str:
    text = "\n".join("".join(segment.text for segment in line).rstrip() for line in lines) + "\n"
    return re.sub(r" +\d+ jobs?( +\d+%)?\n", "\n", text, count=1)  # the model is still indexed, or is no longer


def luminance(colour: ColorTriplet) -> float:
    parts = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in colour.normalized]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def readable(text: str, style: Style) -> None:
    """Text stands out from what is behind it, in all colours and in sixteen."""
    if not text.strip() or style.color is None or style.bgcolor is None:
        return
    front, behind = (luminance(colour.get_truecolor()) for colour in (style.color, style.bgcolor))
    assert (max(front, behind) + 0.05) / (min(front, behind) + 0.05) >= LEAST_CONTRAST, (text, style)
    in_sixteen = [colour.downgrade(ColorSystem.STANDARD) for colour in (style.color, style.bgcolor)]
    assert in_sixteen[0].number != in_sixteen[1].number, (text, style, in_sixteen)


async def visited(app: Workbench, pilot: Pilot[None], size: tuple[int, int], names: list[str]) -> str:
    """The text of all pages in a size, each under its name."""
    await pilot.resize_terminal(*size)
    await errors_of(app, pilot, names, located=False)
    told = ""
    for page, seen in PAGES.items():
        await app.show_page(page)
        await at_rest(app, pilot, seen)
        told += f"===== {page} =====\n{plain(segments_of(app))}"
    return told


def walked(tmp_path: Path, story: Callable[[Workbench, Pilot[None], list[str]], Awaitable[None]]) -> None:
    names = FAMILIES["modules"]
    model = model_of(names, tmp_path / "m.onnx")

    async def run() -> None:
        app = open_workbench(model, tmp_path / "home")
        async with app.run_test(size=SIZES[0]) as pilot:
            while app.state.session.index is None:
                await pilot.pause(0.02)
            await story(app, pilot, names)

    with forked_jobs():
        asyncio.run(run())


def stored(size: tuple[int, int], text: str = "") -> str:
    path = FOLDER / f"{size[0]}x{size[1]}.txt"
    if os.environ.get("SCREENS") == "write" and text:
        FOLDER.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return path.read_text(encoding="utf-8")


def test_screens_are_what_they_were_and_readable_in_every_theme(tmp_path: Path) -> None:
    async def story(app: Workbench, pilot: Pilot[None], names: list[str]) -> None:
        for size in SIZES:
            text = await visited(app, pilot, size, names)
            assert text == stored(size, text)
        for theme in PALETTES:
            app.theme = theme
            await app.show_page("errors")
            await at_rest(app, pilot, "verdict")
            for line in segments_of(app):
                for segment in line:
                    readable(segment.text, segment.style or Style())

    walked(tmp_path, story)


@pytest.mark.parametrize("look", ["NO_COLOR", "LAYERWISE_ASCII", "LAYERWISE_SLOW_LINE"])
def test_other_looks_have_the_same_text(look: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(look, "1")

    async def story(app: Workbench, pilot: Pilot[None], names: list[str]) -> None:
        text = await visited(app, pilot, SIZES[0], names)
        if look == "LAYERWISE_ASCII":
            assert text.isascii() and bars(text) == bars(in_ascii(stored(SIZES[0])))
        else:
            assert text == stored(SIZES[0])
            styles = [segment.style or Style() for line in segments_of(app) for segment in line]
            colours = {colour.type.name for style in styles for colour in (style.color, style.bgcolor) if colour}
            assert colours <= {"DEFAULT", *(["STANDARD"] if look == "LAYERWISE_SLOW_LINE" else [])}

    walked(tmp_path, story)


def bars(text: str) -> str:
    """Without the signs of which the ASCII ones are drawn in another way: bars, rulings, arrows."""
    return "".join(sign if sign.isalnum() or sign in "\n/." else " " for sign in text)
