"""What the commands of searches share: the job here, detached, as JSON, or in conversation."""

from argparse import Namespace
from typing import TYPE_CHECKING

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.log import Log
from layerwise._tool.tui.cli.debug.report import SearchReport, document
from layerwise._tool.tui.cli.debug.to_debug import debug_job, to_debug
from layerwise._tool.tui.cli.progress import run_as_asked
from layerwise._tool.tui.cli.reports import reporter_of

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
    if args.json and interactive and not args.detach:
        raise UsageError("--json is for machines: give --check or two sides, so that no question is asked")
    told = report(log, job.action.removeprefix("debug_"))
    if interactive and not args.detach:
        from layerwise._tool.tui.cli.debug.interactive import converse

        return converse(job, told, log, reporter_of(args))
    return run_as_asked(job, args, log, lambda: told.event, document)
