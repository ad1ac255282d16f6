"""`layerwise jobs …`: what the workspace holds, and what can be done with it."""

import asyncio
import time
from argparse import Namespace
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.jobs.folder import LOG, job_id
from layerwise._tool.backends.log import Log, put
from layerwise._tool.backends.older_python import timeout
from layerwise._tool.backends.sizes import parse_size, size_text
from layerwise._tool.backends.text import counted, shown, shown_lines
from layerwise._tool.tui.cli import values
from layerwise._tool.tui.cli.jobs.describe import HEADING, describe, in_words, job_line
from layerwise._tool.tui.cli.jobs.output import RawOutput
from layerwise._tool.tui.cli.json_output import print_json
from layerwise._tool.tui.cli.parser import Parser
from layerwise._tool.tui.cli.streams import reader_gone
from layerwise._tool.tui.cli.submit import card_text

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.client import JobClient
    from layerwise._tool.backends.jobs.journal.view import JobView

_POLL = 0.2
_ENDS_WITHIN = 10.0
_NEWEST = 20


def fill_list(parser: Parser) -> None:
    parser.add_argument("--all", action="store_true", help=f"not only the newest {_NEWEST}")
    parser.add_argument("--json", action="store_true")


def run_list(args: Namespace, log: Log) -> int:
    """All jobs, newest last."""
    views, older = _views(None if args.all else _NEWEST)
    if args.json:
        print_json([describe(view) for view in views])
        return 0
    if not views:
        put("no jobs")
        return 0
    put(HEADING)
    for view in views:
        put(job_line(view))
    if older:
        put(f"{older} older: layerwise jobs list --all")
    return 0


def fill_show(parser: Parser) -> None:
    parser.add_argument("job", help="number of the job")
    parser.add_argument("--json", action="store_true")


def run_show(args: Namespace, log: Log) -> int:
    """One job in full."""
    from layerwise._tool.backends.jobs.workspace.store import Workspace

    view = Workspace().view(args.job)
    if args.json:
        print_json(describe(view))
        return 0
    for key, value in describe(view).items():
        if key not in ("card", "result") and value not in (None, "", {}, []):
            put(f"{key:<9}  {shown(in_words(key, value), None if key == 'command' else 2000)}")
    if view.result is not None:
        put(f"{'result':<9}  layerwise attach {view.id} reports it; jobs show {view.id} --json has it whole")
    if view.card:
        put(card_text(view.card, view.id))
    return 0


def fill_logs(parser: Parser) -> None:
    parser.add_argument("job", help="number of the job")
    parser.add_argument("-f", "--follow", action="store_true", help="go on until the job ends")


def run_logs(args: Namespace, log: Log) -> int:
    """What the worker printed, native code included."""
    from layerwise._tool.backends.jobs.workspace.store import Workspace

    workspace = Workspace()
    output = RawOutput(workspace.folder(args.job) / LOG)
    output.print_new()
    while args.follow:
        ended = workspace.view(args.job).final
        output.print_new()
        if ended or reader_gone():
            break
        time.sleep(_POLL)
    output.end()
    return 0


def fill_cancel(parser: Parser) -> None:
    parser.add_argument("jobs", nargs="+", help="numbers of the jobs")


def run_cancel(args: Namespace, log: Log) -> int:
    """Ask the jobs to stop, and say how each ended; they are killed if they do not stop."""
    return _each(args.jobs, log, _cancel)


def _cancel(job: int) -> str:
    client = _client()
    _ask(client.cancel(job))
    if not _ask(_has_ended(client, job)):
        raise LayerwiseError(f"Job {job}: asked to stop, and has not ended yet")
    return f"Job {job}: {client.workspace.view(job).outcome}"


async def _has_ended(client: "JobClient", job: int) -> bool:
    """Whether it ended within what a worker has to stop, and its supervisor to say so."""
    try:
        async with timeout(_ENDS_WITHIN):
            await client.wait(job)
    except TimeoutError:
        return False
    return True


def fill_retry(parser: Parser) -> None:
    parser.add_argument("jobs", nargs="+", help="numbers of the jobs")


def run_retry(args: Namespace, log: Log) -> int:
    """Start the jobs again; rows that were finished stay."""
    return _each(args.jobs, log, _retry)


def _retry(job: int) -> str:
    _ask(_client().retry(job))
    return f"Job {job} started again. Follow it with: layerwise attach {job}"


def _each(jobs: list[str], log: Log, act: Callable[[int], str]) -> int:
    """Do something to each job, also after one where it cannot be done; the exit code of the first such."""
    numbers, codes = [_number(job) for job in jobs], []
    for job in numbers:
        try:
            log.finish(act(job))
        except LayerwiseError as error:
            log.fatal(shown_lines(error))
            codes.append(error.exit_code)
    return codes[0] if codes else 0


def fill_prune(parser: Parser) -> None:
    parser.add_argument("jobs", nargs="*", help="numbers of the jobs; all that have ended if none is given")
    parser.add_argument("--keep", type=int, default=0, metavar="N", help="keep the newest N")
    parser.add_argument("--older-than", metavar="DURATION", help="only those that ended longer ago (7d, 12h)")
    parser.add_argument(
        "--to", metavar="SIZE", help="only the oldest, until the jobs take no more (5G); kept TensorRT engines likewise"
    )


def run_prune(args: Namespace, log: Log) -> int:
    """Remove jobs that have ended, with their files; where none is named, indexes of models nobody opens too."""
    from layerwise._tool.backends.jobs.workspace.prune import prune
    from layerwise._tool.backends.jobs.workspace.store import Workspace

    workspace = Workspace()
    seconds = values.parse_duration(args.older_than) if args.older_than else 0.0
    named = [_number(job) for job in args.jobs] or None
    most = parse_size(args.to) if args.to else None
    removed, freed = prune(workspace, named, keep=max(0, args.keep), older_than=seconds, most=most)
    log.finish(f"{counted(len(removed), 'job')} removed, {size_text(freed)} freed")
    if named is None:
        _prune_indexes(workspace.cache, log)
        _prune_engines(workspace.cache, most, log)
        for view in workspace.views(workspace.ids()):
            if view.damage and view.final:
                stays = f"Job {view.id} is damaged and stays ({view.damage})"
                log.warning(f"{stays}: layerwise jobs prune {view.id} removes it")
    left = sorted(set(named or []) - set(removed))
    if left:
        raise LayerwiseError(f"not removed, because they have not ended: {', '.join(map(str, left))}")
    return 0


def _prune_indexes(cache: Path, log: Log) -> None:
    from layerwise._tool.surgery.graph.cache import MOST, UNUSED, prune_indexes

    count, freed = prune_indexes(cache)
    if count:
        rule = f"not opened for {UNUSED / 86400:.0f} days, or beyond {size_text(MOST)}"
        log.finish(f"{count} indexes of models removed ({rule}), {size_text(freed)} freed")


def _prune_engines(cache: Path, most: int | None, log: Log) -> None:
    from layerwise._tool.backends.trt.store import prune_engines

    count, freed = prune_engines(cache, most)
    if count:
        log.finish(f"{count} TensorRT engines removed, those used longest ago, {size_text(freed)} freed")


def _views(newest: int | None) -> tuple[list["JobView"], int]:
    """The newest jobs (all for None), and how many older ones there are."""
    from layerwise._tool.backends.jobs.workspace.store import Workspace

    workspace = Workspace()
    ids = workspace.ids()
    chosen = ids if newest is None else ids[-newest:]
    return workspace.views(chosen), len(ids) - len(chosen)


def _client() -> "JobClient":
    from layerwise._tool.backends.jobs.client import JobClient
    from layerwise._tool.backends.jobs.workspace.store import Workspace
    from layerwise._tool.debugtools import ACTIONS

    return JobClient(Workspace(), ACTIONS)


def _ask(request: Coroutine[Any, Any, object]) -> object:
    return asyncio.run(request)


def _number(job: str) -> int:
    if not job_id(job):
        raise UsageError(f"'{shown(job, 40)}' is not the number of a job: `layerwise jobs` lists them")
    return job_id(job)
