"""`layerwise attach [ID]`: the view of a job from its start, whoever runs it, and the place to answer what it asks."""

from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.jobs.folder import job_id, raw_spec
from layerwise._tool.backends.log import INFO, WARNING, Log
from layerwise._tool.backends.text import shown_lines
from layerwise._tool.tui.cli.follow import EventFollower, messages, run_interruptibly
from layerwise._tool.tui.cli.json_output import Collector, print_json
from layerwise._tool.tui.cli.options.report import REPORT
from layerwise._tool.tui.cli.parser import Parser
from layerwise._tool.tui.cli.progress import progress
from layerwise._tool.tui.cli.reports import reporter_of
from layerwise._tool.tui.cli.submit import Listener, card_text, concluding, exit_code

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.journal.view import JobView
    from layerwise._tool.backends.jobs.spec import JobSpec


def fill_attach(parser: Parser) -> None:
    parser.add_argument("job", nargs="?", help="number of the job; the newest if none is given")
    parser.add_argument("--json", action="store_true", help="wait for its end and print one JSON document")
    REPORT.add(parser, parser)
    parser.add_argument(
        "--screen", action="store_true", help="watch the app in another terminal: its screen, nothing can be typed"
    )


def run_attach(args: Namespace, log: Log) -> int:
    """Print what the job has said and says until it ends; its exit code. Interrupting leaves the job running."""
    from layerwise._tool.backends.jobs.workspace.store import Workspace

    workspace = Workspace()
    if args.screen:
        return _watched(args, workspace.root, log)
    job = _chosen(args.job, workspace.ids())
    workspace.folder(job)
    collector = Collector()
    try:
        if args.json:
            run_interruptibly(EventFollower(job, collector.event).run())
        else:
            follow_job(job, log)
    except KeyboardInterrupt:
        log.say(WARNING, f"Job {job} goes on. Come back with: layerwise attach {job}")
        return 130
    view = workspace.view(job)
    if args.json:
        print_json(collector.document(args.command, exit_code(view)))
    elif view.card:
        log.fatal(card_text(view.card, job))
    else:
        damage = f" ({view.damage})" if view.damage else ""
        log.verdict(exit_code(view) == 0, f"Job {job}: {view.outcome}{damage}")
    reporter, code = reporter_of(args), exit_code(view)
    return reporter.folder(job, code) if reporter else code


def _watched(args: Namespace, root: Path, log: Log) -> int:
    from layerwise._tool.tui.cli.jobs.screen import watch_screen

    if args.job is not None or args.json:
        raise UsageError("--screen shows the app's screen, and takes neither a job nor --json")
    watch_screen(root)
    log.say(INFO, "the app's screen is no longer watched")
    return 0


def follow_job(job: int, log: Log) -> None:
    """Report on a job from its start to its end, with live progress and its questions asked on a terminal."""
    from layerwise._tool.backends.jobs.workspace.store import Workspace
    from layerwise._tool.tui.cli.asking import Asker
    from layerwise._tool.tui.cli.debug.interactive import VerdictAsker

    view = Workspace().view(job)
    action = str(raw_spec(view.folder).get("action"))
    report = concluding(_report(view, log), log, action)
    searching = action.startswith("debug_")
    with progress(log) as show:
        asker = VerdictAsker(log, show) if searching else Asker(log, show)
        run_interruptibly(EventFollower(job, report, show, asker).run())


def _report(view: "JobView", log: Log) -> Listener:
    """The report of a job's action, or its plain messages."""
    try:
        spec = view.spec
        return REPORTS.get(spec.action, _messages)(spec, view.id, log)
    except (LayerwiseError, msgspec.ValidationError) as error:
        log.warning(shown_lines(error))
        return messages(log)


def _messages(spec: "JobSpec", job: int, log: Log) -> Listener:
    return messages(log)


def _comparison(spec: "JobSpec", job: int, log: Log) -> Listener:
    from layerwise._tool.debugtools.compare.spec import CompareSpec
    from layerwise._tool.tui.cli.run.report import CompareReport

    return CompareReport(log, msgspec.convert(spec.params, CompareSpec), job).event


def _search(spec: "JobSpec", job: int, log: Log) -> Listener:
    from layerwise._tool.tui.cli.debug.report import SearchReport

    return SearchReport(log, spec.action.removeprefix("debug_")).event


def _precision(spec: "JobSpec", job: int, log: Log) -> Listener:
    from layerwise._tool.tui.cli.debug.precision_report import PrecisionReport

    return PrecisionReport(log, "precision").event


def _lens(spec: "JobSpec", job: int, log: Log) -> Listener:
    from layerwise._tool.tui.cli.debug.lens_report import LensReport

    return LensReport(log).event


def _locating(spec: "JobSpec", job: int, log: Log) -> Listener:
    from layerwise._tool.debugtools.locate.spec import LocateSpec
    from layerwise._tool.tui.cli.debug.locate_report import LocateReport

    return LocateReport(log, msgspec.convert(spec.params, LocateSpec)).event


def _bench(spec: "JobSpec", job: int, log: Log) -> Listener:
    from layerwise._tool.tui.cli.bench.report import TOP, BenchReport

    return BenchReport(log, TOP).event


def _lint(spec: "JobSpec", job: int, log: Log) -> Listener:
    from layerwise._tool.tui.cli.check.lint import LintReport

    return LintReport(log).event


def _compatibility(spec: "JobSpec", job: int, log: Log) -> Listener:
    from layerwise._tool.tui.cli.check.compatibility import CompatibilityReport

    return CompatibilityReport(log).event


def _invariants(spec: "JobSpec", job: int, log: Log) -> Listener:
    from layerwise._tool.tui.cli.check.invariants import InvariantsReport

    return InvariantsReport(log).event


def _matrix(spec: "JobSpec", job: int, log: Log) -> Listener:
    from layerwise._tool.debugtools.matrix.spec import MatrixSpec
    from layerwise._tool.tui.cli.matrix.report import MatrixReport

    return MatrixReport(log, msgspec.convert(spec.params, MatrixSpec)).event


def _baseline(spec: "JobSpec", job: int, log: Log) -> Listener:
    from layerwise._tool.tui.cli.baseline.report import BaselineReport

    return BaselineReport(log).event


REPORTS: dict[str, Callable[["JobSpec", int, Log], Listener]] = {
    "compare": _comparison,
    "locate": _locating,
    "debug_reduce": _search,
    "debug_bisect": _search,
    "debug_repeat": _search,
    "debug_build": _search,
    "debug_layers": _search,
    "debug_precision": _precision,
    "debug_lens": _lens,
    "bench": _bench,
    "lint": _lint,
    "compatibility": _compatibility,
    "invariants": _invariants,
    "matrix": _matrix,
    "baseline": _baseline,
}
"""By action; what makes a report raises ValidationError where the job's parameters are not what it expects."""


def _chosen(asked: str | None, ids: list[int]) -> int:
    if asked is None and ids:
        return ids[-1]
    if asked is not None and job_id(asked):
        return job_id(asked)
    raise UsageError("there are no jobs in this workspace" if asked is None else "attach takes the number of a job")
