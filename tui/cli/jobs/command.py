"""`layerwise jobs …`: what the workspace holds, and what can be done with it."""

import asyncio
import time
from argparse import Namespace
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layerwise._tool.backends.errors import BadFile, LayerwiseError, UsageError
from layerwise._tool.backends.jobs.folder import LOG, job_id
from layerwise._tool.backends.log import Log, put
from layerwise._tool.backends.older_python import timeout
from layerwise._tool.backends.shell import shell_line
from layerwise._tool.backends.sizes import parse_size
from layerwise._tool.backends.text import counted, shown, shown_lines
from layerwise._tool.tui.cli import values
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
    put(f"{'job':>5}  {'state':<9}  {'started':<16}  {'ran':>8}  {'progress':>12}  {'disk':>7}  what")
    for view in views:
        put(_line(view))
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
            put(f"{key:<9}  {shown(_in_words(key, value), None if key == 'command' else 2000)}")
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
    log.finish(f"{counted(len(removed), 'job')} removed, {size(freed)} freed")
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
        rule = f"not opened for {UNUSED / 86400:.0f} days, or beyond {size(MOST)}"
        log.finish(f"{count} indexes of models removed ({rule}), {size(freed)} freed")


def _prune_engines(cache: Path, most: int | None, log: Log) -> None:
    from layerwise._tool.backends.trt.store import prune_engines

    count, freed = prune_engines(cache, most)
    if count:
        log.finish(f"{count} TensorRT engines removed, those used longest ago, {size(freed)} freed")


def describe(view: "JobView") -> dict[str, Any]:
    """A job as plain values; times in unix seconds."""
    spec = _spec(view)
    return {
        "job": view.id,
        "state": view.state,
        "damage": view.damage or spec.get("damage"),
        "passed": (view.result or {}).get("passed"),
        "reason": view.reason,
        "attempt": view.attempt,
        "title": spec.get("title"),
        "action": spec.get("action"),
        "command": shell_line(spec.get("command") or []),
        "cwd": spec.get("cwd"),
        "created": view.created,
        "started": view.started,
        "ended": view.ended,
        "progress": view.progress,
        "rows": view.counts,
        "warnings": view.warnings,
        "gpus": view.gpus,
        "bytes": view.bytes_on_disk,
        "folder": str(view.folder),
        "result": view.result,
        "card": view.card,
    }


def size(count: int) -> str:
    """Bytes for people."""
    value = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            break
        value /= 1000
    return f"{value:.0f} {unit}" if unit == "B" or value >= 10 else f"{value:.1f} {unit}"


def _in_words(key: str, value: Any) -> str:
    if key in ("created", "started", "ended"):
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(value))
    if key == "bytes":
        return size(value)
    if key == "progress":
        return f"{_counted(value)} {value.get('unit') or ''} {value.get('text') or ''}".strip()
    if key == "rows":
        return ", ".join(f"{count} {table}" for table, count in value.items())
    return str(value)


def _counted(progress: dict[str, Any]) -> str:
    total = f"/{progress['total']}" if progress.get("total") else ""
    return f"{progress['done']}{total}" if progress.get("done") is not None else "-"


def _views(newest: int | None) -> tuple[list["JobView"], int]:
    """The newest jobs (all for None), and how many older ones there are."""
    from layerwise._tool.backends.jobs.workspace.store import Workspace

    workspace = Workspace()
    ids = workspace.ids()
    chosen = ids if newest is None else ids[-newest:]
    return workspace.views(chosen), len(ids) - len(chosen)


def _line(view: "JobView") -> str:
    began = view.started or view.created
    started = time.strftime("%Y-%m-%d %H:%M", time.localtime(began)) if began else "-"
    end = view.ended or time.time()
    ran = f"{max(0.0, end - view.started):.1f} s" if view.started else "-"
    done = _counted(view.progress or {})
    return (
        f"{view.id:>5}  {view.outcome:<9}  {started:<16}  {ran:>8}  {done:>12}  {size(view.bytes_on_disk):>7}  "
        f"{shown(_what(view), 200)}"
    )


def _what(view: "JobView") -> str:
    spec = _spec(view)
    damage = view.damage or spec.get("damage")
    what = str(spec.get("title") or spec.get("action") or "")
    return what if not damage else f"{what} (damaged: {damage})" if what else f"damaged: {damage}"


def _spec(view: "JobView") -> dict[str, Any]:
    import msgspec

    try:
        found: dict[str, Any] = msgspec.to_builtins(view.spec)
    except BadFile as error:
        return {"damage": f"spec.json: {error.reason}"}
    return found


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
