"""The nodes of a graph in one line, inputs left, outputs right: what a search knows of each."""

from collections.abc import Sequence

from rich.cells import cell_len

from layerwise._tool.tui.presenters.text import Glyphs, Line, fit, merge

_ROLES = {"good": "good", "bad": "bad", "asked": "accent", "skipped": "warn", "unknown": "dim"}
_UNICODE = {"good": "█", "bad": "▒", "asked": "▲", "skipped": "╳", "unknown": "·"}
_ASCII = {"good": "=", "bad": "#", "asked": "^", "skipped": "x", "unknown": "."}
_FIRST = ("asked", "bad", "unknown", "skipped", "good")
"""What a cell shows that stands for several nodes: the first of these among them."""


def band_line(runs: Sequence[tuple[str, int]], cells: int, glyphs: Glyphs) -> Line:
    """One line of `cells` cells for all nodes, inputs left, outputs right; no colour alone carries meaning."""
    total = sum(count for _, count in runs)
    if not total or cells < 3:
        return []
    marks = _ASCII if glyphs.ellipsis == "~" else _UNICODE
    states = cell_states(runs, cells - 2)
    edge = "|" if glyphs.ellipsis == "~" else "│"
    return merge([(edge, "dim"), *((marks[state], _ROLES[state]) for state in states), (edge, "dim")])


def cell_states(runs: Sequence[tuple[str, int]], cells: int) -> list[str]:
    """The state that each of `cells` cells shows."""
    total = sum(count for _, count in runs)
    seen: list[set[str]] = [set() for _ in range(cells)]
    at = 0
    for state, count in runs:
        if count <= 0:
            continue
        first, last = at * cells // total, max(at * cells // total, -(-(at + count) * cells // total) - 1)
        for cell in range(first, min(last, cells - 1) + 1):
            seen[cell].add(state if state in _ROLES else "unknown")
        at += count
    return [next((state for state in _FIRST if state in found), "unknown") for found in seen]


def pointer_line(position: int | None, total: int, cells: int, text: str, ellipsis: str = "…") -> Line:
    """A line that points at a node from below the band, with `text` beside it, cut where neither side has room."""
    if position is None or total <= 0 or cells < 3:
        return [(text, "")]
    cell = 1 + min(cells - 3, position * (cells - 2) // total)
    before, after, needed = cell - 1, cells - cell - 2, cell_len(text)
    if needed <= after or after >= before:
        beside = text if needed <= after else fit(text, after, ellipsis)
        return [(" " * cell + "^ ", "accent"), (beside, "")]
    beside = text if needed <= before else fit(text, before, ellipsis)
    return [(" " * (before - cell_len(beside)) + beside + " ", ""), ("^", "accent")]


def legend(search: str, glyphs: Glyphs) -> Line:
    """What the signs mean in a kind of search."""
    marks = _ASCII if glyphs.ellipsis == "~" else _UNICODE
    words = {"good": "good", "bad": "bad", "unknown": "not known", "skipped": "skipped", "asked": "asked now"}
    words |= {"good": "may be low", "bad": "in FP32"} if search == "precision" else {}
    line: Line = []
    for state, word in words.items():
        line += [(marks[state], _ROLES[state]), (f" {word}  ", "dim")]
    return line
