"""`layerwise run`: from options to a comparison job and its report."""

from argparse import Namespace
from typing import TYPE_CHECKING

import msgspec

from layerwise._tool.backends.jobs.journal.schema import Event
from layerwise._tool.backends.jobs.workspace.gpus import gpus_for
from layerwise._tool.backends.log import Log, put
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.tui.cli import values
from layerwise._tool.tui.cli.parser import Parser
from layerwise._tool.tui.cli.progress import progress
from layerwise._tool.tui.cli.request.line import command_line
from layerwise._tool.tui.cli.request.parser import fill
from layerwise._tool.tui.cli.request.to_spec import to_request
from layerwise._tool.tui.cli.submit import job_spec, run_detached, run_here

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.spec import JobSpec
    from layerwise._tool.tui.cli.run.report import CompareReport


def fill_run(parser: Parser) -> None:
    fill(parser)


def run_run(args: Namespace, log: Log) -> int:
    """Run the comparison that `args` describes; the exit code."""
    request = to_request(args, converts=True)
    for note in request.notes:
        log.warning(note)
    if args.gen_script:
        return _write_script(request.spec, args.gen_script)
    job = run_job(request.spec, args)
    if args.detach:
        return run_detached(job, log)
    return _run_json(job, args, log) if args.json else run_report(request.spec, job, log)


def run_report(spec: CompareSpec, job: "JobSpec", log: Log) -> int:
    """Run the job here and print its report; the exit code."""
    report: CompareReport | None = None
    with progress(log) as show:

        def listen(event: Event) -> None:
            nonlocal report
            if report is None:  # imported while the worker starts
                from layerwise._tool.tui.cli.run.report import CompareReport

                report = CompareReport(log, spec)
            show(event)
            report.event(event)

        return run_here(job, listen, log)


def _run_json(job: "JobSpec", args: Namespace, log: Log) -> int:
    from layerwise._tool.tui.cli.json_output import Collector, print_json

    collector = Collector()
    code = run_here(job, collector.event, log)
    print_json(collector.document(args.command, code))
    return code


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
    command = command_line(spec) + (["--timeout", args.timeout] if args.timeout else [])
    return job_spec("compare", msgspec.to_builtins(spec), command, timeout, gpus)
