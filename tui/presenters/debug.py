"""A search as styled text: what it is, the band, the candidate, what was answered, what was found."""

from collections.abc import Mapping
from typing import Any

from backends.text import shown
from tui.presenters.band import band_line, legend, pointer_line
from tui.presenters.debug_rows import measured_text
from tui.presenters.glyphs import Glyphs
from tui.presenters.jobs import card_lines
from tui.presenters.numbers import span_text
from tui.presenters.text import Line, wrap_runs
from tui.state.debugging import DebugState
from tui.state.questions import Question

Row = Mapping[str, Any]
_STARTS = (
    ("L", "locate", "which node is wrong by itself: one pass, a table of suspects"),
    ("d", "reduce", "the smallest part of the model that still fails"),
    ("b", "bisect", "the first node at which it goes wrong"),
    ("i", "bisect by hand", "you answer good or bad; the artifact lies on disk"),
    ("p", "precision", "which nodes must stay FP32"),
    ("t", "triage", "the accuracy flowchart, step by step, with a report"),
)


def empty_lines(ready: str) -> list[Line]:
    """What can be started; `ready`: on what, or why nothing can."""
    lines: list[Line] = [[("No search yet. ", "strong"), (ready, "")], []]
    return [*lines, *([(f"  {key}  ", "key"), (f"{word:<16}", "strong"), (text, "dim")] for key, word, text in _STARTS)]


def head_lines(debug: DebugState, sides: str, cells: int, glyphs: Glyphs) -> list[Line]:
    """Search, sides, how far it is; below it the band and where it asks."""
    line: Line = [(f"{debug.search}  ", "strong"), (f"{sides}  ", ""), *_state(debug)]
    lines = [line]
    if debug.band:
        total = sum(count for _, count in debug.band)
        lines += [band_line(debug.band, cells, glyphs), pointer_line(debug.position, total, cells, _where(debug))]
        lines.append(legend(glyphs))
    return lines


def _state(debug: DebugState) -> Line:
    role = {"failed": "bad", "lost": "bad", "waiting": "warn", "done": "good"}.get(debug.state, "dim")
    line: Line = [(f"job {debug.job} {debug.state}", role)]
    if debug.live and debug.total:
        line.append((f"  {debug.done:g} of about {debug.total:g}", ""))
    elif debug.live and debug.done:
        line.append((f"  {debug.done:g}", ""))
    if debug.result is not None and debug.result.get("seconds") is not None:
        line.append((f"  {span_text(float(debug.result['seconds']))}", "dim"))
    return line


def _where(debug: DebugState) -> str:
    candidate = debug.candidate
    node = shown(str(candidate.get("node") or candidate.get("key") or ""), 60)
    return (
        f"#{debug.position} {shown(str(candidate.get('op', '')), 30)} {node}".strip()
        if debug.position is not None
        else ""
    )


def body_lines(debug: DebugState, question: Question | None, cells: int, glyphs: Glyphs) -> list[Line]:
    """The question with what speaks for an answer, the best so far, the result or the crash."""
    lines: list[Line] = []
    if question is not None:
        lines += _question(question, cells)
    elif debug.live:
        lines += wrap_runs([("now       ", "dim"), (shown(debug.text or "starting", 300), "")], cells, 10)
        lines += _candidate(debug.candidate, cells)
    if debug.best is not None and debug.result is None:
        lines += _best(debug.best, cells)
    if debug.result is not None:
        lines += _result(debug, cells, glyphs)
    if debug.card is not None:
        lines += card_lines(dict(debug.card), cells, glyphs)
    return lines


def _question(question: Question, cells: int) -> list[Line]:
    text = question.text.splitlines()[0] if question.text else ""
    lines = wrap_runs([("question  ", "warn"), (shown(text, 400), "strong")], cells, 10)
    for name, path in (question.more.get("artifact") or {}).items():
        lines += wrap_runs([(f"{shown(str(name), 8):<10}", "dim"), (shown(str(path), 400), "")], cells, 10)
    for text in question.more.get("evidence") or []:
        lines += wrap_runs([("evidence  ", "dim"), (shown(str(text), 400), "")], cells, 10)
    lines += _candidate(question.more.get("candidate") or {}, cells)
    measured, suggested = question.more.get("measured"), question.more.get("suggestion")
    if measured:
        lines += wrap_runs([("measured  ", "dim"), (measured_text(measured), "")], cells, 10)
    if suggested:
        lines.append([("suggests  ", "dim"), (shown(str(suggested), 20), "strong"), (" (the verdict is yours)", "dim")])
    answers: Line = [("answers   ", "dim")]
    for key, word in question.choices():
        answers += [(f"{key or ':answer'} ", "key"), (f"{shown(word, 30)}   ", "")]
    return [*lines, answers]


def _candidate(candidate: Row, cells: int) -> list[Line]:
    if not candidate:
        return []
    text = f"{candidate.get('nodes', '?')} nodes"
    for key, word in (("inputs", "reads"), ("outputs", "gives")):
        names = candidate.get(key)
        if isinstance(names, list) and names:
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            text += f"  {word} {', '.join(shown(str(name), 60) for name in names[:3])}{more}"
    return wrap_runs([("candidate ", "dim"), (text, "")], cells, 10)[:3]


def _best(best: Row, cells: int) -> list[Line]:
    labels = best.get("labels") or []
    names = ", ".join(shown(str(name), 60) for name in labels[:4]) + (" …" if len(labels) > 4 else "")
    lines = wrap_runs(
        [("best      ", "dim"), (f"{len(best.get('nodes') or labels)} nodes still fail: {names}", "")], cells, 10
    )
    if best.get("path"):
        lines += wrap_runs([("on disk   ", "dim"), (shown(str(best["path"]), 400), "")], cells, 10)
    return lines


def _result(debug: DebugState, cells: int, glyphs: Glyphs) -> list[Line]:
    result = debug.result or {}
    good = bool(result.get("passed"))
    role, glyph = ("good", glyphs.good) if good else ("warn", glyphs.bad)
    text = shown(str(result.get("summary") or result.get("advice") or debug.state), 600)
    lines = wrap_runs([(f"{glyph} ", role), (text, "strong")], cells, 2)
    for entry in debug.found[:8]:
        nodes = entry.get("nodes") or []
        names = "; ".join(
            f"#{n.get('i')} {shown(str(n.get('op')), 30)} {shown(str(n.get('node')), 80)}" for n in nodes[:4]
        )
        more = f" and {len(nodes) - 4} more" if len(nodes) > 4 else ""
        lines += wrap_runs([("found     ", "dim"), (names + more, "bad")], cells, 10)
        if entry.get("path"):
            lines += wrap_runs([("          ", ""), (shown(str(entry["path"]), 400), "dim")], cells, 10)
    for name, path in (result.get("files") or {}).items():
        lines += wrap_runs([(f"{shown(str(name), 8):<10}", "dim"), (shown(str(path), 400), "")], cells, 10)
    return lines
