"""Searches written as steps: a generator that yields sets, one question at a time, and is sent their verdicts.

Steps are a function of the verdicts alone, so that more than one question at once can be guessed ahead: what would be
asked next if the open question were told good, and if bad.
"""

from collections import deque
from collections.abc import Callable, Generator, Mapping
from typing import NamedTuple, TypeVar

import numpy as np

from layerwise._tool.debugtools.search.strategies.protocol import Verdict

T = TypeVar("T")


class Question(NamedTuple):
    """A set to be judged, as bits; cut: the item that a prefix ends with."""

    mask: int
    cut: int | None = None


Steps = Generator[Question, Verdict, T]
Told = Mapping[int, Verdict]


class Walk:
    """Steps as far as the verdicts lead: `question` is the next one that has none, None at the end."""

    def __init__(self, steps: Steps[None]) -> None:
        self._running = steps
        self.question = next(self._running, None)

    def go_on(self, told: Told) -> None:
        """Take the steps that these verdicts allow."""
        while self.question and (verdict := told.get(self.question.mask)):
            try:
                self.question = self._running.send(verdict)
            except StopIteration:
                self.question = None


def ahead(walk: Walk, fresh: Callable[[], Walk], told: Told, width: int) -> list[Question]:
    """The open question, then those that would follow it, nearest first; `width` at most. fresh: the walk's start."""
    if walk.question is None or width == 1:
        return [walk.question] if walk.question else []
    found: dict[int, Question] = {}
    guesses: deque[dict[int, Verdict]] = deque([{}])
    for _ in range(4 * width):
        if not guesses or len(found) == width:
            break
        guess = guesses.popleft()
        guessed = fresh()
        guessed.go_on({**told, **guess})
        if guessed.question:
            found.setdefault(guessed.question.mask, guessed.question)
            guesses.extend(guess | {guessed.question.mask: verdict} for verdict in (Verdict.GOOD, Verdict.BAD))
    return list(found.values())


def bits(mask: int) -> list[int]:
    """The positions of the ones, ascending."""
    raw = np.frombuffer(mask.to_bytes(mask.bit_length() // 8 + 1, "little"), np.uint8)
    return list(map(int, np.flatnonzero(np.unpackbits(raw, bitorder="little"))))
