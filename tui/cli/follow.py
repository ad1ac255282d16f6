"""Following a job's events to its end, and having its open question attended to meanwhile."""

import asyncio
import signal
from collections.abc import Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.jobs.journal.schema import FINAL, UNEXPECTED, Event
from layerwise._tool.backends.log import INFO, LEVELS, WARNING, Log
from layerwise._tool.backends.text import shown_lines
from layerwise._tool.tui.cli.submit import Listener
from layerwise._tool.tui.state.questions import Question, read_question

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.client import JobClient
    from layerwise._tool.tui.cli.asking import Asker

Result = TypeVar("Result")
_ENDED = FINAL | {"running"}


class EventFollower:
    """Gives every event of a job to `listeners`; `asker` is given the question that is open, until it is answered."""

    def __init__(self, job: int, report: Listener, show: Listener | None = None, asker: "Asker | None" = None) -> None:
        self._job = job
        self._listeners = [listener for listener in (show, report) if listener is not None]
        self._asker = asker
        self._asking: asyncio.Task[None] | None = None
        self._following: asyncio.Task[Any] | None = None
        self._failure: BaseException | None = None
        self._left_out = False

    async def run(self) -> None:
        """Return when the job has ended. Raises what asking raises."""
        from layerwise._tool.backends.jobs.client import JobClient
        from layerwise._tool.backends.jobs.workspace.store import Workspace
        from layerwise._tool.debugtools import ACTIONS

        client = JobClient(Workspace(), ACTIONS)
        self._following = asyncio.current_task()
        try:
            async for event in client.events(self._job):
                await self._take(event, client)
        except asyncio.CancelledError:
            if self._failure is None:
                raise
            raise self._failure from None
        finally:
            await self._stop_asking()
            client.close()

    async def _take(self, event: Event, client: "JobClient") -> None:
        if event["type"] == "state" and event.get("state") in _ENDED:
            await self._stop_asking("answered elsewhere" if event["state"] == "running" else "the job has ended")
        for listener in self._listeners:
            self._give(event, listener)
        if event["type"] == "question" and self._asker is not None:
            self._asking = asyncio.create_task(self._ask(str(event.get("id")), self._asker, client))
            self._asking.add_done_callback(self._asked)

    def _give(self, event: Event, listener: Listener) -> None:
        """What is in a row nobody has checked: one that a report cannot take is left out of it."""
        try:
            listener(event)
        except UNEXPECTED:
            if not self._left_out:
                text = f"event {event['n']} of job {self._job} is damaged and left out"
                listener({**event, "type": "warning", "text": text})
            self._left_out = True

    async def _ask(self, name: str, asker: "Asker", client: "JobClient") -> None:
        question = await self._open(name, client)
        word = await asker.ask(question) if question is not None else None
        if question is not None and word is not None:
            with suppress(UsageError):  # the job has ended meanwhile, which its events tell
                await client.reply(self._job, question.id, {"answer": word})

    def _asked(self, asking: "asyncio.Task[None]") -> None:
        """Nobody awaits a question: what went wrong with it ends the following, not to be waited for in vain."""
        if self._following is not None and not asking.cancelled() and asking.exception() is not None:
            self._failure = asking.exception()
            self._following.cancel()

    async def _open(self, name: str, client: "JobClient") -> Question | None:
        """The question if nobody has answered it yet: journals are read from their start."""
        question = read_question(self._job, (await client.view(self._job)).question)
        return question if question is not None and question.id == name else None

    async def _stop_asking(self, why: str = "") -> None:
        if self._asking is not None:
            self._asking.cancel(why)
            await asyncio.gather(self._asking, return_exceptions=True)
            self._asking = None


def messages(log: Log) -> Listener:
    """Prints what a job says in words."""

    def say(event: Event) -> None:
        kind = event.get("type")
        if kind in ("log", "warning"):
            level = LEVELS.get(str(event.get("level", kind)).upper(), WARNING if kind == "warning" else INFO)
            log.say(level, shown_lines(event.get("text")))

    return say


def run_interruptibly(work: Coroutine[Any, Any, Result]) -> Result:
    """Run `work`; KeyboardInterrupt at once on SIGINT, which by itself may not wake a loop that waits."""
    return asyncio.run(_interruptible(work))


async def _interruptible(work: Coroutine[Any, Any, Result]) -> Result:
    loop, task, interrupted = asyncio.get_running_loop(), asyncio.current_task(), asyncio.Event()
    assert task is not None

    def interrupt() -> None:
        interrupted.set()
        task.cancel()

    loop.add_signal_handler(signal.SIGINT, interrupt)
    try:
        return await work
    except asyncio.CancelledError:
        if interrupted.is_set():
            raise KeyboardInterrupt from None
        raise
    finally:
        loop.remove_signal_handler(signal.SIGINT)
