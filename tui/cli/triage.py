"""`layerwise triage`: the debug-accuracy flowchart, each step measured, with a report and a repro bundle at its end."""

from argparse import Namespace
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import convert

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.filesystem.places import current_folder
from layerwise._tool.backends.jobs.journal.schema import Event
from layerwise._tool.backends.log import ERROR, FINISH, Log
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.triage.flow import STEPS, check_answers
from layerwise._tool.debugtools.triage.rows import StepRow, TriageResult
from layerwise._tool.debugtools.triage.spec import TriageSpec
from layerwise._tool.tui.cli import values
from layerwise._tool.tui.cli.json_output import Collector
from layerwise._tool.tui.cli.options.common import MODEL, ONNX, RUNNERS
from layerwise._tool.tui.cli.options.compare import COMPARE, THRESHOLDS
from layerwise._tool.tui.cli.options.option import add
from layerwise._tool.tui.cli.options.run import DATA, INFERENCE, JOB, ONNXRT
from layerwise._tool.tui.cli.options.torch import TORCH
from layerwise._tool.tui.cli.options.trt import TRT
from layerwise._tool.tui.cli.parser import Parser
from layerwise._tool.tui.cli.progress import run_as_asked
from layerwise._tool.tui.cli.reports import reporter_of
from layerwise._tool.tui.cli.request.line import command_line
from layerwise._tool.tui.cli.request.to_spec import to_request
from layerwise._tool.tui.cli.submit import exit_code, job_spec, job_words, say_message, submit

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.spec import JobSpec


def fill_triage(parser: Parser) -> None:
    parser.usage = "%(prog)s MODEL RUNNERS… [--reference-model GOOD.onnx | --load-outputs golden.json] [OPTIONS]"
    parser.epilog = (
        "example: layerwise triage NEW.onnx --onnxrt --reference-model GOOD.onnx -o triage --answer inputs=no\n"
        f"steps:   {', '.join(STEPS)}\n"
        "Exit code: 0 a failing case was written down, or nothing differs, 1 the way ended before that, 2 wrong\n"
        "usage, 130 interrupted."
    )
    group = parser.add_argument_group("Triage")
    parser.own(group, "-o", "--output", metavar="DIR", help="where report.txt, .json, .html and the bundle go")
    parser.own(
        group, "--answer", action="append", default=[], metavar="STEP=ANSWER", help="take this answer, do not measure"
    )
    parser.own(group, "--ask", action="store_true", help="put each answer to me before going on")
    parser.own(group, "--tries", type=int, default=3, metavar="N", help="runs and seeds to try; 3")
    add(parser, RUNNERS, MODEL, DATA, INFERENCE, COMPARE, THRESHOLDS, ONNXRT, TORCH, ONNX, JOB, TRT)


def run_triage(args: Namespace, log: Log) -> int:
    """Walk the flowchart; the exit code."""
    job = triage_job(to_triage(args), args)
    if args.ask and not args.detach:
        return _attended(job, args, log)
    return run_as_asked(job, args, log, lambda: TriageReport(log).event, _document)


def _document(collector: Collector, command: str, code: int) -> dict[str, Any]:
    return collector.document(command, code) | {"steps": collector.tables.get("steps", [])}


def _attended(job: "JobSpec", args: Namespace, log: Log) -> int:
    """Run it detached and follow it, questions answered here; whoever leaves comes back with `attach`."""
    from layerwise._tool.backends.jobs.workspace.store import Workspace
    from layerwise._tool.tui.cli.jobs.attach import follow_job

    number = submit(job)
    follow_job(number, log)
    reporter, code = reporter_of(args), exit_code(Workspace().view(number))
    return reporter.folder(number, code) if reporter else code


def to_triage(args: Namespace) -> TriageSpec:
    """The TriageSpec of parsed options. UsageError for what does not fit together."""
    if args.tries < 2:
        raise UsageError("--tries must be 2 or more")
    answers = dict(_answer(text) for text in args.answer)
    check_answers(answers)
    request = to_request(args)
    output = str(current_folder() / args.output) if args.output else None
    return TriageSpec(compare=request.spec, answers=answers, ask=args.ask, tries=args.tries, output=output)


def _answer(text: str) -> tuple[str, str]:
    step, equals, answer = text.partition("=")
    if not equals:
        raise UsageError(f"--answer {shown(text, 60)}: write STEP=ANSWER, such as inputs=no")
    return step.strip(), answer.strip()


def triage_line(spec: TriageSpec) -> list[str]:
    """The argv of `layerwise triage` that gives `spec` again."""
    own = [word for step, answer in spec.answers.items() for word in ("--answer", f"{step}={answer}")]
    own += ["--ask"] if spec.ask else []
    own += ["--tries", str(spec.tries)] if spec.tries != 3 else []
    own += ["-o", spec.output] if spec.output else []
    return ["layerwise", "triage", *command_line(spec.compare)[2:], *own]


def triage_job(spec: TriageSpec, args: Namespace) -> "JobSpec":
    """The job. It runs nothing itself, so it takes no slot and no GPU: its steps' jobs do."""
    from msgspec.structs import replace

    timeout = values.parse_duration(args.timeout) if args.timeout else None
    job = job_spec("triage", msgspec.to_builtins(spec), triage_line(spec) + job_words(args), timeout)
    return replace(job, cpus=0)


class TriageReport:
    """Prints each step as it is answered, and what came of it all."""

    def __init__(self, log: Log) -> None:
        self.log = log

    def event(self, event: Event) -> None:
        kind = event.get("type")
        if kind == "row" and event.get("table") == "steps":
            self._step(convert(event["row"], StepRow))
        elif kind == "result":
            self._result(convert(event["data"], TriageResult))
        else:
            say_message(event, self.log, "tools")

    def _step(self, row: StepRow) -> None:
        who = " (you)" if row.by == "user" else ""
        self.log.info(f"    {row.answer}{who}  ({row.seconds:.1f} s)")
        for line in row.evidence:
            self.log.continued(f"    {shown(line, 400)}")
        if row.advice:
            self.log.continued(f"    → {row.advice}")

    def _result(self, result: TriageResult) -> None:
        for suspect in result.suspects[:3]:
            where = f"#{suspect.i} {shown(suspect.op, 60)} {shown(suspect.node, 120)}"
            self.log.say(ERROR, f"suspect: {where}: {suspect.diagnosis}")
        for kind, path in result.files.items():
            self.log.say(FINISH, f"{kind:<7} {shown(path, 1000)}")
