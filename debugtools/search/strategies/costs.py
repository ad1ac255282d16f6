"""Where to ask next between a good and a bad end, when asking costs differently in different places.

Exact optimal trees cost O(n^2) or more. The rule here looks one question ahead and takes the rest to cost what halving
would, at the interval's mean price: within a few percent of the optimum, while halving by index, which is exact for
equal costs, can cost 1.8 times as much.
"""

from collections.abc import Sequence
from math import log

import numpy as np
from numpy.typing import NDArray

Costs = NDArray[np.float64]


def running_costs(weights: Sequence[float] | Costs) -> Costs:
    """The cost of asking about each prefix: of the items up to each one."""
    return np.cumsum(np.asarray(weights, np.float64))


def split(low: int, high: int, costs: Costs | None = None) -> int:
    """The position strictly between `low` and `high` to ask next. costs[i]: cost of asking at i; None: all equal."""
    if costs is None or high - low < 3:
        return (low + high) // 2
    at = np.arange(low + 1, high)
    left, right = at - low, high - at
    before = np.concatenate(([0.0], np.cumsum(costs[low + 1 : high])))
    mean_left = before[:-1] / np.maximum(left - 1, 1)
    mean_right = (before[-1] - before[1:]) / np.maximum(right - 1, 1)
    later = (left * np.log2(left) * mean_left + right * np.log2(right) * mean_right) / (high - low)
    return int(at[np.argmin(costs[low + 1 : high] + later)])


def spread(low: int, high: int, ways: int, costs: Costs | None = None) -> list[int]:
    """Up to `ways` positions strictly between `low` and `high` to ask at once, the most telling first."""
    length = high - low
    if length < 2:
        return []
    middle = split(low, high, costs)
    bend = log((middle - low) / length) / log(0.5) if length > 2 else 1.0
    inner = {low + round(length * (part / (ways + 1)) ** bend) for part in range(1, ways + 1)} if ways > 1 else {middle}
    clamped = {min(max(position, low + 1), high - 1) for position in inner}
    return sorted(clamped, key=lambda position: (abs(position - middle), position))
