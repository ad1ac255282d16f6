"""`layerwise bench`: from options to a job and its report."""

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from layerwise._tool.backends.jobs.workspace.gpus import gpus_for
from layerwise._tool.backends.log import Log, put
from layerwise._tool.tui.cli import values
from layerwise._tool.tui.cli.bench.line import command_line, nsys_line
from layerwise._tool.tui.cli.bench.options import fill
from layerwise._tool.tui.cli.bench.report import BenchReport
from layerwise._tool.tui.cli.bench.to_spec import Request, model_of, to_bench
from layerwise._tool.tui.cli.json_output import Collector, print_json
from layerwise._tool.tui.cli.parser import Parser
from layerwise._tool.tui.cli.submit import job_spec, run_detached, run_here, run_shown

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.spec import JobSpec


def fill_bench(parser: Parser) -> None:
    fill(parser)


def run_bench(args: Namespace, log: Log) -> int:
    """Time the model; the exit code."""
    model = Path(model_of(args))
    if model.suffix.lower() == ".json":
        from layerwise._tool.tui.cli.bench.saved import show_saved

        against = Path(args.against) if args.against else None
        return show_saved(model, against, log, args.top, args.command, args.json)
    request = to_bench(args)
    for note in request.notes:
        log.warning(note)
    if args.nsys is not None:
        put(nsys_line(request.spec, args.nsys))
        return 0
    job = bench_job(request, args)
    if args.detach:
        return run_detached(job, log)
    return _json(job, args, log) if args.json else _report(job, args, log)


def bench_job(request: Request, args: Namespace) -> "JobSpec":
    """The job of a bench, with the job options among `args`."""
    command = command_line(request.spec)
    timeout = values.parse_duration(args.timeout) if args.timeout else None
    gpus = gpus_for(request.compare.runners, args.gpus)
    params = msgspec.to_builtins(request.spec)
    return job_spec("bench", params, command, timeout, gpus)


def _report(job: "JobSpec", args: Namespace, log: Log) -> int:
    report = BenchReport(log, args.top)
    return run_shown(job, report.event, log)


def _json(job: "JobSpec", args: Namespace, log: Log) -> int:
    collector = Collector()
    code = run_here(job, collector.event, log)
    result = collector.result or {}
    print_json({
        "command": args.command, "exit_code": code, "passed": code == 0, **result,
        "layers": collector.tables.get("profile", []), "messages": collector.messages, "error": collector.card,
    })  # fmt: skip
    return code
