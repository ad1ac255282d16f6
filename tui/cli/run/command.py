"""`layerwise run`: from options to a comparison job and its report."""

from argparse import Namespace
from typing import TYPE_CHECKING

import msgspec

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.jobs.workspace.gpus import gpus_for
from layerwise._tool.backends.log import VERBOSE, Log, put
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.tui.cli import values
from layerwise._tool.tui.cli.extensions.found import add_extensions, extended
from layerwise._tool.tui.cli.json_output import Collector, print_json
from layerwise._tool.tui.cli.parser import Parser
from layerwise._tool.tui.cli.progress import run_as_asked
from layerwise._tool.tui.cli.request.line import command_line
from layerwise._tool.tui.cli.request.parser import fill
from layerwise._tool.tui.cli.request.to_spec import to_request
from layerwise._tool.tui.cli.submit import Listener, job_spec, job_words

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.spec import JobSpec


def fill_run(parser: Parser) -> None:
    parser.halves = True
    fill(parser)
    add_extensions(parser)


def run_run(args: Namespace, log: Log) -> int:
    """Run the comparison that `args` describes; the exit code."""
    for note in args.extensions.notes if getattr(args, "extensions", None) else ():
        log.warning(note)
    request = to_request(extended(args), bare=True)
    for note in request.notes:
        log.warning(note)
    if args.gen_script:
        return _write_script(request.spec, args.gen_script)
    if not request.spec.runners:
        if args.report_files:
            raise UsageError("--report: nothing is judged without a runner, such as --onnxrt")
        if args.json and getattr(args, "take_job", None) is None:
            print_json(Collector().document(args.command, 0))
        return 0
    spec = msgspec.structs.replace(
        request.spec, figures=not args.json, all_figures=not args.json and log.shows(VERBOSE, "comparator")
    )
    marked = spec.marks.everything or spec.marks.names or spec.marks.op_types
    if marked and spec.observe == "auto" and any(runner.kind == "extension" for runner in spec.runners):
        spec = msgspec.structs.replace(spec, observe="marked")  # it loads the model itself: no parts of it can be run
    return run_as_asked(run_job(spec, args), args, log, lambda: _report(spec, log))


def _report(spec: CompareSpec, log: Log) -> Listener:
    from layerwise._tool.tui.cli.run.report import CompareReport

    return CompareReport(log, spec).event


def _write_script(spec: CompareSpec, path: str) -> int:
    from layerwise._tool.tui.cli.script.generate import script, write_script

    if path == "-":
        put(script(spec))
    else:
        write_script(script(spec), path)
    return 0


def run_job(spec: CompareSpec, args: Namespace) -> "JobSpec":
    """The job of a comparison, with the job options of `run`."""
    timeout = values.parse_duration(args.timeout) if args.timeout else None
    gpus = gpus_for(spec.runners, args.gpus)
    return job_spec("compare", msgspec.to_builtins(spec), command_line(spec) + job_words(args), timeout, gpus)
