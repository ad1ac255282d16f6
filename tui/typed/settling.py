"""When all that a key does is done: the screens stand, the messages are handled, the work asked for has ended."""

import asyncio
from collections.abc import Container, Iterator
from contextlib import contextmanager
from enum import Enum
from time import monotonic
from typing import Any, Protocol

from textual.app import App
from textual.message_pump import MessagePump
from textual.screen import Screen

QUIET = 2
"""Turns of the loop without anything to do."""
POLL = 0.002


class Waits(Enum):
    """What keys wait for, and for how many seconds at most."""

    DEED = 60.0
    """What the screens or the model are after it is what a key acts on."""
    OPENING = 10.0
    """A model is opened."""
    ROWS = 4.0
    """Rows may come of it; a key that only writes on does not wait."""
    SHOWN = 3.0
    """More of what is on view; a key that only writes on or moves on does not wait."""
    JOB = 0.0
    """It runs models, or waits for a job: no key waits."""


WRITING, MOVING = frozenset((Waits.ROWS, Waits.SHOWN)), frozenset((Waits.SHOWN,))


class Finishing(Protocol):
    """Work in the background."""

    @property
    def is_finished(self) -> bool: ...


class Settling:
    """What an app still has to do of what was asked of it. Jobs are not waited for: work is, as long as it may be."""

    def __init__(self, app: App[Any]) -> None:
        self._app = app
        self._working = 0
        self._works: dict[Finishing, tuple[Waits, float]] = {}

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Something is being handled that may have to wait."""
        self._working += 1
        try:
            yield
        finally:
            self._working -= 1

    def wait_for(self, work: Finishing, waits: Waits, seconds: float | None = None) -> None:
        """The next key waits for this work, but no longer than `seconds` from now on."""
        if waits is not Waits.JOB:
            self._works[work] = waits, monotonic() + (waits.value if seconds is None else seconds)

    def forget(self) -> None:
        """Wait for no work that has been begun."""
        self._works.clear()

    async def settled(self, without: Container[Waits] = ()) -> None:
        """Wait until nothing is to be done, except work of these kinds."""
        quiet = 0
        while quiet < QUIET:
            await asyncio.sleep(0)
            if self._waits(without):
                quiet = 0
                await asyncio.sleep(POLL)
            else:
                quiet = 0 if self._messages() else quiet + 1

    def _waits(self, without: Container[Waits]) -> bool:
        """Whether something is under way that does not end within a turn of the loop."""
        now = monotonic()
        self._works = {work: (kind, until) for work, (kind, until) in self._works.items()
                       if not _is_over(work) and now < until}  # fmt: skip
        works = any(kind not in without for kind, _ in self._works.values())
        # a screen below another one is laid out when it is on top again
        return bool(self._working) or works or any(map(_is_laid_out_anew, self._app.screen_stack[-1:]))

    def _messages(self) -> bool:
        """Whether a message waits to be handled."""
        return _has_messages(self._app) or any(
            map(_has_messages, (node for screen in self._app.screen_stack for node in screen.walk_children()))
        )


def _is_over(work: Finishing) -> bool:
    """Whether work has ended, or was cancelled: what is cancelled before it begins stays pending for ever."""
    return work.is_finished or bool(getattr(work, "is_cancelled", False))


def _is_laid_out_anew(screen: Screen[Any]) -> bool:
    """Whether a screen has yet to find places for its widgets, or to call what waits for that."""
    stands = bool(getattr(screen, "ready", True))
    return screen.is_running and (not stands or screen._layout_required or bool(screen._callbacks))


def _has_messages(pump: MessagePump) -> bool:
    return pump.is_running and (pump.message_queue_size > 0 or bool(pump._next_callbacks))
