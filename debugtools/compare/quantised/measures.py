"""How well codes hold values: in dB, against what the same format can do, by channel."""

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from layerwise._tool.backends.arrays import Array

_TINY = 1e-6
"""Relative error below which nothing is lost: FP32's own rounding, a few times."""


class Measured(Struct, frozen=True, eq=False):
    """Of values and what codes make of them, by channel (or of the whole as one). count: values of a channel.

    power: mean square of the values; error: of the difference; best: of the difference that the format explains.
    gain: by what factor they are off; shift: by how much on the average; both 1 and 0 but for rounding.
    """

    count: int
    power: Array
    error: Array
    best: Array
    gain: Array
    shift: Array

    @property
    def loss(self) -> Array:
        """dB lost beyond what the format explains, by channel; at least 0."""
        floor = _TINY**2 * np.maximum(self.power, self.power.mean() * 1e-6) + 1e-60
        with np.errstate(all="ignore"):
            found: Array = 10 * np.log10((self.error + floor) / (self.best + floor))
        return np.maximum(found, 0)

    @property
    def sqnr(self) -> float | None:
        """dB of all channels together; None where nothing is lost."""
        return decibel(float(self.power.mean()), float(self.error.mean()))

    @property
    def ideal(self) -> float | None:
        """dB that the format can have; None where it loses nothing."""
        return decibel(float(self.power.mean()), float(self.best.mean()))

    @property
    def whole_loss(self) -> float:
        """dB lost beyond what the format explains, of all channels together."""
        floor = _TINY**2 * float(self.power.mean()) + 1e-60
        return max(0.0, 10 * math.log10((float(self.error.mean()) + floor) / (float(self.best.mean()) + floor)))

    @property
    def excess(self) -> float:
        """Relative L2 error beyond what the format explains."""
        power = float(self.power.mean())
        return math.sqrt(max(0.0, float(self.error.mean()) - float(self.best.mean())) / power) if power else 0.0

    @property
    def noise(self) -> float:
        """Relative L2 error that the format explains."""
        power = float(self.power.mean())
        return math.sqrt(float(self.best.mean()) / power) if power else 0.0


def measured(values: Array, held: Array, best: Array, axis: int | None) -> Measured:
    """Measure. held: what the codes make of the values; best: what the format's best codes would; axis: of channels."""
    axes = tuple(i for i in range(values.ndim) if i != axis) if axis is not None else tuple(range(values.ndim))
    off = held - values
    count = max(1, values.size // (values.shape[axis] if axis is not None else 1))
    power, error, least = (_mean(each, each, axes) for each in (values, off, best - values))
    mean = np.mean(values, axis=axes, dtype=np.float64)
    both = _mean(values, held, axes) - mean * np.mean(held, axis=axes, dtype=np.float64)
    spread = power - mean**2
    with np.errstate(all="ignore"):
        gain = np.where(spread > 1e-12 * power, both / spread, 1.0)
    shift = np.mean(off, axis=axes, dtype=np.float64)
    parts = (power, error, least, gain, shift)
    return Measured(count, *(np.atleast_1d(np.asarray(part, np.float64)) for part in parts))


def _mean(one: Array, other: Array, axes: Sequence[int]) -> Array:
    found: Array = np.mean(np.multiply(one, other, dtype=np.float64), axis=tuple(axes))
    return found


def decibel(power: float, error: float) -> float | None:
    """The ratio of two mean squares; None where there is no error, or nothing to relate it to."""
    return 10 * math.log10(power / error) if power > 0 and error > _TINY**2 * power else None
