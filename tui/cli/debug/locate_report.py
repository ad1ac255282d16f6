"""The suspects of a `locate` job as plain text and as one JSON document."""

import shlex
from collections.abc import Iterator
from typing import Any

from backends.text import shown
from debugtools.locate.spec import LocateSpec
from tui.cli.json_output import Collector
from tui.cli.line import command_line
from tui.cli.log import ERROR, FINISH, INFO, LEVELS, WARNING, Log, shown_lines
from tui.cli.report_lines import name, number

Row = dict[str, Any]
_HEAD = ("", "#", "op", "node", "tensor", "local", "accum", "ampl", "diagnosis")
_WIDEST = 40


class LocateReport:
    """Prints the report from the job's events."""

    def __init__(self, log: Log, spec: LocateSpec, job: object = None) -> None:
        self.log, self.spec, self.job = log, spec, job

    def event(self, event: dict[str, Any]) -> None:
        kind = event.get("type")
        if kind in ("log", "warning"):
            level = LEVELS.get(str(event.get("level", kind)).upper(), WARNING if kind == "warning" else INFO)
            self.log.say(level, shown_lines(event.get("text")), source="backend")
        elif kind == "result":
            self._result(event["data"])

    def _result(self, result: Row) -> None:
        suspects = result.get("suspects") or []
        level = ERROR if suspects else FINISH
        self.log.say(level, shown(str(result.get("summary", "")), 600))
        for line in _table(suspects):
            self.log.continued(line)
        for line in _next(self.spec, suspects):
            self.log.info(line)


def document(collector: Collector, command: str, code: int) -> Row:
    """The one document of `--json`."""
    whole = collector.document(command, code)
    result = whole.pop("result") or {}
    return whole | {key: value for key, value in result.items() if key != "passed"}


def _table(suspects: list[Row]) -> Iterator[str]:
    if not suspects:
        return
    rows = [_HEAD, *(_cells(rank, suspect) for rank, suspect in enumerate(suspects, 1))]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    for row, suspect in zip(rows, [None, *suspects], strict=True):
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        if suspect and suspect.get("evidence"):
            yield f"    {shown(str(suspect['evidence']), 600)}"


def _cells(rank: int, suspect: Row) -> tuple[str, ...]:
    errors = (number(suspect[key]) for key in ("local", "accumulated", "amplification"))
    names = (shown(str(suspect[key]), _WIDEST) for key in ("op", "node", "tensor"))
    return (f"{rank}.", str(suspect["i"]), *names, *errors, str(suspect["diagnosis"]))


def _next(spec: LocateSpec, suspects: list[Row]) -> Iterator[str]:
    model = spec.compare.model
    if not suspects or not model:
        return
    reduce = ["layerwise", "debug", "reduce", *command_line(spec.compare)[2:], "-o", "reduced.onnx"]
    yield f"next         {shown(shlex.join(reduce), 2000)}"
    yield f"             {shown(shlex.join(['layerwise', model]), 2000)}   (the app; {name(suspects[0]['node'])})"
