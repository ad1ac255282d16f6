"""The line to the terminal: how slow it is, and when the next frame may go over it.

Nothing tells a program how wide its line is. What can be measured is how long the terminal's answer takes that was
asked for right behind a frame: the way there and back, and the frame itself.
"""

import msgspec

LATE, VERY_LATE, EARLY = 0.25, 1.5, 0.1
"""Seconds that an answer takes on a slow line, on one that is beyond doubt, and on one that is not slow."""
ROUNDS = 2
ASK_EVERY = 5.0
LARGE = 2000
"""Bytes of a frame behind which an answer is asked for."""
FRAME_EVERY = 0.25
RATE = 5000.0
"""Bytes a second that frames may take which no key asked for."""


class LineSpeed:
    """Whether the line is slow, from the times that answers take.

    slow: as measured. seconds: what the last answer took. waiting: an answer is on its way.
    """

    def __init__(self) -> None:
        self.slow = False
        self.seconds = 0.0
        self._asked: float | None = None
        self._last = float("-inf")
        self._late = self._early = 0

    @property
    def waiting(self) -> bool:
        return self._asked is not None

    def may_ask(self, now: float) -> bool:
        """Whether another answer may be asked for; one that never came is given up after a while."""
        return now - self._last >= ASK_EVERY * (1 + self.waiting)

    def asked(self, now: float) -> None:
        self._asked = self._last = now

    def answered(self, now: float) -> bool:
        """An answer came; whether the line is slow now, or no longer, and was not before."""
        if self._asked is None:
            return False
        self.seconds, self._asked = now - self._asked, None
        self._late = self._late + 1 if self.seconds >= LATE else 0
        self._early = self._early + 1 if self.seconds <= EARLY else 0
        before = self.slow
        if self._late >= ROUNDS or self.seconds >= VERY_LATE:
            self.slow = True
        elif self._early > ROUNDS:
            self.slow = False
        return self.slow != before


class Pace:
    """When the next frame may be sent over a slow line: after a key, 4 times a second; else as many bytes as RATE."""

    def __init__(self) -> None:
        self.slow = False
        self._free = float("-inf")
        self._sent = float("-inf")

    def key(self) -> None:
        """A key was pressed: what it does is not kept back by what was sent of itself."""
        self._free = min(self._free, self._sent + FRAME_EVERY)

    def wait(self, now: float) -> float:
        """Seconds until a frame may be sent."""
        return max(0.0, self._free - now) if self.slow else 0.0

    def sent(self, now: float, size: int) -> None:
        """A frame of so many bytes was sent."""
        self._sent = now
        self._free = now + max(FRAME_EVERY, size / RATE)


class LineWish(msgspec.Struct, frozen=True):
    """What the user wants of the line. slow: None is as measured."""

    slow: bool | None = None

    @classmethod
    def of(cls, word: str | None, setting: bool | None) -> "LineWish":
        """From the environment's word ("" or None where there is none; "0" says no), else from the settings."""
        return cls(word != "0" if word else setting)
