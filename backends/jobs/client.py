"""The app's and the command line's way to the jobs of a workspace, on an asyncio loop."""

import asyncio
import os
import uuid
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

from layerwise._tool.backends.errors import LayerwiseError, UsageError, refusal
from layerwise._tool.backends.filesystem.files import atomic_write
from layerwise._tool.backends.jobs import OWN
from layerwise._tool.backends.jobs.folder import JOURNAL, LOCK, REPLIES
from layerwise._tool.backends.jobs.journal.json_lines import MAX_LINE, LineWriter, encode_line
from layerwise._tool.backends.jobs.journal.schema import Event
from layerwise._tool.backends.jobs.journal.view import JobView
from layerwise._tool.backends.jobs.processes.conclude import settle
from layerwise._tool.backends.jobs.processes.control import python, spawn_detached
from layerwise._tool.backends.jobs.processes.warm_pair import Prestarted, WarmPair
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.waiting.hub import Hub
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.backends.older_python import timeout as ends_within

T = TypeVar("T")
Views = list[JobView]
Removed = tuple[list[int], int]
_COALESCE = 0.02
_BATCH = 256


class JobClient:
    """Jobs of one workspace (the user's own by default), used from one loop. Any number may share it.

    actions: the module that offers the actions of its jobs.
    """

    def __init__(self, workspace: Workspace | None = None, actions: str = OWN) -> None:
        self.workspace = workspace or Workspace()
        self._actions = actions
        self._hub = Hub()
        self._views: dict[int, JobView] = {}
        self._prestarted = Prestarted(actions, self.workspace.jobs)

    def keep_warm(self, after: float) -> None:
        """Have processes ready for the next job `after` seconds from now, and again after each one."""
        self._prestarted.keep(after)

    async def submit(self, spec: JobSpec) -> int:
        """Start a job that outlives this process; returns its id. Who is cancelled meanwhile leaves a job that runs.

        Raises LayerwiseError when it cannot be made.
        """
        return await asyncio.shield(self._begin(self.workspace.create, spec))

    async def retry(self, job: int) -> None:
        """Begin a new attempt of a job that has ended. Raises UsageError while it is alive."""
        await asyncio.shield(self._begin(self.workspace.reopen, job))

    async def _begin(self, make: Callable[[T], tuple[Path, int]], what: T) -> int:
        """Shield it: a job that is made and not started would be held by our lock for ever."""
        folder, lock = await asyncio.to_thread(make, what)
        await asyncio.to_thread(_start, self._actions, folder, lock, self._prestarted.pop())
        return int(folder.name)

    async def list(self) -> Views:
        """All jobs, oldest first."""
        return await asyncio.to_thread(self.workspace.list_jobs)

    async def view(self, job: int) -> JobView:
        """One job as it is now. Raises UsageError when there is none of that id."""
        return await asyncio.to_thread(self.workspace.view, job)

    async def events(self, job: int, after: int = 0, follow: bool = True) -> AsyncIterator[Event]:
        """The events numbered above `after`, past ones first; with `follow` until the job has ended.

        Sleeps while the journal does not change. A job that is found dead gets its `lost` written on the way.
        """
        async for event in self._follow(JobView(self.workspace.folder(job)), follow):
            if event["n"] > after:
                yield event

    async def _follow(self, view: JobView, follow: bool = True) -> AsyncIterator[Event]:
        """What the view's journal gains until the job has ended; bursts are read in steps of 20 ms."""
        with self._hub.watching([view.folder / JOURNAL, view.folder / LOCK]) as change:
            rest = 0.0
            while True:
                before = view.offset
                for count, event in enumerate(view.news()):
                    yield event
                    if count % _BATCH == _BATCH - 1:
                        await asyncio.sleep(0)
                if view.final or not follow:
                    return
                if settle(view.folder):
                    follow = False
                    continue
                if view.offset > before:
                    await asyncio.sleep(rest)
                rest = _COALESCE
                await change.wait()

    async def watch(self, interval: float = 0.25) -> AsyncIterator[Views]:
        """All jobs now, and again whenever one of them has changed, at most once an `interval` (seconds)."""
        views: Views = []
        watched: dict[Path, ExitStack] = {}
        with self._hub.watching([self.workspace.jobs]) as change, ExitStack() as watches:
            while True:
                views = await asyncio.to_thread(self.workspace.list_jobs, views)
                going = {view.folder for view in views if not view.final}
                for folder in watched.keys() - going:
                    watched.pop(folder).close()
                fresh = going - watched.keys()
                for folder in fresh:
                    watched[folder] = watches.enter_context(ExitStack())
                    watched[folder].enter_context(self._hub.watching([folder / JOURNAL, folder / LOCK], change))
                if fresh:
                    continue
                yield views
                await asyncio.sleep(interval)
                await change.wait()

    async def wait(self, job: int) -> JobView:
        """The job once it has ended."""
        async for _ in self.events(job):
            pass
        return await self.view(job)

    async def reply(self, job: int, question: str, data: dict[str, Any]) -> None:
        """Answer a job's open question by its id. The first answer counts."""
        await self._send(await self.view(job), {"type": "reply", "question": question, "data": data})

    async def cancel(self, job: int) -> None:
        """Ask for the end of a job: SIGTERM, then SIGKILL after a grace period.

        Raises UsageError if it has ended.
        """
        await self._send(await self.view(job), {"type": "cancel"})

    async def ask(self, job: int, request: str, params: dict[str, Any], timeout: float | None = None) -> dict[str, Any]:
        """Put a request to an interactive worker and wait for its answer.

        Raises LayerwiseError with the handler's message, or when the worker ended first; TimeoutError after
        `timeout`.
        """
        name = uuid.uuid4().hex
        view = self._known(job).copy()
        await self._send(view, {"type": "request", "id": name, "request": request, "params": params})
        async with ends_within(timeout):
            async for event in self._follow(view):
                row = event.get("row", {}) if event["type"] == "row" and event["table"] == "answers" else {}
                if row.get("id") == name:
                    return _answer(row)
        card = (await self.view(job)).card or {}
        summary = card.get("summary", "it has ended")
        raise LayerwiseError(f"the worker ended before it answered: {summary} (`layerwise jobs show {job}`)")

    async def prune(self, jobs: Iterable[int] | None = None, *, keep: int = 0, older_than: float = 0.0) -> Removed:
        """Remove jobs that have ended; returns their ids and the bytes they took (see `prune`)."""
        from layerwise._tool.backends.jobs.workspace.prune import prune

        return await asyncio.to_thread(prune, self.workspace, jobs, keep=keep, older_than=older_than)

    def close(self) -> None:
        """Stop watching, and end the processes that wait for a job. Jobs go on."""
        self._prestarted.close()
        self._hub.close()

    def _known(self, job: int) -> JobView:
        """A view that is kept, so that the journal is not read from its start for every request."""
        folder = self.workspace.folder(job)
        view = self._views.setdefault(job, JobView(folder))
        view.refresh()
        if not view.final and settle(folder):
            view.refresh()
        return view

    async def _send(self, view: JobView, entry: dict[str, Any]) -> None:
        if view.state == "damaged":
            raise UsageError(f"job {view.id} is damaged: {view.damage}")
        if view.final:
            text = f"job {view.id} has ended ({view.state}): `layerwise jobs retry {view.id}` starts it again"
            raise UsageError(text)
        await asyncio.to_thread(send, view.folder, {**entry, "attempt": view.attempt})


def send(folder: Path, entry: dict[str, Any]) -> None:
    """Write to a job's replies.jsonl. Raises LayerwiseError when it cannot be written."""
    try:
        line = encode_line(entry)
        if len(line) > MAX_LINE:
            line = encode_line(_spilled(folder, entry))
        writer = LineWriter(folder / REPLIES)
        try:
            writer.write(line)
        finally:
            writer.close()
    except OSError as error:
        raise LayerwiseError(f"{folder / REPLIES} cannot be written: {error.strerror}") from error


def _spilled(folder: Path, entry: dict[str, Any]) -> dict[str, Any]:
    name = f"reply-{uuid.uuid4().hex}.json"
    atomic_write(folder / "artifacts" / name, encode_line(entry))
    return {"type": entry["type"], "attempt": entry["attempt"], "spill": name}


def _start(actions: str, folder: Path, lock: int, pair: WarmPair | None) -> None:
    try:
        if pair is None or not pair.take(folder, lock):
            spawn_detached(python("supervisor", actions, str(folder)), keep=[lock])
    except OSError as error:
        raise LayerwiseError(f"job {folder.name} could not be started: {refusal(error) or error}") from error
    finally:
        os.close(lock)


def _answer(row: dict[str, Any]) -> dict[str, Any]:
    if not row.get("ok"):
        raise LayerwiseError(str(row.get("error")))
    data = row.get("data")
    return data if isinstance(data, dict) else {}
