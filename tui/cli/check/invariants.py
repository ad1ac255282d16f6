"""`layerwise check invariants`: which relations a model obeys that need no reference, and where one breaks."""

from argparse import Namespace
from collections.abc import Iterable
from typing import Any

import msgspec

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.jobs.journal.schema import Event
from layerwise._tool.backends.jobs.workspace.gpus import gpus_for
from layerwise._tool.backends.log import ERROR, FINISH, WARNING, Log
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.checks.invariants.sentences import line, place
from layerwise._tool.debugtools.checks.invariants.spec import AxisRow, InvariantsSpec, RelationRow
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec
from layerwise._tool.debugtools.compare.table.report_lines import name, number
from layerwise._tool.tui.cli.json_output import Collector
from layerwise._tool.tui.cli.options.common import NEEDED_MODEL, ONNX, RUNNERS
from layerwise._tool.tui.cli.options.option import add, many_words
from layerwise._tool.tui.cli.options.report import REPORT
from layerwise._tool.tui.cli.options.run import DATA, ONNXRT
from layerwise._tool.tui.cli.options.trt import TRT
from layerwise._tool.tui.cli.parser import Parser
from layerwise._tool.tui.cli.progress import run_as_asked
from layerwise._tool.tui.cli.request.line import command_line
from layerwise._tool.tui.cli.request.to_spec import given
from layerwise._tool.tui.cli.submit import job_spec, say_message

_LEVELS = {"obeyed": FINISH, "broken": ERROR, "not checked": WARNING}


def fill_invariants(parser: Parser) -> None:
    parser.usage = "%(prog)s MODEL.onnx [--onnxrt | --runner SPEC …] [OPTIONS]"
    parser.epilog = (
        "Needs no reference: runs of the model are held against each other.\n"
        "Exit code: 0 no relation is broken, 1 one is, or none could be checked, 2 wrong usage, 130 interrupted."
    )
    add(parser, RUNNERS, NEEDED_MODEL)
    group = parser.add_argument_group("Relations")
    parser.own(
        group, "--batch-axis", nargs="+", action="extend", default=[], metavar="NAME:AXIS",
        help="the axis of an input or output that its rows lie along; NAME:none for one without rows. Without this "
        "option the axes are found from the graph",
    )  # fmt: skip
    group = parser.add_argument_group("Report")
    parser.own(group, "--json", action="store_true", help="print one JSON document instead of the text")
    REPORT.add(parser, group)
    add(parser, DATA, ONNXRT, ONNX, TRT)


def run_invariants(args: Namespace, log: Log) -> int:
    """Check the model; 0 if no relation is broken, 1 if one is or none could be checked."""
    if len(args.runners) > 1 or args.reference_model or args.rename:
        raise UsageError("one runner runs one model here: the model is held against itself")
    request = given(args, args.runners or [("onnxrt", None)])
    spec = InvariantsSpec(
        model=args.model_file,
        model_options=request.model_options,
        runner=request.runners[0],
        feeds=request.feeds,
        batch_axes=parse_axes(args.batch_axis),
    )
    command = invariants_line(spec)
    job = job_spec("invariants", msgspec.to_builtins(spec), command, gpus=gpus_for(request.runners))
    return run_as_asked(job, args, log, lambda: InvariantsReport(log).event, _document)


def invariants_line(spec: InvariantsSpec) -> list[str]:
    """The argv of `layerwise check invariants` that gives `spec` again."""
    request = CompareSpec(
        model=spec.model, model_options=spec.model_options, runners=[spec.runner], feeds=spec.feeds, marks=MarkSpec()
    )
    axes = [f"{name}:{'none' if axis is None else axis}" for name, axis in spec.batch_axes.items()]
    return ["layerwise", "check", "invariants", *command_line(request)[2:], *many_words("--batch-axis", axes)]


def parse_axes(items: Iterable[str]) -> dict[str, int | None]:
    """`name:1` and `name:none` items to name -> axis. UsageError for others."""
    found: dict[str, int | None] = {}
    for item in items:
        tensor, colon, axis = item.rpartition(":")
        if not (colon and tensor and (axis.lower() == "none" or axis.lstrip("-").isdecimal())):
            raise UsageError(f"--batch-axis: '{shown(item, 80)}' is not NAME:AXIS, as in input_ids:0 or scale:none")
        found[tensor] = None if axis.lower() == "none" else int(axis)
    return found


class InvariantsReport:
    """Prints the axes, and a line for each relation as it is found."""

    def __init__(self, log: Log) -> None:
        self.log = log

    def event(self, event: Event) -> None:
        kind, table = event.get("type"), event.get("table")
        if kind == "row" and table == "axes":
            self._axis(msgspec.convert(event["row"], AxisRow))
        elif kind == "row" and table == "relations":
            self._relation(msgspec.convert(event["row"], RelationRow))
        else:
            say_message(event, self.log)

    def _axis(self, row: AxisRow) -> None:
        what = "Output" if row.output else "Input"
        where = "no rows" if row.axis is None else f"rows along axis {row.axis}"
        self.log.info(f"{what}: {name(row.name)} {tuple(row.shape)} | {where} ({shown(row.why, 300)})")

    def _relation(self, row: RelationRow) -> None:
        parts = [f"{row.status.upper()} | {row.relation}: {line(row.relation)}"]
        if row.status != "not checked" and row.output:
            measured = f"relative L2 {number(row.rel)}, rounding explains {number(row.bound)}"
            parts.append(f"output '{name(row.output)}': {measured}")
        if row.where is not None and row.status == "broken":
            parts.append(f"first breaks at {place(row.where)}; alone it differs by {number(row.where.rel)}")
        if row.text:
            parts.append(shown(row.text, 800))
        self.log.say(_LEVELS[row.status], " | ".join(parts))


def _document(collector: Collector, command: str, code: int) -> dict[str, Any]:
    return {
        "command": command, "exit_code": code, "passed": code == 0, "result": collector.result,
        "axes": collector.tables.get("axes", []), "relations": collector.tables.get("relations", []),
        "messages": collector.messages, "error": collector.card,
    }  # fmt: skip
