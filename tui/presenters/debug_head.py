"""The top of the Debug screen: which search, how far it is, between which sides, and the graph's order as a band."""

from collections.abc import Sequence

from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.search.rows import CandidateRow
from layerwise._tool.tui.presenters.band import band_line, legend, pointer_line
from layerwise._tool.tui.presenters.glyphs import Glyphs
from layerwise._tool.tui.presenters.numbers import clock_text, span_text
from layerwise._tool.tui.presenters.text import Line, clip, fit, width
from layerwise._tool.tui.state.debugging import DebugState

_ROLES = {"failed": "bad", "lost": "bad", "waiting": "warn", "done": "good"}


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
    role = _ROLES.get(debug.state, "")
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
