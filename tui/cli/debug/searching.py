"""What the commands of searches share: the job here, detached, as JSON, or in conversation."""

from argparse import Namespace
from typing import TYPE_CHECKING

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.log import Log
from layerwise._tool.tui.cli.debug.report import SearchReport, document
from layerwise._tool.tui.cli.debug.to_debug import debug_job, to_debug
from layerwise._tool.tui.cli.json_output import Collector, print_json
from layerwise._tool.tui.cli.submit import run_detached, run_here, run_shown

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.spec import JobSpec


def run_search(what: str, args: Namespace, log: Log) -> int:
    """Run the search that `args` describe; the exit code."""
    spec = to_debug(args, what)
    return run_prepared(debug_job(spec, what, args), spec.interactive, args, log)


def run_prepared(
    job: "JobSpec", interactive: bool, args: Namespace, log: Log, report: type[SearchReport] = SearchReport
) -> int:
    """Run a search's job as `args` want it run and shown; the exit code."""
    if args.detach:
        return run_detached(job, log)
    if args.json and interactive:
        raise UsageError("--json is for machines: give --check or two sides, so that no question is asked")
    if args.json:
        collector = Collector()
        code = run_here(job, collector.event, log)
        print_json(document(collector, args.command, code))
        return code
    told = report(log, job.action.removeprefix("debug_"))
    if interactive:
        from layerwise._tool.tui.cli.debug.interactive import converse

        return converse(job, told, log)
    return run_shown(job, told.event, log)
