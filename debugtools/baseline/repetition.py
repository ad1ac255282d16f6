"""Flaky or not: whether what was seen beyond a bound is there to stay, from a few repetitions. Pure functions.

`beyond` asks how often repetitions are beyond a bound. With a uniform prior the rate of those beyond it has the
posterior Beta(1 + beyond, 1 + within), and the confidence in a regression is P(rate > 1/2): a value whose median moved
beyond its bound is beyond it in more than half of all runs (the sign test, with the answer that a reader wants). Five
of five give 0.984, four of five 0.89. `shifted` compares repetitions of then and of now without a bound: the exact rank
test of Mann and Whitney (1947), one-sided.

Where all repetitions give the same number to the last bit there is nothing to repeat: chance has no part in it.
"""

import math
from collections.abc import Callable, Sequence
from typing import Literal

from msgspec import Struct

SURE = 0.95
MOST = 12
Finding = Literal["regression", "chance", "unsure"]


class Repeated(Struct, frozen=True):
    """What repetitions tell. confidence: that it is a regression, 0…1. steady: all gave the same number.

    text: the same in words.
    """

    finding: Finding
    confidence: float
    repetitions: int
    beyond: int = 0
    steady: bool = False
    text: str = ""


def beyond(values: Sequence[float], bound: float, sure: float = SURE) -> Repeated:
    """Whether a number that should stay up to `bound` is beyond it in more than half of all runs.

    values: one a repetition; NaN and infinities are beyond. sure: how sure an answer must be. ValueError without any.
    """
    if not values:
        raise ValueError("nothing was repeated")
    count = sum(not value <= bound for value in values)
    n = len(values)
    if n > 1 and len({repr(value) for value in values}) == 1:
        text = f"the same in all {n} repetitions: chance has no part in it"
        return Repeated("regression" if count else "chance", float(bool(count)), n, count, True, text)
    confidence = above_half(count, n - count)
    finding: Finding = "regression" if confidence >= sure else "chance" if confidence <= 1 - sure else "unsure"
    text = f"beyond its bound in {count} of {n} repetitions: a regression with a confidence of {confidence:.3g}"
    return Repeated(finding, confidence, n, count, False, text)


def above_half(beyond: int, within: int) -> float:
    """P(rate > 1/2) for rate ~ Beta(1 + beyond, 1 + within): a binomial tail of n + 1 fair coins."""
    n = beyond + within + 1
    return float(sum(math.comb(n, k) for k in range(beyond + 1)) / 2**n)


def enough(values: Sequence[float], bound: float, sure: float = SURE, most: int = MOST) -> bool:
    """Whether further repetitions are of no use: the answer is sure, or as many as `most` were made."""
    if len(values) >= most:
        return True
    if len(values) < 2:
        return False
    found = beyond(values, bound, sure)
    return found.finding != "unsure" and (not found.steady or len(values) > 2)


def repeat(run: Callable[[int], float], bound: float, sure: float = SURE, most: int = MOST) -> Repeated:
    """Repeat until the answer is sure, or `most` times. run: takes the number of the repetition, from 0."""
    values: list[float] = []
    while not enough(values, bound, sure, most):
        values.append(run(len(values)))
    return beyond(values, bound, sure)


def shifted(then: Sequence[float], now: Sequence[float], sure: float = SURE) -> Repeated:
    """Whether numbers of now are larger than those of then, by their ranks. ValueError where one side has none."""
    if not then or not now:
        raise ValueError("both sides must have been repeated")
    wins = sum((b > a) + (b == a) / 2 for a in then for b in now)
    chance = _at_least(math.floor(wins), len(then), len(now))
    other = _at_least(math.floor(len(then) * len(now) - wins), len(then), len(now))
    finding: Finding = "regression" if chance <= 1 - sure else "chance" if other <= 0.5 else "unsure"
    text = f"larger than before with a confidence of {1 - chance:.3g} (ranks of {len(then)} and {len(now)} repetitions)"
    return Repeated(finding, 1 - chance, len(now), text=text)


def _at_least(wins: int, m: int, n: int) -> float:
    """P(U >= wins) where nothing differs; U: pairs in which the second is larger. Exact, by Mann's recursion."""
    counts = [1] + [0] * (m * n)  # of arrangements, by U: the Gaussian binomial coefficient (m + n over m)
    for k in range(1, m + 1):
        for u in range(m * n, n + k - 1, -1):
            counts[u] -= counts[u - n - k]
        for u in range(k, m * n + 1):
            counts[u] += counts[u - k]
    return float(sum(counts[max(0, wins) :]) / math.comb(m + n, m))
