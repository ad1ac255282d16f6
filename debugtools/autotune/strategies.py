"""In which order combinations of replacements are tried, and which one is taken.

A combination is a tuple of positions in the list of replacements, ascending; () is the model as it is.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import combinations, islice

Combination = tuple[int, ...]


@dataclass(frozen=True, order=True)
class Times:
    """How fast an engine runs: median latency in milliseconds, then bytes on the device; less is better in this order.

    build_seconds: until the engine was ready.
    """

    milliseconds: float
    memory: int
    build_seconds: float = field(default=0.0, compare=False)


@dataclass(frozen=True)
class Best:
    """The fastest combination so far."""

    combination: Combination
    times: Times


Trial = Callable[[Combination, Best], Times | None]
"""Times a combination, beside the best so far; None if it cannot be built or run."""


@dataclass(frozen=True)
class Choices:
    """How many replacements there are; clashes: pairs of them, ascending, that exclude each other."""

    count: int
    clashes: frozenset[tuple[int, int]] = frozenset()

    def possible(self, combination: Combination) -> bool:
        """Return whether no two of these replacements clash."""
        return not any(pair in self.clashes for pair in combinations(combination, 2))

    def all(self) -> Iterator[Combination]:
        """Yield every possible combination with a replacement, in the order of the binary numbers of their members."""
        return islice(self._below(self.count, ()), 1, None)

    def _below(self, end: int, above: Combination) -> Iterator[Combination]:
        """Yield every combination of the first `end` replacements that is possible with those `above`."""
        yield ()
        for at in range(end):
            if not any((at, other) in self.clashes for other in above):
                for below in self._below(at, (at, *above)):
                    yield (*below, at)


def greedy(choices: Choices, most: int, model: Times, trial: Trial) -> Best:
    """Decide on each replacement in turn, on top of those taken before; `most` counts the model too."""
    best, tried = Best((), model), 1
    for at in range(choices.count):
        combination = (*best.combination, at)
        if not choices.possible(combination):
            continue
        if tried >= most:
            break
        best, tried = _better(combination, best, trial), tried + 1
    return best


def exhaustive(choices: Choices, most: int, threshold: float, model: Times, trial: Trial) -> Best:
    """Try every combination, until one is faster than the model by more than `threshold`; `most` counts the model."""
    best = Best((), model)
    for combination in islice(choices.all(), max(0, most - 1)):
        best = _better(combination, best, trial)
        if model.milliseconds - best.times.milliseconds > threshold * model.milliseconds:
            break
    return best


def _better(combination: Combination, best: Best, trial: Trial) -> Best:
    times = trial(combination, best)
    return Best(combination, times) if times is not None and times < best.times else best
