"""`layerwise check compatibility`: which backends take a model, operator by operator."""

from argparse import Namespace
from typing import Any

import msgspec

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.jobs.journal.schema import Event
from layerwise._tool.backends.jobs.workspace.gpus import gpus_for
from layerwise._tool.backends.log import INFO, Log
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.checks.compatibility.spec import BackendRow, CompatibilitySpec, OperatorEntry
from layerwise._tool.debugtools.compare.table.report_lines import name
from layerwise._tool.tui.cli.json_output import Collector
from layerwise._tool.tui.cli.options.common import NEEDED_MODEL, ONNX, RUNNERS
from layerwise._tool.tui.cli.options.option import add
from layerwise._tool.tui.cli.options.report import REPORT
from layerwise._tool.tui.cli.options.run import DATA, ONNXRT
from layerwise._tool.tui.cli.options.trt import TRT
from layerwise._tool.tui.cli.parser import Parser
from layerwise._tool.tui.cli.progress import run_as_asked
from layerwise._tool.tui.cli.request.line import command_line
from layerwise._tool.tui.cli.request.to_spec import given
from layerwise._tool.tui.cli.submit import job_spec, say_message

_HEAD = ("nodes", "operator", "version", "types", "code", "reason")
_WIDEST = (8, 40, 8, 40, 10, 200)
_PRINTED = 60


def fill_compatibility(parser: Parser) -> None:
    parser.usage = "%(prog)s MODEL.onnx --onnxrt [--onnx …] [OPTIONS]"
    parser.epilog = "Exit code: 0 all named backends take the model, 1 one does not, 2 wrong usage, 130 interrupted."
    add(parser, RUNNERS, NEEDED_MODEL)
    group = parser.add_argument_group("Report")
    parser.own(group, "--json", action="store_true", help="print one JSON document instead of the text")
    REPORT.add(parser, group)
    add(parser, DATA, ONNXRT, ONNX, TRT)


def run_compatibility(args: Namespace, log: Log) -> int:
    """Probe the backends; 0 if all of them take the model."""
    if not args.runners:
        raise UsageError("name the backends to ask: --onnxrt, --onnx, --trt, --runner onnxrt,providers=cuda …")
    if args.reference_model or args.rename:
        raise UsageError("one model is asked about: --reference-model and --rename have no meaning here")
    request = given(args, args.runners)
    spec = CompatibilitySpec(
        model=args.model_file,
        model_options=request.model_options,
        runners=request.runners,
        feeds=request.feeds,
    )
    command = ["layerwise", "check", "compatibility", *command_line(request)[2:]]
    job = job_spec("compatibility", msgspec.to_builtins(spec), command, gpus=gpus_for(request.runners))
    return run_as_asked(job, args, log, lambda: CompatibilityReport(log).event, _document)


class CompatibilityReport:
    """Prints a verdict and a table for each backend as it is done."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self._rows: dict[int, list[OperatorEntry]] = {}

    def event(self, event: Event) -> None:
        kind = event.get("type")
        if kind == "row" and event.get("table") == "operators":
            row = msgspec.convert(event["row"], OperatorEntry)
            self._rows.setdefault(row.backend, []).append(row)
        elif kind == "row" and event.get("table") == "backends":
            self._backend(msgspec.convert(event["row"], BackendRow))
        else:
            say_message(event, self.log)

    def _backend(self, backend: BackendRow) -> None:
        rows = self._rows.get(backend.backend, [])
        self.log.verdict(backend.takes, f"{name(backend.name)} {_verdict(backend, rows)}")
        if rows and self.log.shows(INFO):
            for line in table(rows):
                self.log.continued(f"    {line}")


def _verdict(backend: BackendRow, rows: list[OperatorEntry]) -> str:
    reason = shown(backend.reason, 600)
    if not backend.available:
        return f"cannot be asked here: {reason}"
    if not backend.takes:
        return f"does not take the model: {reason}"
    fallen = sum(row.nodes for row in rows if row.code == "elsewhere")
    text = f"takes the model: {backend.nodes} nodes load{' and run' if backend.ran else ', nothing was run'}"
    return f"{text}; {fallen} of its optimised graph fall back to another provider" if fallen else text


def table(rows: list[OperatorEntry]) -> list[str]:
    """The rows as aligned text, operators that are not taken first; of very many only the first."""
    cells = [_HEAD, *(_cells(row) for row in rows[:_PRINTED])]
    widths = [min(most, max(len(row[i]) for row in cells)) for i, most in enumerate(_WIDEST)]
    lines = ["  ".join(shown(cell, width).ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
             for row in cells]  # fmt: skip
    return [*lines, f"… and {len(rows) - _PRINTED} more"] if len(rows) > _PRINTED else lines


def _cells(row: OperatorEntry) -> tuple[str, ...]:
    op = f"{row.domain}.{row.op}" if row.domain else row.op
    types = "?" if row.types is None else ", ".join(row.types)
    reason = f"{shown(row.first, 60)}: {row.reason}" if row.reason else ""
    return str(row.nodes), op, str(row.version or "?"), types, row.code, reason


def _document(collector: Collector, command: str, code: int) -> dict[str, Any]:
    operators = collector.tables.get("operators", [])
    backends = [
        {**backend, "operators": [row for row in operators if row["backend"] == backend["backend"]]}
        for backend in collector.tables.get("backends", [])
    ]
    return {
        "command": command, "exit_code": code, "passed": code == 0, "backends": backends,
        "messages": collector.messages, "error": collector.card,
    }  # fmt: skip
