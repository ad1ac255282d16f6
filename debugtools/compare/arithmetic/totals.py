"""What one pass over a pair of tensors gives: bounds with their places, mean, deviation, non-finite counts, sums."""

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from layerwise._tool.backends.arrays import Array

Number = float | int


class Moments:
    """Minimum, maximum (first place each; NaN wins, as in NumPy), sum and sum of squares in float64."""

    __slots__ = ("count", "high", "high_at", "low", "low_at", "squares", "total")

    def __init__(self) -> None:
        self.count = 0
        self.total = self.squares = 0.0
        self.low: Number = math.inf
        self.high: Number = -math.inf
        self.low_at = self.high_at = 0

    def add(self, total: float, squares: float, count: int) -> None:
        self.total += total
        self.squares += squares
        self.count += count

    def bounds(self, values: Array, offset: int) -> tuple[Number, Number]:
        """Take in the bounds of one chunk that starts at flat index `offset`, and return them."""
        low, high = values.min().item(), values.max().item()
        self.bound(low, high, values, offset)
        return low, high

    def bound(self, low: Number, high: Number, values: Array, offset: int) -> None:
        """The same for bounds that are known already."""
        bound_alike((self,), low, high, values, offset)

    @property
    def mean(self) -> float:
        return self.total / self.count if self.count else math.nan

    @property
    def deviation(self) -> float:
        """Population standard deviation; NaN if anything was not finite."""
        if not self.count:
            return math.nan
        mean = self.total / self.count
        variance = self.squares / self.count - mean * mean
        return math.sqrt(max(0.0, variance)) if variance == variance else math.nan


def bound_alike(each: Sequence[Moments], low: Number, high: Number, values: Array, offset: int) -> None:
    """Take the known bounds of one chunk, which starts at flat index `offset`, into all of `each`; a place is looked
    for once.
    """
    at = -1
    for moments in each:
        if not low >= moments.low and moments.low == moments.low:
            at = at if at >= 0 else offset + int(values.argmin())
            moments.low, moments.low_at = low, at
    at = -1
    for moments in each:
        if not high <= moments.high and moments.high == moments.high:
            at = at if at >= 0 else offset + int(values.argmax())
            moments.high, moments.high_at = high, at


class SideStatistics:
    """What is known of the values of one side."""

    __slots__ = ("first_inf", "first_nan", "infs", "magnitude", "moments", "nans")

    def __init__(self) -> None:
        self.moments = Moments()
        self.magnitude = 0.0
        self.nans = self.infs = 0
        self.first_nan = self.first_inf = -1

    def count_bad(self, values: Array, offset: int) -> None:
        """Count and place NaN and Inf in a chunk that is known to hold some."""
        bad = np.isnan(values)
        self.nans, self.first_nan = _tally(bad, self.nans, self.first_nan, offset)
        bad = np.isinf(values)
        self.infs, self.first_inf = _tally(bad, self.infs, self.first_inf, offset)


def _tally(mask: Array, count: int, first: int, offset: int) -> tuple[int, int]:
    found = int(np.count_nonzero(mask))
    if found and first < 0:
        first = offset + int(mask.argmax())
    return count + found, first


class Totals(Struct):
    """All that one fused pass over a pair of tensors gives; every metric follows from it.

    difference, product: sum of (a-b)^2 and of (a-b)*b in float64. over: elements beyond both tolerances.
    sentinels: elements left out of all but a and b; others: moments of both sides without them, where there are any.
    """

    a: SideStatistics
    b: SideStatistics
    abs: Moments
    rel: Moments
    difference: float = 0.0
    product: float = 0.0
    over: int = 0
    sentinels: int = 0
    others: tuple[Moments, Moments] | None = None

    def within(self, atol: float, rtol: float) -> bool:
        """Whether no element can be over: all errors, or all ratios, are at most the tolerance."""
        return worst(self.abs) <= atol or worst(self.rel) <= rtol

    @property
    def counted(self) -> tuple[Moments, Moments]:
        """Moments of both sides without sentinels."""
        return self.others or (self.a.moments, self.b.moments)


def worst(moments: Moments) -> Number:
    """The maximum; 0 for an empty tensor."""
    return moments.high if moments.count else 0.0
