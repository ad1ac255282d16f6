"""What the app has said: the line that shows the last message, and all of them in their order."""

import time
from collections import deque
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

Level = Literal["info", "good", "warn", "bad"]
MOST = 1000
STAYS = 4.0
"""Seconds that a message stays, at least; the next key after them takes it away."""


class Message(Struct, frozen=True):
    """at: unix seconds. times: how often it was said in a row. job: it is over when that job is, 0 for none."""

    at: float
    text: str
    level: Level = "info"
    times: int = 1
    job: int = 0


class Messages:
    """All that was said, up to `MOST`; the last one is on view until its time or its cause is over."""

    def __init__(self) -> None:
        self._said: deque[Message] = deque(maxlen=MOST)
        self.on_view: Message | None = None

    def add(self, text: str, level: Level, job: int = 0) -> Message:
        """Keep a message, several equal ones in a row as one."""
        last = self._said[-1] if self._said else None
        if last is not None and (last.text, last.level) == (text, level):
            self._said.pop()
            message = replace(last, at=time.time(), times=last.times + 1, job=job)
        else:
            message = Message(time.time(), text, level, job=job)
        self._said.append(message)
        return message

    def newest_first(self) -> list[Message]:
        return list(self._said)[::-1]

    def old(self) -> bool:
        """Whether the one on view has been there for long enough."""
        return self.on_view is not None and time.time() - self.on_view.at > STAYS
