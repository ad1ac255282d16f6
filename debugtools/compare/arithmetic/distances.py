"""Distances that follow from sums of squares and products."""

import math

from layerwise._tool.debugtools.compare.arithmetic.totals import Totals


def cosine(squares_a: float, squares_b: float, difference: float, product: float) -> float:
    """Cosine similarity from |a|^2, |b|^2, |a-b|^2 and (a-b).b, without cancellation for vectors almost parallel.

    1 - cos = | a/|a| - b/|b| |^2 / 2 = (|a-b|^2 - (|a|-|b|)^2) / (2 |a| |b|), with |a|^2-|b|^2 = 2 (a-b).b + |a-b|^2.
    Two zero vectors are alike (1), a zero vector is at right angles to any other (0).
    """
    a, b = math.sqrt(squares_a), math.sqrt(squares_b)
    if a == 0 or b == 0:
        return 1.0 if a == b else 0.0
    gap = (2 * product + difference) / (a + b)
    distance = (difference - gap * gap) / (2 * a * b)
    return distance if distance != distance else max(-1.0, min(1.0, 1.0 - distance))


def psnr(totals: Totals, size: int) -> float:
    """Peak signal-to-noise ratio in dB, over `size` elements; the peak is the first side's. inf where both agree."""
    if totals.difference == 0:
        return math.inf
    peak = float(totals.counted[0].high)
    return decibels((peak if not peak <= 0 else 1.0) ** 2 * size, totals.difference)


def decibels(signal: float, noise: float) -> float:
    """The ratio of two sums of squares in dB; inf without noise, -inf without signal."""
    if noise == 0:
        return math.inf
    if signal == 0:
        return -math.inf
    ratio = signal / noise if not (math.isinf(signal) and math.isinf(noise)) else math.nan
    if ratio != ratio:
        return math.nan
    return 10 * math.log10(ratio) if ratio > 0 else -math.inf


def ratio(part: float, whole: float) -> float:
    """A part of a whole; of a whole that is 0, inf, or 0 where the part is 0 too."""
    if whole == 0:
        return math.inf if part else 0.0
    return part / whole


def root_mean_square(squares: float, count: int) -> float:
    """From a sum of squares; 0 of nothing, infinite if anything was not finite."""
    if not count:
        return 0.0
    return math.sqrt(squares / count) if math.isfinite(squares) else math.inf
