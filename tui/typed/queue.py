"""Keys in the order in which they were typed, each handled when all that those before it do is done.

So keys that come at once, as over a slow line, do what the same keys do when each is typed after a look at the screen:
one that follows enter goes to the page that enter opens, a digit that follows it to the line on which it asks.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from time import monotonic

from textual.events import Event, Key

from layerwise._tool.tui.typed.settling import Settling

IMPATIENT = 1.0
"""Seconds after which ctrl+c, pressed twice, gives up waiting."""


class KeyQueue:
    """Keys (and pastes, and clicks) that wait. ready, handle: called for each in its turn; the first waits until all is
    done that it acts on.
    """

    def __init__(
        self, settling: Settling, ready: Callable[[Event], Awaitable[None]], handle: Callable[[Event], Awaitable[None]]
    ) -> None:
        self._settling, self._ready, self._handle = settling, ready, handle
        self._typed: deque[Event] = deque()
        self._came = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._waits_since = 0.0

    @property
    def is_idle(self) -> bool:
        """Whether all that was typed is handled."""
        return self._idle.is_set()

    def put(self, event: Event) -> None:
        """Something was typed."""
        if not self._typed and self._idle.is_set():
            self._waits_since = monotonic()
        self._typed.append(event)
        self._idle.clear()
        self._came.set()

    def begin_with(self, typed: Sequence[Event]) -> None:
        """Keys typed before the app was there come first."""
        for event in typed:
            self.put(event)

    def give_up(self, event: Event) -> int:
        """If keys have waited long, and this one is ctrl+c as the last one was: forget them, and what they wait for.

        Returns how many there were.
        """
        count = len(self._typed)
        again = isinstance(event, Key) and event.key == "ctrl+c" and count > 0
        last = self._typed[-1] if again else None
        if isinstance(last, Key) and last.key == "ctrl+c" and monotonic() - self._waits_since > IMPATIENT:
            self._typed.clear()
            self._settling.forget()
            return count
        return 0

    def rest(self) -> list[Event]:
        """What was typed and is not handled, which is taken away."""
        left = list(self._typed)
        self._typed.clear()
        return left

    async def done(self) -> None:
        """Wait until all keys so far have been handled, and all that they do is done."""
        await self._idle.wait()
        await self._settling.settled()

    async def run(self) -> None:
        """Handle what is typed, for ever."""
        while True:
            await self._came.wait()
            self._came.clear()
            while self._typed:
                await self._ready(self._typed[0])
                if self._typed:
                    self._waits_since = monotonic()
                    await self._handle(self._typed.popleft())
            self._idle.set()
