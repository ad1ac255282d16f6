"""Only what has changed is sent, and the terminal then shows what it would show if all had been."""

from collections.abc import Sequence
from io import StringIO
from itertools import accumulate

import pyte
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyte.modes import DECAWM
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual.geometry import Region
from textual.strip import Strip

from layerwise._tool.tui.widgets.shown_cells import ShownCells

COLUMNS, ROWS = 24, 3
STYLES = (
    None, Style.parse("#d7d7d7 on #121212"), Style.parse("bold #5fafff on #121212"), Style.parse("#949494 on #000000"),
    Style.parse("reverse"), Style.parse("underline red"), Style.parse("bold"), Style.parse("#010203 on default"),
    Style.parse("strike dim italic bright_blue on color(20)"), Style.parse("#121212 on #121212 overline"),
)  # fmt: skip
narrow = st.text("  ab│…", max_size=9) | st.just(" " * 14)
letters = narrow | st.sampled_from(("漢字", "e\u0301", "👩‍🔬"))
runs = st.tuples(letters, st.sampled_from(STYLES))


def strip(pieces: Sequence[tuple[str, Style | None]], cells: int) -> Strip:
    return Strip([Segment(text, style) for text, style in pieces if text]).adjust_cell_length(cells, STYLES[1])


def layouts(letters: st.SearchStrategy[str]) -> st.SearchStrategy[LayoutUpdate]:
    runs = st.tuples(letters, st.sampled_from(STYLES))
    lines = st.lists(runs, max_size=5).map(lambda pieces: strip(pieces, COLUMNS))
    return st.lists(lines, min_size=ROWS, max_size=ROWS).map(
        lambda strips: LayoutUpdate([[line] for line in strips], Region(0, 0, COLUMNS, ROWS))
    )


@st.composite
def chops(draw: st.DrawFn) -> ChopsUpdate:
    """A few spans of lines that are cut in three, some parts of which are not drawn."""
    widths = draw(st.sampled_from(((8, 8, 8), (1, 20, 3), (10, 4, 10))))
    ends = list(accumulate(widths))
    starts = [0, *ends[:-1]]
    parts: list[dict[int, Strip | None]] = [
        {
            x: strip(draw(st.lists(runs, max_size=3)), width) if draw(st.booleans()) else None
            for x, width in zip(starts, widths, strict=True)
        }
        for _ in range(ROWS)
    ]
    spans = [(y, *sorted(draw(st.tuples(*[st.integers(0, COLUMNS)] * 2)))) for y in range(ROWS)]
    return ChopsUpdate(parts, spans, [ends] * ROWS)  # type: ignore[arg-type]


def console() -> Console:
    return Console(file=StringIO(), color_system="truecolor", force_terminal=True, legacy_windows=False)


def looks(screen: pyte.Screen) -> list[tuple[object, ...]]:
    """All that is seen of a screen: of a blank its background, unless it is underlined, reversed or struck."""
    cells = [screen.buffer[y][x] for y in range(ROWS) for x in range(COLUMNS)]
    return [
        (cell.data, cell.bg)
        if cell.data == " " and not (cell.underscore or cell.reverse or cell.strikethrough)
        else tuple(cell)
        for cell in cells
    ]


WIDE = strip([("👩‍🔬", None), (" " * 14, STYLES[5])], COLUMNS)


@example([LayoutUpdate([[WIDE]] * ROWS, Region(0, 0, COLUMNS, ROWS))], True)
@given(st.lists(layouts(letters) | chops(), min_size=1, max_size=5), st.booleans())
def test_the_terminal_shows_what_it_would_if_all_were_sent(updates: list[CompositorUpdate], erases: bool) -> None:
    whole, changed = pyte.Screen(COLUMNS, ROWS), pyte.Screen(COLUMNS, ROWS)
    for screen in (whole, changed):  # pyte alone begins a line for an accent behind the last column
        screen.reset_mode(DECAWM)
    shown = ShownCells(erases)
    for update in updates:
        pyte.Stream(whole).feed(update.render_segments(console()).replace("\n", ""))
        found = shown.only_changed(update)
        assert isinstance(found, CompositorUpdate)
        pyte.Stream(changed).feed(found.render_segments(console()))
        assert looks(changed) == looks(whole)


@given(layouts(narrow))
def test_what_is_shown_already_is_not_sent_again_unless_it_may_be_gone(update: LayoutUpdate) -> None:
    shown = ShownCells(erases=True)

    def sent() -> str:
        found = shown.only_changed(update)
        assert isinstance(found, CompositorUpdate)
        return found.render_segments(console())

    first = sent()
    assert first and sent() == ""
    shown.forget()
    assert sent() == first


@pytest.mark.parametrize("style", ["#d7d7d7", "#5fafff"])
def test_a_change_in_a_line_costs_the_change(style: str) -> None:
    shown = ShownCells(erases=True)

    def sent(text: str) -> str:
        line = strip([(text, Style.parse(style))], COLUMNS)
        found = shown.only_changed(LayoutUpdate([[line]], Region(0, 0, COLUMNS, 1)))
        assert isinstance(found, CompositorUpdate)
        return found.render_segments(console())

    sent("layer.10/Add")
    assert len(sent("layer.11/Add")) <= len("\x1b[1;8H\x1b[38;5;188m1\x1b[0m")
