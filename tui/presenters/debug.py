"""The middle of the Debug screen: the question with what speaks for an answer, the best so far, what was found."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from layerwise._tool.backends.sizes import size_text
from layerwise._tool.backends.text import counted, in_full, shown
from layerwise._tool.debugtools.checks.invariants.spec import RelationRow
from layerwise._tool.debugtools.search.rows import BestRow, CandidateRow, FoundRow, Numbers
from layerwise._tool.tui.presenters.debug_list import field_lines, measured_text
from layerwise._tool.tui.presenters.frontier import frontier_lines
from layerwise._tool.tui.presenters.invariants import axes_lines
from layerwise._tool.tui.presenters.jobs import card_lines
from layerwise._tool.tui.presenters.names import shorten
from layerwise._tool.tui.presenters.text import Glyphs, Line, some, wrap_runs
from layerwise._tool.tui.state.debug_rows import Result
from layerwise._tool.tui.state.debugging import DebugState
from layerwise._tool.tui.state.questions import Question

_STARTS = (
    ("L", "locate", "which nodes are wrong by themselves, from one pass"),
    ("d", "reduce", "the smallest part of the model that still fails"),
    ("b", "bisect", "the first node at which it goes wrong"),
    ("I", "bisect by hand", "you answer good or bad; the artifact lies on disk"),
    ("F", "precision", "which nodes must stay FP32"),
    ("t", "triage", "the accuracy flowchart, step by step, with a report"),
    ("Q", "invariants", "what must hold between runs of this model alone"),
)
_BUILDS = ("V", "builds", "how often a build fails, and by which tactic")
_LONG_WORDS = {"auto": "let the machine finish"}
_FOUND, _POINTS = 8, 20
_CURVE, _LOW_CURVE, _WIDE = 7, 4, 100


def empty_lines(ready: str, cells: int, *, builds: bool = False) -> list[Line]:
    """What can be started; `ready`: on what, or why nothing can. builds: on an engine that is built."""
    lines = [*wrap_runs([("No search yet. ", "strong"), (ready, "")], cells), []]
    starts = (*_STARTS, _BUILDS) if builds else _STARTS
    return [*lines, *([(f"  {key}  ", "key"), (f"{word:<16}", "strong"), (text, "dim")] for key, word, text in starts)]


def body_lines(
    debug: DebugState, question: Question | None, cells: int, glyphs: Glyphs, sizes: Mapping[str, int] | None = None
) -> list[Line]:
    """sizes: path -> bytes of the artifact's files."""
    lines: list[Line] = []
    if question is not None:
        lines += question_lines(question, cells, sizes or {})
    elif debug.live:
        lines += _candidate(debug.candidate, cells) or field_lines("now", debug.text or "starting", cells)
    if debug.best is not None and debug.result is None:
        lines += _best(debug.best, "pass in FP32" if debug.search == "precision" else "still fail", cells)
    if debug.result is not None:
        lines += _result(debug, debug.result, cells, glyphs)
    lines += axes_lines(debug.axes, cells)
    if debug.card is not None:
        lines += card_lines(debug.card, cells, glyphs)
    return [*lines, *_notes(debug, question is not None, cells), *_next(debug)]


def question_lines(question: Question, cells: int, sizes: Mapping[str, int]) -> list[Line]:
    """What is asked, the files to try, what the machine measured, the answers."""
    beside, files = question.beside, question.beside.artifact
    text = question.text.splitlines()[0] if question.text else ""
    for path in files.values():
        text = text.replace(path, Path(path).name)
    lines = wrap_runs([("question  ", "warn"), (shown(text, 400), "strong")], cells, 10)
    lines += _artifact(files, sizes, cells)
    for evidence in beside.evidence:
        lines += field_lines("evidence", evidence, cells)
    lines += _candidate(beside.candidate, cells) + _measured(beside.measured, beside.suggestion, cells)
    answers: Line = [("answers   ", "dim")]
    for key, word in question.choices():
        answers += [(f"{key or ':answer'} ", "key"), (f"{shown(_LONG_WORDS.get(word, word), 30)}   ", "")]
    return [*lines, *wrap_runs(answers, cells, 10)]


def _artifact(files: Mapping[str, str], sizes: Mapping[str, int], cells: int) -> list[Line]:
    if not files:
        return []
    names = (f"{Path(path).name} ({size_text(sizes[path])})" if path in sizes else Path(path).name
             for path in files.values())  # fmt: skip
    folder = str(Path(next(iter(files.values()))).parent)
    return [
        *field_lines("artifact", ", ".join(names), cells),
        *field_lines("in", f"{folder}  (y copies a path)", cells),
    ]


def _measured(measured: Numbers, suggested: str | None, cells: int) -> list[Line]:
    text = measured_text(measured)
    line: Line = [("measured  ", "dim"), (text, ""), ("   ", "")] if text else []
    if suggested:
        line += [("suggests  " if not text else "suggests ", "dim"), (shown(suggested, 20), "strong")]
        line.append((" (the verdict is yours)", "dim"))
    return wrap_runs(line, cells, 10) if line else []


_CANDIDATE_LINES, _NAME = 3, 60


def _candidate(candidate: CandidateRow | None, cells: int) -> list[Line]:
    if candidate is None or candidate == CandidateRow():
        return []
    called = shorten({name: name for name in (*candidate.inputs[:3], *candidate.outputs[:3])}, _NAME)
    for most in (3, 2, 1):
        text = "? nodes" if candidate.nodes is None else counted(candidate.nodes, "node")
        for names, word in ((candidate.inputs, "reads"), (candidate.outputs, "gives")):
            text += f"  {word} {_some(names, called, most)}" if names else ""
        lines = field_lines("candidate", text, cells)
        if len(lines) <= _CANDIDATE_LINES:
            break
    return lines[:_CANDIDATE_LINES]


def _best(best: BestRow, what: str, cells: int) -> list[Line]:
    names = some(map(in_full, best.labels), 4)
    lines = field_lines("best", f"{counted(len(best.nodes or best.labels), 'node')} {what}: {names}", cells)
    return lines + field_lines("on disk", best.path, cells)


def _result(debug: DebugState, result: Result, cells: int, glyphs: Glyphs) -> list[Line]:
    good = result.passed and not (debug.search == "locate" and debug.rows)
    role, glyph = ("good", glyphs.good) if good else ("warn", glyphs.bad)
    plain = debug.search == "lens" and cells < _WIDE and result.adds is not False and not result.needs
    text = result.summary if plain and result.summary else _summary(debug, result)
    lines = wrap_runs([(f"{glyph} ", role), (shown(text, 1000), "strong")], cells, 2)
    for entry in debug.found[:_FOUND]:
        lines += _found(entry, "in FP32" if debug.search == "precision" else "found", cells)
    if debug.search == "lens":
        height = _CURVE if cells >= _WIDE else _LOW_CURVE
        lines += frontier_lines(debug.curve(), debug.here(), cells, height, glyphs)
    for number, point in enumerate(() if debug.search == "lens" else result.frontier[:_POINTS]):
        errors = measured_text(Numbers(max_abs=point.max_abs, rel_l2=point.rel_l2))
        text = f"{point.low:>6} low {point.kept:>6} FP32   {errors}   {point.verdict}"
        lines += field_lines("" if number else "frontier", text, cells)
    files = list(result.files.values())
    names = ", ".join(Path(path).name for path in files)
    return lines + (field_lines("written", f"{names} in {Path(files[0]).parent}", cells) if files else [])


def _summary(debug: DebugState, result: Result) -> str:
    if result.conclusion:
        return result.conclusion
    if debug.search == "locate" and debug.rows:  # of an older version: its own is the first row's
        level, count = result.level, result.n_suspects
        usual = f"; most nodes are off by about {level:.2g}: it computes in lower precision" if level else ""
        return f"{len(debug.rows)} of {len(debug.rows) if count is None else count} suspects, worst first{usual}"
    if debug.search == "triage" and result.suspects:
        first = result.suspects[0]
        return f"{first.diagnosis} at #{first.i} {first.op} {first.node}"
    return result.summary or result.advice or ("done" if result.passed else debug.state)


def _some(names: Sequence[str], called: Mapping[str, str], most: int) -> str:
    return some([called.get(name, name) for name in names], most)


def _found(entry: FoundRow, word: str, cells: int) -> list[Line]:
    nodes = entry.nodes
    names = "; ".join(f"#{node.i} {shown(node.op, 30)} {in_full(node.node)}" for node in nodes[:4])
    more = f" and {len(nodes) - 4} more" if len(nodes) > 4 else ""
    lines = field_lines(word, names + more, cells, "bad")
    for name, text in (("measured", measured_text(entry.measured)), ("note", entry.note), ("model", entry.path)):
        lines += field_lines(name, text, cells)
    return lines


def _notes(debug: DebugState, asks: bool, cells: int) -> list[Line]:
    """Its last warnings, and while it works what it said last."""
    lines: list[Line] = []
    for number, (kind, text) in enumerate(debug.said, 1):
        warns = kind == "warning"
        if warns or (debug.live and not asks and number == len(debug.said)):
            lines += field_lines("note", text, cells, "warn" if warns else "dim")[: None if warns else 3]
    return lines


def _next(debug: DebugState) -> list[Line]:
    """The keys that go on from here."""
    keys: list[tuple[str, str]] = []
    if debug.state in ("cancelled", "lost", "failed", "damaged"):
        keys = [("r", "goes on where it stopped: all answers are kept")]
    elif debug.ended and debug.search == "locate" and debug.rows:
        keys = [("d", "reduces"), ("B", "writes a repro bundle"), ("E", "shows the layer table")]
    elif debug.ended and any(isinstance(row, RelationRow) and row.where for row in debug.rows):
        keys = [("enter", "on a broken relation shows its layer")]
    elif debug.ended and debug.model_path():
        bundle = [] if debug.search == "precision" else [("B", "writes a repro bundle")]
        keys = [("ctrl+o", "opens the model found"), *bundle]
    line: Line = [("next      ", "dim")]
    for key, text in keys:
        line += [(f"{key} ", "key"), (f"{text}   ", "")]
    return [line] if keys else []
