"""Watching the workspace's jobs, and what the user does to one."""

import asyncio
import time
from itertools import islice
from pathlib import Path

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.filesystem.regular import read_from
from layerwise._tool.backends.jobs.folder import LOG
from layerwise._tool.backends.jobs.journal.events import last_events, read_events
from layerwise._tool.backends.jobs.journal.schema import Event
from layerwise._tool.backends.jobs.journal.view import JobView
from layerwise._tool.backends.sizes import size_text
from layerwise._tool.backends.text import counted, shown
from layerwise._tool.tui.controllers.opening import engine_job
from layerwise._tool.tui.controllers.yank import Copy, block_copy
from layerwise._tool.tui.presenters.jobs import card_text, summary
from layerwise._tool.tui.state.debugging import SEARCHES
from layerwise._tool.tui.state.jobs import comparison_params
from layerwise._tool.tui.state.questions import Question
from layerwise._tool.tui.state.shared import AppState

WATCH_EVERY = 0.5
WATCH_AGAIN = 5.0
MOST_EVENTS = 20_000
TAIL = 1 << 16
OLD = 7 * 86400.0
LARGE = 50e6
PRUNABLE = (
    ("listed", "those that the filter lists", "v"), ("failed", "failed, cancelled and lost ones", "f"),
    ("old", "those older than a week", "o"), ("large", f"those of {size_text(LARGE)} and more", "l"),
    ("all", "all that have ended, but the one on view", "a"),
)  # fmt: skip
"""Which ended jobs to remove, in words, and the key that picks them."""
STEPS = (1e9, 2e9, 5e9, 1e10, 2e10, 5e10, 1e11)
"""Bytes of all jobs at which the user is told."""


class JobsController:
    """Keeps the app's JobsState and its status line up to date while the app runs."""

    def __init__(self, app: AppState) -> None:
        self._app = app
        self._level = 0
        self._forget_removed()
        self._task = asyncio.create_task(self._watch())

    def _forget_removed(self) -> None:
        """What was on view may have been pruned, also by another program."""
        session = self._app.session
        if session.compare_job is not None and self._removed(session.compare_job):
            self._app.say(f"job {session.compare_job}, the comparison on view, was removed")
            session.set_compare_job(None)
        if session.debug_job is not None and self._removed(session.debug_job):
            self._app.say(f"job {session.debug_job}, the search on view, was removed")
            session.set_debug_job(None)

    def _warn_of_size(self) -> None:
        """Say once that the workspace has grown, and how to make it smaller."""
        size = self._app.jobs.list.size
        level = sum(size >= step for step in STEPS)
        if level > self._level:
            largest = max(self._app.jobs.views, key=lambda view: view.bytes_on_disk)
            told = f"the jobs take {size_text(size)} on disk, job {largest.id} {size_text(largest.bytes_on_disk)} of it"
            self._app.say(f"{told}: P on the Jobs page removes some, s sorts by size", "warn")
        self._level = level

    def _removed(self, job: int | str) -> bool:
        try:
            self._app.workspace.folder(job)
        except UsageError:
            return True
        return False

    async def _watch(self) -> None:
        while True:
            try:
                async for views in self._app.client.watch(WATCH_EVERY):
                    self._app.jobs.set_views(views)
                    self._app.jobs_over(view.id for view in views if view.final)
                    self._forget_removed()
                    self._show_newest()
                    self._app.set_status(summary(self._app.jobs.others()))
                    self._warn_of_size()
            except (LayerwiseError, OSError) as error:
                self._app.say(f"the jobs cannot be read: {error}", "bad")
                await asyncio.sleep(WATCH_AGAIN)

    def _show_newest(self) -> None:
        """With no comparison or search on view, take the newest of the open model, wherever it was started."""
        session = self._app.session
        if session.compare_job is None and (found := self._app.jobs.newest(session.model, ("compare",))):
            session.set_compare_job(str(found))
        if session.debug_job is None and (found := self._app.jobs.newest(session.model, SEARCHES)):
            session.set_debug_job(found)

    def close(self) -> None:
        """Stop watching."""
        self._task.cancel()


class JobActions:
    """Each method tells the user how it went."""

    def __init__(self, app: AppState) -> None:
        self._app = app

    def show(self, view: JobView) -> str:
        """Put a job on view; the name of the screen that shows it, "" where none does."""
        spec = self._app.jobs.spec(view)
        if spec is not None and spec.action in ("compare", "baseline"):  # a baseline has the comparison's rows
            self._app.session.set_compare_job(str(view.id))
            return "errors"
        if spec is not None and spec.action in SEARCHES:
            self._app.session.set_debug_job(view.id)
            return "debug"
        if spec is not None and spec.action == "bench":
            self._app.perf.ask(view.id)
            return "perf"
        if spec is not None and spec.action == "matrix":
            self._app.matrix.ask(view.id)
            return "matrix"
        return ""

    async def cancel(self, job: int) -> None:
        with self._app.telling():
            await self._app.client.cancel(job)
            self._app.say(f"job {job}: asked to stop", job=job)

    async def retry(self, job: int) -> None:
        with self._app.telling():
            await self._app.client.retry(job)
            self._app.say(f"job {job}: started again; finished rows are kept", job=job)

    async def answer(self, question: Question, word: str) -> None:
        """Answer a job's question; of several answers to the same one the first counts."""
        answered, key = self._app.jobs.answered, (question.job, question.id)
        if key in answered:
            told = f"this question was answered {shown(answered[key], 60)}; the next one has not come yet"
            self._app.say(f"job {question.job}: {told}", "warn")
            return
        answered[key] = word
        sent = False
        with self._app.telling():
            await self._app.client.reply(question.job, question.id, {"answer": word})
            sent = True
            self._app.say(f"job {question.job}: answered {shown(word, 60)}")
        if not sent:
            del answered[key]

    async def inspect(self, view: JobView, path: str) -> int:
        """Describe an engine of a job in a job of its own; its number. Raises LayerwiseError."""
        spec = self._app.jobs.spec(view)
        model = str(comparison_params(spec).get("model") or "") if spec is not None else ""
        cwd = spec.cwd if spec is not None else ""
        job = await asyncio.to_thread(engine_job, path, f"the engine of job {view.id}", model, cwd)
        return await self._app.client.submit(job)

    async def prune(self, jobs: list[int]) -> None:
        """Remove these ended jobs and their files."""
        with self._app.telling():
            removed, freed = await self._app.client.prune(jobs)
            self._app.say(f"{counted(len(removed), 'job')} removed, {freed / 1e6:.1f} MB freed")

    def prunable(self, what: str) -> list[int]:
        """Ended jobs of a kind of PRUNABLE; never one on view."""
        ended = [view for view in self._app.jobs.views if view.final]
        if what == "failed":
            ended = [view for view in ended if view.state != "done"]
        elif what == "large":
            ended = [view for view in ended if view.bytes_on_disk >= LARGE]
        elif what == "listed":
            listed = {view.id for view in self._app.jobs.list.jobs()}
            ended = [view for view in ended if view.id in listed]
        elif what == "old":
            ended = [view for view in ended if (view.ended or 0.0) < time.time() - OLD]
        on_view = (self._app.session.compare_job, str(self._app.session.debug_job))
        return [view.id for view in ended if str(view.id) not in on_view]

    def copies(self, view: JobView) -> list[Copy]:
        """What can be copied of a job: its command, its folder, why it failed."""
        spec = self._app.jobs.spec(view)
        targets = [Copy("c", "command", tuple(spec.command))] if spec is not None and spec.command else []
        targets.append(Copy("f", "folder", (str(view.folder),)))
        if view.card is not None:
            targets.append(block_copy("k", "crash card", card_text(view.card, self._app.glyphs)))
        return targets


async def read_tail(view: JobView, *, whole: bool) -> tuple[list[Event], str]:
    """A job's last events (`whole`: the first MOST_EVENTS) and the end of its raw output."""
    events = (lambda folder: list(islice(read_events(folder), MOST_EVENTS))) if whole else last_events
    return await asyncio.to_thread(lambda: (events(view.folder), _end(view.folder / LOG)))


def _end(path: Path) -> str:
    try:
        return read_from(path, -TAIL, TAIL).decode("utf-8", "replace")
    except OSError:
        return ""
