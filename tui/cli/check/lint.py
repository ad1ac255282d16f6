"""`layerwise check lint`: is a model sound, and which of its nodes are at fault?"""

import json
from argparse import Namespace
from pathlib import Path
from typing import Any

import msgspec

from layerwise._tool.backends.jobs.journal.schema import Event
from layerwise._tool.backends.jobs.workspace.gpus import gpus_for
from layerwise._tool.backends.log import ERROR, INFO, LEVELS, WARNING, Log
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.checks.lint.report import Entry, LintResult
from layerwise._tool.debugtools.checks.lint.spec import LintSpec
from layerwise._tool.debugtools.compare.table.report_lines import name
from layerwise._tool.tui.cli.json_output import Collector
from layerwise._tool.tui.cli.options.common import NEEDED_MODEL, ONNX
from layerwise._tool.tui.cli.options.option import add
from layerwise._tool.tui.cli.options.report import REPORT
from layerwise._tool.tui.cli.options.run import DATA, ONNXRT
from layerwise._tool.tui.cli.parser import Parser
from layerwise._tool.tui.cli.progress import run_as_asked
from layerwise._tool.tui.cli.request.line import command_line
from layerwise._tool.tui.cli.request.to_spec import given
from layerwise._tool.tui.cli.submit import job_spec, say_message

_LEVELS = {"exception": ERROR, "warning": WARNING, "info": INFO}
_PRINTED = 100


def fill_lint(parser: Parser) -> None:
    parser.usage = "%(prog)s MODEL.onnx [OPTIONS]"
    parser.epilog = (
        "Nodes behind a failing one are neither passing nor failing.\n"
        "Exit code: 0 no exception was found, 1 some were, 2 wrong usage, 130 interrupted."
    )
    add(parser, NEEDED_MODEL)
    group = parser.add_argument_group("Report")
    group.add_argument("-o", "--output", metavar="PATH", help="save the report as JSON, in Polygraphy's form")
    parser.own(group, "--json", action="store_true", help="print one JSON document instead of the text")
    REPORT.add(parser, group)
    add(parser, DATA, ONNXRT, ONNX)


def run_lint(args: Namespace, log: Log) -> int:
    """Lint the model; 0 if nothing is wrong with it, 1 if something is."""
    request = given(args, [("onnxrt", None)])
    spec = LintSpec(
        model=args.model_file,
        model_options=request.model_options,
        runner=request.runners[0],
        feeds=request.feeds,
        output=args.output,
    )
    command = ["layerwise", "check", "lint", *(word for word in command_line(request)[2:] if word != "--onnxrt")]
    job = job_spec("lint", msgspec.to_builtins(spec), command, gpus=gpus_for(request.runners))
    return run_as_asked(job, args, log, lambda: LintReport(log, args.output).event, _document)


class LintReport:
    """Prints findings as they come, of very many only the first, and what they come to."""

    def __init__(self, log: Log, output: str | None = None) -> None:
        """output: where the report is saved, if anywhere."""
        self.log, self.output = log, output
        self._printed = 0

    def event(self, event: Event) -> None:
        kind = event.get("type")
        if kind == "row":
            self._entry(msgspec.convert(event["row"], Entry))
        elif kind == "result":
            self._result(msgspec.convert(event["data"], LintResult))
        else:
            say_message(event, self.log)

    def _entry(self, row: Entry) -> None:
        self._printed += 1
        if self._printed > _PRINTED and not self.log.shows(LEVELS["VERBOSE"]):
            return
        scope = f"Name: {name(row.nodes[0])}, Op: {name(row.op)} | " if row.nodes and row.op else ""
        self.log.say(_LEVELS[row.level], f"LINT | {scope}{shown(row.message, 1000)}")

    def _result(self, result: LintResult) -> None:
        if self._printed > _PRINTED and not self.log.shows(LEVELS["VERBOSE"]):
            self.log.warning(f"LINT | … and {self._printed - _PRINTED} more findings: all of them with -v or -o FILE")
        if self.output:
            self.log.info(f"Saving linting report to {shown(self.output)}")
        text = f"{result.passing} nodes pass, {result.failing} fail"
        if result.unjudged:
            why = " (they depend on what fails)" if result.failing else ""
            text += f", {result.unjudged} were not reached{why}"
        self.log.verdict(result.passed, text)


def _document(collector: Collector, command: str, code: int) -> dict[str, Any]:
    result = collector.result or {}
    report = json.loads(Path(result["report"]).read_bytes()) if result else {}
    messages, error = collector.messages, collector.card
    head = {"command": command, "exit_code": code, "passed": code == 0}
    return {**head, **report, "result": result or None, "messages": messages, "error": error}
