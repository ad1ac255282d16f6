"""The cheapest candidates to keep in FP32 by single effects alone, whose squares add up to that of a set."""

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

_STEPS = 2000


class Item(Struct, frozen=True):
    """A candidate: its effect squared on each output, over the bound's square; the cost of keeping it in FP32."""

    squares: tuple[float, ...]
    cost: float


def cheapest(items: Sequence[Item], slack: float = 1.0, rest: Sequence[float] = ()) -> frozenset[int]:
    """Positions to keep, of the least cost so that what is left adds up to at most `slack` for every output; all of
    them where no set does. rest: what is low besides, for each output.
    """
    must = {k for k, item in enumerate(items) if not all(map(math.isfinite, item.squares))}
    free = [k for k in range(len(items)) if k not in must]
    outputs = len(items[0].squares) if items else 0
    more = rest or [0.0] * outputs
    kept = set(must)
    for _ in range(outputs):
        left = [sum(items[k].squares[o] for k in free if k not in kept) + more[o] for o in range(outputs)]
        worst = int(np.argmax(left)) if left else 0
        if not left or left[worst] <= slack:
            break
        kept |= _knapsack([(k, items[k].squares[worst], items[k].cost) for k in free if k not in kept],
                          left[worst] - slack)  # fmt: skip
    return frozenset(kept)


def _knapsack(given: Sequence[tuple[int, float, float]], needed: float) -> set[int]:
    """The cheapest ones whose squares add up to what is needed; costs in steps of a two thousandth of all."""
    total = sum(cost for _, _, cost in given) or 1.0
    prices = [max(1, math.ceil(_STEPS * cost / total)) for _, _, cost in given]
    size = sum(prices) + 1
    best: NDArray[np.float64] = np.full(size, -1.0)
    best[0] = 0.0
    taken = np.zeros((len(given), size), np.bool_)
    for row, ((_, square, _), price) in enumerate(zip(given, prices, strict=True)):
        moved = np.full(size, -1.0)
        moved[price:] = np.where(best[:-price] >= 0, best[:-price] + square, -1.0)
        taken[row] = moved > best
        best = np.maximum(best, moved)
    enough = np.flatnonzero(best >= needed * (1 - 1e-12))
    if not enough.size:
        return {k for k, _, _ in given}
    at, chosen = int(enough[0]), set()
    for row in range(len(given) - 1, -1, -1):
        if taken[row, at]:
            chosen.add(given[row][0])
            at -= prices[row]
    return chosen
