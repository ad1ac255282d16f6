"""What is wrong with an activation in few bits, beyond what its format explains."""

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.debugtools.compare.quantised.grid import Grid, limits, reach
from layerwise._tool.debugtools.compare.quantised.judging import LIMIT, FormatVerdict, figure
from layerwise._tool.debugtools.compare.quantised.measures import Measured


def judge_activation(values: Array, grid: Grid, reads: Grid, found: Measured) -> FormatVerdict:
    """Judge a quantised activation against the float original's values. grid: what it is quantised by; reads: what the
    codes are taken for. Whether both are alike is asked elsewhere.
    """
    loss = found.whole_loss
    if loss <= LIMIT:
        return FormatVerdict()
    outside = float(np.mean(grid.outside(values)))
    low, high = _range(values)
    if outside > 0.001:
        return _beyond(values, grid, outside, (low, high))
    used = used_share(values, grid)
    factor = figure(1 / max(used, 1e-9))
    text = f"its scale is {factor} times what the values ask for: they take up {used:.1%} of the codes"
    return FormatVerdict("scale", text)


def _beyond(values: Array, grid: Grid, outside: float, ends: tuple[float, float]) -> FormatVerdict:
    """Of values that the codes cannot reach."""
    low, high = reach(grid)
    wide = (high - low) / max(ends[1] - ends[0], 1e-30)
    if wide > 0.7 and limits(grid.kind).whole:
        text = f"its zero point is off: the codes reach from {figure(low)} to {figure(high)}, the values from "
        return FormatVerdict("zero point", f"{text}{figure(ends[0])} to {figure(ends[1])} ({outside:.1%} clipped)")
    text = f"{outside:.1%} of the values are clipped: they reach from {figure(ends[0])} to {figure(ends[1])}, "
    return FormatVerdict("clipped", f"{text}the codes from {figure(low)} to {figure(high)}")


def used_share(values: Array, grid: Grid) -> float:
    """The share of the codes' range that the values take up, 0 being one of them."""
    low, high = _range(values)
    ends = reach(grid)
    if grid.symmetric:
        largest = max(abs(low), abs(high))
        return largest / max(abs(ends[0]), abs(ends[1]), 1e-30)
    return (max(high, 0) - min(low, 0)) / max(ends[1] - ends[0], 1e-30)


def _range(values: Array) -> tuple[float, float]:
    return float(values.min(initial=0.0)), float(values.max(initial=0.0))
