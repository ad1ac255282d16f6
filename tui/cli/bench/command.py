"""`layerwise bench`: from options to a job and its report."""

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from layerwise._tool.backends.jobs.workspace.gpus import gpus_for
from layerwise._tool.backends.log import Log, put
from layerwise._tool.tui.cli import values
from layerwise._tool.tui.cli.bench.line import command_line, nsys_line
from layerwise._tool.tui.cli.bench.options import fill
from layerwise._tool.tui.cli.bench.report import BenchReport
from layerwise._tool.tui.cli.bench.to_spec import BenchRequest, model_of, to_bench
from layerwise._tool.tui.cli.json_output import Collector
from layerwise._tool.tui.cli.parser import Parser
from layerwise._tool.tui.cli.progress import run_as_asked
from layerwise._tool.tui.cli.reports import reporter_of
from layerwise._tool.tui.cli.submit import job_spec, job_words

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
        return show_saved(model, against, log, args.top, args.command, args.json, reporter_of(args))
    request = to_bench(args)
    for note in request.notes:
        log.warning(note)
    if args.nsys is not None:
        put(nsys_line(request.spec, args.nsys))
        return 0
    return run_as_asked(bench_job(request, args), args, log, lambda: BenchReport(log, args.top).event, _document)


def bench_job(request: BenchRequest, args: Namespace) -> "JobSpec":
    """The job of a bench, with the job options among `args`."""
    timeout = values.parse_duration(args.timeout) if args.timeout else None
    gpus = gpus_for(request.compare.runners, args.gpus)
    params = msgspec.to_builtins(request.spec)
    return job_spec("bench", params, command_line(request.spec) + job_words(args), timeout, gpus)


def _document(collector: Collector, command: str, code: int) -> dict[str, Any]:
    return {
        "command": command, "exit_code": code, "passed": code == 0, **(collector.result or {}),
        "layers": collector.tables.get("profile", []), "messages": collector.messages, "error": collector.card,
    }  # fmt: skip
