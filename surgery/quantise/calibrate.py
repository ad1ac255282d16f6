"""Scales of tensors from their values: by the largest, by a percentile, by entropy, by the least squared error.

Ranges of activations are gathered feed by feed in a histogram that grows as values do.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from layerwise._tool.surgery.quantise.formats import MINI, Format
from layerwise._tool.surgery.quantise.numeric import Floats, Scale, nv_tensor_scale

Calibration = Literal["minmax", "percentile", "entropy", "mse"]
_BINS, _LEVELS, _TRIES = 2048, 128, 64
_TINY = np.float32(2.0**-126)


def scale_for(low: NDArray[np.floating], high: NDArray[np.floating], form: Format, *, symmetric: bool) -> Scale:
    """The scale with which `form` reaches from `low` to `high`. A symmetric one is centred: zero is stored as 0, or as
    the middle of an unsigned type. Without it the range is widened to hold zero, which is then stored exactly.
    """
    low, high = np.minimum(low, 0).astype(np.float32), np.maximum(high, 0).astype(np.float32)
    most = np.maximum(-low, high)
    if form.kind == "nv":
        return Scale(nv_tensor_scale(float(most.max(initial=0))), np.zeros((), np.float32))
    if form.kind == "float8":
        size = (most / np.float32(MINI[form.element].largest)).astype(np.float32)
        return _both(_scale(size), np.zeros_like(size))
    if symmetric:
        middle = np.float32((form.least + form.most + 1) // 2)
        size = most / (np.float32(form.most) - middle)
        return _both(_scale(size.astype(np.float32)), np.full_like(most, middle))
    scale = _scale(((high - low) / np.float32(form.most - form.least)).astype(np.float32))
    zero = np.clip(np.rint(np.float32(form.least) - low / scale), form.least, form.most)
    return _both(scale, zero)


def _both(scale: NDArray[np.floating], zero: NDArray[np.floating]) -> Scale:
    return Scale(np.asarray(scale, np.float32), np.asarray(zero, np.float32))


def _scale(value: NDArray[np.float32]) -> Floats:
    return np.where(value > 0, np.maximum(value, _TINY), np.float32(1)).astype(np.float32)


def weight_scale(
    array: Floats, form: Format, channel: int | None, *, symmetric: bool, calibration: Calibration = "minmax",
    percentile: float = 99.99,
) -> Scale:  # fmt: skip
    """The scale of a weight, of each channel along `channel`, or of all of it (None)."""
    axes = tuple(i for i in range(array.ndim) if channel is None or i != channel % array.ndim)
    low, high = (ends(axis=axes, keepdims=True, initial=0) for ends in (array.min, array.max))
    finite = array if np.isfinite(low).all() and np.isfinite(high).all() else _finite(array)
    if calibration == "percentile" and finite.size:
        share = (100 - percentile) / 2
        low, high = (np.percentile(finite, q, axis=axes, keepdims=True) for q in (share, 100 - share))
        return scale_for(low, high, form, symmetric=symmetric)
    if finite is not array:
        low, high = (ends(axis=axes, keepdims=True, initial=0) for ends in (finite.min, finite.max))
    plain = scale_for(low, high, form, symmetric=symmetric)
    if calibration == "minmax" or form.kind == "nv":
        return plain
    return _least_error(finite, form, low, high, axes, symmetric=symmetric)


def _finite(array: Floats) -> Floats:
    return np.where(np.isfinite(array), array, np.float32(0))


def _least_error(
    array: Floats, form: Format, low: Floats, high: Floats, axes: tuple[int, ...], *, symmetric: bool
) -> Scale:
    """The scale of each channel that leaves the least squared error, among shares of the whole range."""
    from layerwise._tool.surgery.quantise.numeric import fake

    best: Scale | None = None
    least: NDArray[np.float64] | None = None
    for share in np.linspace(1.0, 0.3, 15, dtype=np.float32):
        tried = scale_for(low * share, high * share, form, symmetric=symmetric)
        error = np.square(fake(array, form, tried) - array, dtype=np.float64).sum(axis=axes, keepdims=True)
        if best is None or least is None:
            best, least = tried, error
            continue
        better = error < least
        zero = np.where(better, tried.zero, best.zero).astype(np.float32)
        best = Scale(np.where(better, tried.scale, best.scale).astype(np.float32), zero)
        least = np.minimum(error, least)
    assert best is not None
    return best


class Range:
    """What is known of an activation's values over all feeds. channel: a range of each along it; None: one of all.
    ends: only the smallest and the largest value are asked for.
    """

    def __init__(self, channel: int | None = None, *, ends: bool = False) -> None:
        self._channel, self._ends = channel, ends
        self.low: NDArray[np.float32] | None = None
        self.high: NDArray[np.float32] | None = None
        self._counts = np.zeros(_BINS)
        self._most = 0.0

    def add(self, array: Floats) -> None:
        """Take the values of one feed."""
        axes = tuple(i for i in range(array.ndim) if self._channel is None or i != self._channel % array.ndim)
        if not np.isfinite(array).all():
            array = np.where(np.isfinite(array), array, np.float32(0))
        low = array.min(axis=axes, keepdims=self._channel is not None, initial=0)
        high = array.max(axis=axes, keepdims=self._channel is not None, initial=0)
        self.low = low if self.low is None else np.minimum(self.low, low)
        self.high = high if self.high is None else np.maximum(self.high, high)
        if not self._ends:
            self._count(array)

    def _count(self, array: Floats) -> None:
        """Signed values in bins of equal width over [-most, most]; the range doubles until it holds all."""
        most = float(np.abs(array).max(initial=0))
        if most == 0:
            self._counts[_BINS // 2] += array.size
            return
        self._most = self._most or most
        while most > self._most:
            pairs = self._counts.reshape(-1, 2).sum(axis=1)
            self._counts = np.zeros(_BINS)
            self._counts[_BINS // 4 : 3 * _BINS // 4] = pairs
            self._most *= 2
        self._counts += np.histogram(array, _BINS, (-self._most, self._most))[0]

    def scale(
        self, form: Format, *, symmetric: bool, calibration: Calibration = "minmax", percentile: float = 99.99
    ) -> Scale:
        """The scale for these values. Of a range of each channel by the largest value only."""
        assert self.low is not None and self.high is not None
        if calibration == "minmax" or self._channel is not None or form.kind == "nv" or not self._most:
            return scale_for(self.low, self.high, form, symmetric=symmetric)
        low, high = self._chosen(form, calibration, percentile, symmetric=symmetric)
        low, high = max(low, float(self.low)), min(high, float(self.high))
        return scale_for(np.asarray(low), np.asarray(high), form, symmetric=symmetric)

    def _chosen(
        self, form: Format, calibration: Calibration, percentile: float, *, symmetric: bool
    ) -> tuple[float, float]:
        edges = np.linspace(-self._most, self._most, _BINS + 1)
        if calibration == "percentile":
            share = (1 - percentile / 100) / 2
            below = np.cumsum(self._counts) / self._counts.sum()
            return float(edges[np.searchsorted(below, share)]), float(edges[np.searchsorted(below, 1 - share) + 1])
        centres = (edges[1:] + edges[:-1]) / 2
        if calibration == "mse":
            share = _least(centres, self._counts, form, self._low_high(), symmetric=symmetric)
        else:
            share = _entropy(np.abs(centres), self._counts, max(abs(end) for end in self._low_high()))
        low, high = self._low_high()
        return low * share, high * share

    def _low_high(self) -> tuple[float, float]:
        return float(np.min(self.low or 0)), float(np.max(self.high or 0))


def _least(
    centres: NDArray[np.float64], counts: NDArray[np.float64], form: Format, ends: tuple[float, float], *,
    symmetric: bool,
) -> float:  # fmt: skip
    """The share of the range that leaves the least squared error of a histogram."""
    from layerwise._tool.surgery.quantise.numeric import fake

    values = centres.astype(np.float32)
    errors = []
    shares = np.linspace(1.0, 1.0 / _TRIES, _TRIES)
    for share in shares:
        low, high = (np.asarray(end * share) for end in ends)
        off = fake(values, form, scale_for(low, high, form, symmetric=symmetric)) - values
        errors.append(float((counts * off.astype(np.float64) ** 2).sum()))
    return float(shares[int(np.argmin(errors))])


def _entropy(sizes: NDArray[np.float64], counts: NDArray[np.float64], most: float) -> float:
    """The share of the range with the least Kullback-Leibler divergence of what 128 levels make of the magnitudes, as
    TensorRT's and onnxruntime's calibrators have it.
    """
    magnitudes = np.histogram(sizes, _BINS // 2, (0, most), weights=counts)[0]
    best, least = 1.0, np.inf
    for last in range(_LEVELS, len(magnitudes) + 1, 8):
        given = magnitudes[:last].astype(np.float64)
        given[-1] += magnitudes[last:].sum()
        levels = np.minimum(np.arange(last) * _LEVELS // last, _LEVELS - 1)
        held = magnitudes[:last] > 0
        sums = np.bincount(levels, magnitudes[:last], _LEVELS)
        filled = np.bincount(levels, held, _LEVELS)
        made = np.where(held, (sums / np.maximum(filled, 1))[levels], 0.0)
        if not made.sum():
            continue
        p, q = given / given.sum(), made / made.sum()
        seen = p > 0
        divergence = float((p[seen] * np.log(p[seen] / np.maximum(q[seen], 1e-12))).sum())
        if divergence < least:
            best, least = last / len(magnitudes), divergence
    return best
