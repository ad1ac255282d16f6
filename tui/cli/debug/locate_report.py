"""The suspects of a `locate` job as plain text and as one JSON document."""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import UNSET

from layerwise._tool.backends.jobs.journal.schema import Event
from layerwise._tool.backends.log import ERROR, FINISH, INFO, LEVELS, WARNING, Log
from layerwise._tool.backends.shell import shell_line
from layerwise._tool.backends.text import shown, shown_lines
from layerwise._tool.debugtools.compare.table.report_lines import number
from layerwise._tool.debugtools.compare.truth.figures import times
from layerwise._tool.debugtools.locate.rows import Inside, LocateResult, SuspectRow
from layerwise._tool.debugtools.locate.spec import LocateSpec
from layerwise._tool.tui.cli.json_output import Collector
from layerwise._tool.tui.cli.request.line import command_line
from layerwise._tool.tui.cli.run.report_summary import quantised_text, truth_line

_HEAD = ("", "#", "op", "node", "tensor", "local", "accum", "ampl", "diagnosis")
_WIDEST = 40
_CONTROL_FLOW = ("If", "Loop", "Scan")


class LocateReport:
    """Prints the report from the job's events."""

    def __init__(self, log: Log, spec: LocateSpec) -> None:
        self.log, self.spec = log, spec

    def event(self, event: Event) -> None:
        kind = event.get("type")
        if kind in ("log", "warning"):
            level = LEVELS.get(str(event.get("level", kind)).upper(), WARNING if kind == "warning" else INFO)
            self.log.say(level, shown_lines(event.get("text")), source="backend")
        elif kind == "result":
            self._result(msgspec.convert(event["data"], LocateResult))

    def _result(self, result: LocateResult) -> None:
        self.log.say(FINISH if result.passed and not result.suspects else ERROR, _headline(result))
        for line in _table(result.suspects):
            self.log.continued(line)
        if result.truth is not None:
            self.log.say(*truth_line(result.truth))
        if result.quantised is not None:
            self.log.say(FINISH if not result.quantised.wrong else ERROR, quantised_text(result.quantised))
        for line in _next(self.spec, result.suspects):
            self.log.info(line)


def document(collector: Collector, command: str, code: int) -> dict[str, Any]:
    """The one document of `--json`."""
    whole = collector.document(command, code)
    result = whole.pop("result") or {}
    engine = {"engine": collector.tables["engine"]} if collector.tables.get("engine") else {}
    return whole | {key: value for key, value in result.items() if key != "passed"} | engine


def _table(suspects: list[SuspectRow]) -> Iterator[str]:
    if not suspects:
        return
    rows = [_HEAD, *(_cells(rank, suspect) for rank, suspect in enumerate(suspects, 1))]
    if any(suspect.truth is not UNSET for suspect in suspects):
        found = ["" if suspect.truth is UNSET else times(suspect.truth.suspect) for suspect in suspects]
        rows = [(*row[:-1], cell, row[-1]) for row, cell in zip(rows, ["\u00d7", *found], strict=True)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row, suspect in zip(rows, [None, *suspects], strict=True):
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        if suspect and suspect.evidence:
            yield f"    {shown(suspect.evidence, 600)}"
            yield from _inner(suspect, "    ")


def _headline(result: LocateResult) -> str:
    count, told = result.n_suspects, len(result.suspects)
    if not told:
        return f"layerwise debug locate: no suspect among {result.tensors} tensors ({result.seconds:.1f} s)"
    these = f"{count} suspect{'s' * (count != 1)}" + (f", the worst {told}" if told < count else "")
    return f"layerwise debug locate: {these} among {result.tensors} tensors ({result.seconds:.1f} s)"


def _inner(suspect: SuspectRow, indent: str) -> Iterator[str]:
    """What is at fault in the body of a suspect."""
    inside = suspect.inside or Inside()
    if inside.note:
        yield f"{indent}inside: {shown(inside.note, 300)}"
    for inner in inside.suspects:
        place = f"{shown(inside.body, 40)}, trip {inside.trip}"
        node = f"#{inner.i} {shown(inner.op, _WIDEST)} {shown(inner.node, _WIDEST)}"
        yield f"{indent}inside ({place}): {node}   {inner.diagnosis}"
        yield f"{indent}    {shown(inner.evidence, 600)}"
        yield from _inner(inner, indent + "    ")


def _cells(rank: int, suspect: SuspectRow) -> tuple[str, ...]:
    errors = map(number, (suspect.local, suspect.accumulated, suspect.amplification))
    names = (shown(name, _WIDEST) for name in (suspect.op, suspect.node, suspect.tensor))
    return (f"{rank}.", str(suspect.i), *names, *errors, suspect.diagnosis)


def _next(spec: LocateSpec, suspects: list[SuspectRow]) -> Iterator[str]:
    """What to do now: the smallest failing model, the body of the suspect, the app."""
    model = spec.compare.model
    if not suspects or not model:
        return
    sides = command_line(msgspec.structs.replace(spec.compare, observe="auto", statistics=True, truth=False))[2:]
    if spec.compare.runners[0].kind == "torch":
        return
    yield f"next         {_line('debug', 'reduce', *sides, '-o', 'reduced.onnx')}"
    if suspects[0].op in _CONTROL_FLOW and not spec.bodies:
        yield f"             {_line('debug', 'locate', *sides, '--bodies')}"
    yield f"             {_line(model)}"


def _line(*words: str) -> str:
    return shell_line(["layerwise", *words])
