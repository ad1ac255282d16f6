"""Searches written as steps: a generator that yields sets, one at a time, and is sent their verdicts.

Steps are a function of the verdicts alone, so that more than one at once can be guessed ahead: what would be
asked next if the open one were told good, and if bad.
"""

from collections import deque
from collections.abc import Callable, Generator, Mapping
from typing import NamedTuple, TypeVar

import numpy as np

from layerwise._tool.debugtools.search.strategies.protocol import Verdict

T = TypeVar("T")


class ItemSet(NamedTuple):
    """A set to be judged, as bits; cut: the item that a prefix ends with."""

    mask: int
    cut: int | None = None


Steps = Generator[ItemSet, Verdict, T]
Told = Mapping[int, Verdict]


class StepRun:
    """Steps as far as the verdicts lead: `next_set` is the next one that has none, None at the end."""

    def __init__(self, steps: Steps[None]) -> None:
        self._running = steps
        self.next_set = next(self._running, None)

    def go_on(self, told: Told) -> None:
        """Take the steps that these verdicts allow."""
        while self.next_set and (verdict := told.get(self.next_set.mask)):
            try:
                self.next_set = self._running.send(verdict)
            except StopIteration:
                self.next_set = None


def ahead(run: StepRun, fresh: Callable[[], StepRun], told: Told, width: int) -> list[ItemSet]:
    """The open set, then those that would follow it, nearest first; `width` at most. fresh: the run's start."""
    if run.next_set is None or width == 1:
        return [run.next_set] if run.next_set else []
    found: dict[int, ItemSet] = {}
    guesses: deque[dict[int, Verdict]] = deque([{}])
    for _ in range(4 * width):
        if not guesses or len(found) == width:
            break
        guess = guesses.popleft()
        guessed = fresh()
        guessed.go_on({**told, **guess})
        if guessed.next_set:
            found.setdefault(guessed.next_set.mask, guessed.next_set)
            guesses.extend(guess | {guessed.next_set.mask: verdict} for verdict in (Verdict.GOOD, Verdict.BAD))
    return list(found.values())


def bits(mask: int) -> list[int]:
    """The positions of the ones, ascending."""
    raw = np.frombuffer(mask.to_bytes(mask.bit_length() // 8 + 1, "little"), np.uint8)
    return list(map(int, np.flatnonzero(np.unpackbits(raw, bitorder="little"))))
