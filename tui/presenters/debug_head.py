"""The top of the Debug screen: which search, how far it is, between which sides, and the graph's order as a band."""

from collections.abc import Sequence

from rich.cells import cell_len

from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.search.rows import CandidateRow
from layerwise._tool.tui.presenters.glyphs import Glyphs
from layerwise._tool.tui.presenters.numbers import clock_text, span_text
from layerwise._tool.tui.presenters.text import Line, clip, fit, merge, width
from layerwise._tool.tui.state.debugging import DebugState

_STATE_ROLES = {"failed": "bad", "lost": "bad", "waiting": "warn", "done": "good"}


def head_lines(
    debug: DebugState, sides: Sequence[str], cells: int, glyphs: Glyphs, now: float, *, tall: bool = True
) -> list[Line]:
    """now: unix seconds. tall: there is room for what the band's signs mean."""
    name: Line = [(f"{debug.search}  ", "strong"), (f"job {debug.job}   ", "dim"), *_standing(debug, now)]
    lines = [name, _sides(sides, cells, glyphs)]
    if debug.band:
        lines += _band(debug, cells, glyphs)
        lines += [legend(debug.search, glyphs)] if tall else []
    return [clip(line, cells) for line in lines]


def _standing(debug: DebugState, now: float) -> Line:
    role = _STATE_ROLES.get(debug.state, "")
    if debug.state == "waiting":
        since = f", waiting for you since {clock_text(debug.asked_at, now)}" if debug.asked_at else ", waiting for you"
        return [(_question(debug), "strong"), (since, role)]
    if debug.live:
        return [(debug.state, "dim"), (_progress(debug), "")]
    seconds, checks = (debug.result.seconds, debug.result.checks) if debug.result else (None, 0)
    span = f" in {span_text(seconds)}" if seconds is not None else ""
    count = f"   {checks:,} checks" if checks else ""
    return [(debug.state or "opening", role), (span + count, "")]


def _question(debug: DebugState) -> str:
    if debug.search == "triage":
        return f"step {len(debug.rows) + 1}"
    left = max(0.0, debug.total - debug.done)
    return f"question {debug.answered + 1}" + (f" of about {debug.answered + left:.0f}" if left else "")


def _progress(debug: DebugState) -> str:
    if debug.counted or not debug.done:
        return f"   {debug.counted}" if debug.counted else ""
    total = f" of about {max(debug.judged, debug.total):,.0f}" if debug.total else ""
    text = f"   {debug.judged:,}{total} checks"
    left = debug.seconds_left
    return text + (f", about {span_text(left)} left" if left is not None and left >= 1 else "")


def _sides(sides: Sequence[str], cells: int, glyphs: Glyphs) -> Line:
    """`suspect A   reference B`, the longer name cut."""
    if not sides:
        return [("no two sides: ", "dim"), ("a command or you alone judge", "")]
    line: Line = []
    words = ("suspect ", "   reference ")
    left = cells - sum(map(len, words))
    for number, name in enumerate(sides[:2]):
        others = sum(len(other) for other in sides[number + 1 : 2])
        room = max(8, min(len(shown(name)), max(left // 2, left - others) if number == 0 else left))
        line += [(words[number], "dim"), (fit(name, room, glyphs.ellipsis, keep="start"), "strong")]
        left -= width([line[-1]])
    return line


def _band(debug: DebugState, cells: int, glyphs: Glyphs) -> list[Line]:
    total = sum(count for _, count in debug.band)
    at, node = debug.position, debug.candidate or CandidateRow()
    text = _node_text(at, node.op, node.node)
    if at is None and debug.found and debug.found[0].nodes:
        found = debug.found[0].nodes[0]
        at, text = found.i, _node_text(found.i, found.op, found.node)
    text = text if at is not None else ""
    return [band_line(debug.band, cells, glyphs), pointer_line(at, total, cells, text, glyphs.ellipsis)]


def _node_text(i: int | None, op: str | None, name: str | None) -> str:
    return f"#{i} {shown(op or '', 30)} {shown(name or '', 60)}".strip()


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
