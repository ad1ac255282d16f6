"""How codes of few bits become values: scale, zero point, and along which axis or blocks they change."""

import math
from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.tensors import dtype_row
from layerwise._tool.debugtools.compare.arithmetic.tolerance import rounds_like, unit_roundoff
from layerwise._tool.debugtools.compare.quantised.codebooks import BOOKS, cells, nearest_level


class Limits(Struct, frozen=True):
    """low, high: the smallest and the largest code; whole: codes are integers."""

    low: float
    high: float
    whole: bool


@lru_cache(None)
def limits(kind: str) -> Limits:
    """The codes of a type by its name. KeyError for one that holds no codes."""
    if kind.startswith(("int", "uint")):
        bits = int(kind.lstrip("uint"))
        low, high = (0, 2**bits - 1) if kind.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        return Limits(low, high, True)
    if kind in BOOKS:
        return Limits(-1.0, 1.0, False)
    if not kind.startswith("float"):
        raise KeyError(kind)
    largest = float(ml_dtypes.finfo(dtype_row(kind).numpy).max)  # type: ignore[no-untyped-call]
    return Limits(-largest, largest, False)


class Grid(Struct, frozen=True, eq=False):
    """kind: type of the codes (a codebook's are its levels). scale, zero: FP32; zero is None where there is none.

    axis: along which scales change, if there are several; block: values of that axis that share one, 0 for one each.
    across: blocks are of all values in their order, so that one may end within a row and the next begin there; scales
    are [blocks] then. groups: of each place along the axis, which of the scales there is its own.
    A scale of the values' own shape holds one for each value.
    """

    kind: str
    scale: Array
    zero: Array | None = None
    axis: int = 0
    block: int = 0
    across: bool = False
    groups: Array | None = None

    @property
    def many(self) -> bool:
        """Whether there are several scales."""
        return self.scale.size > 1

    @property
    def symmetric(self) -> bool:
        """Whether the value 0 lies in the middle of the codes."""
        known = limits(self.kind)
        middle = 0.0 if known.low < 0 else (known.high + 1) / 2
        return not known.whole or (middle == 0 if self.zero is None else bool((self.zero == middle).all()))

    def spread(self, part: Array, shape: tuple[int, ...]) -> Array:
        """Scales or zero points so that they broadcast with values of that shape. ValueError if they do not fit."""
        if part.size == 1:
            return part.reshape(())
        if part.shape == shape:
            return part
        if self.across:
            return self._in_order(part, shape)
        axis = self.axis % max(1, len(shape))
        if self.groups is not None:
            return np.take(part, self.groups, axis)
        if self.block:
            wide = np.repeat(part, self.block, axis)
            return np.take(wide, np.arange(shape[axis]), axis) if wide.shape[axis] > shape[axis] else wide
        if part.ndim == len(shape) - 1 == 2:  # of an LSTM: directions, and its four gates
            return part[:, None, :]
        if part.size != shape[axis]:
            raise ValueError(f"{part.size} scales for {shape[axis]} channels")
        return part.reshape([-1 if i == axis else 1 for i in range(len(shape))])

    def _in_order(self, part: Array, shape: tuple[int, ...]) -> Array:
        size = math.prod(shape)
        if part.size != -(-size // self.block):
            raise ValueError(f"{part.size} scales for {size} values in blocks of {self.block}")
        return np.repeat(part.reshape(-1), self.block)[:size].reshape(shape)

    def fits(self, shape: tuple[int, ...]) -> bool:
        """Whether the scales fit values of that shape."""
        try:
            return np.broadcast_shapes(self.spread(self.scale, shape).shape, shape) == shape
        except (ValueError, IndexError):
            return False

    def values(self, codes: Array) -> Array:
        """What the codes stand for, in FP32."""
        found = np.array(codes, np.float32, order="C")
        if self.zero is not None:
            self._each(np.subtract, found, self.zero)
        self._each(np.multiply, found, self.scale)
        return found

    def _each(self, operator: "np.ufunc", values: Array, part: Array) -> None:
        """Change values in place by their scales or zero points; whole blocks as they lie, nothing repeated."""
        apart = self._apart(values, part)
        if apart is None:
            operator(values, self.spread(part, values.shape), out=values)
        else:
            each = part.reshape(-1, 1) if self.across else np.expand_dims(part, self.axis % values.ndim + 1)
            operator(apart, each, out=apart)

    def _apart(self, values: Array, part: Array) -> Array | None:
        """A view of values by blocks, places in a block on the axis after them; None where blocks do not fill it."""
        if not self.block or not values.flags.c_contiguous:
            return None
        if self.across:
            return values.reshape(-1, self.block) if part.size * self.block == values.size else None
        if part.ndim != values.ndim:
            return None
        axis, shape = self.axis % values.ndim, values.shape
        whole = (*shape[:axis], shape[axis] // self.block, *shape[axis + 1 :])
        if shape[axis] % self.block or part.shape != whole:
            return None
        return values.reshape(*shape[:axis], whole[axis], self.block, *shape[axis + 1 :])

    def steps(self, values: Array) -> Array:
        """The values in steps from code 0, neither rounded nor clipped."""
        found = np.array(values, np.float32, order="C")
        with np.errstate(all="ignore"):
            self._each(np.divide, found, self.scale)
            if self.zero is not None:
                self._each(np.add, found, self.zero)
        return found if np.isfinite(found).all() else np.nan_to_num(found)

    def codes(self, values: Array) -> Array:
        """The nearest codes."""
        return nearest(self.steps(values), self.kind)

    def rounded(self, values: Array) -> Array:
        """The values as the nearest codes hold them."""
        return self.values(self.codes(values))

    def usual(self, codes: Array) -> float:
        """Mean square of what rounding to these codes usually takes from values: of steps and cells that are evenly
        filled.
        """
        if limits(self.kind).whole:
            return float(np.mean(np.square(self.scale, dtype=np.float64))) / 12
        if self.kind in BOOKS:
            widths = replace(self, zero=None).values(cells(codes, self.kind))
            return float(np.mean(np.square(widths, dtype=np.float64))) / 12
        held = self.values(codes)
        return unit_roundoff([rounds_like(self.kind)]) ** 2 / 3 * float(np.mean(np.square(held, dtype=np.float64)))

    def outside(self, values: Array) -> Array:
        """Which values lie more than half a step beyond the codes."""
        known, steps = limits(self.kind), self.steps(values)
        slack = 0.5 if known.whole else known.high / 32
        found: Array = (steps < known.low - slack) | (steps > known.high + slack)
        return found

    def like(self, other: "Grid") -> bool:
        """Whether two grids say the same of the same codes."""
        return _alike(self.scale, other.scale) and _alike(_zero(self), _zero(other))

    def best(self, values: Array) -> "Grid":
        """The same format with the range that the values have (min-max); this grid if each value has its own scale."""
        if self.many and self.scale.shape == values.shape:
            return self
        known = limits(self.kind)
        low, high = (self._extreme(values, pick) for pick in (np.minimum, np.maximum))
        if self.symmetric:
            largest, middle = np.maximum(np.abs(low), np.abs(high)), (0.0 if known.low < 0 else (known.high + 1) / 2)
            scale = largest / (known.high - middle)
            zero = None if self.zero is None else np.full_like(scale, middle)
        else:
            low, high = np.minimum(low, 0), np.maximum(high, 0)
            scale = (high - low) / (known.high - known.low)
            scale = np.where(scale == 0, 1, scale)
            zero = np.clip(np.round(known.low - low / scale), known.low, known.high)
        return replace(self, scale=np.where(scale == 0, 1, scale).astype(np.float32), zero=zero)

    def to_lowest(self, values: Array) -> "Grid | None":
        """The same format with its lowest code for the value that is the largest without its sign, as onnxruntime's
        quantiser of blocks has it (its scale is negative where that value is above 0); None if it is not symmetric, of
        integers, or each value has its own scale.
        """
        known = limits(self.kind)
        if not (self.symmetric and known.whole) or (self.many and self.scale.shape == values.shape):
            return None
        low, high = (self._extreme(values, pick) for pick in (np.minimum, np.maximum))
        middle = 0.0 if known.low < 0 else (known.high + 1) / 2
        scale = np.where(high > -low, high, low) / (known.low - middle)
        zero = None if self.zero is None else np.full_like(scale, middle)
        return replace(self, scale=np.where(scale == 0, 1, scale).astype(np.float32), zero=zero)

    def sums(self, values: Array) -> Array:
        """The sum of the values that share a scale, in the scales' shape."""
        return self._extreme(values, np.add)

    def _extreme(self, values: Array, pick: Any) -> Array:
        """The smallest or largest value of each group that shares a scale (or their sum)."""
        axis = self.axis % max(1, values.ndim)
        if not self.many:
            return np.asarray(pick.reduce(values, axis=None), np.float32)
        if self.across:
            flat = np.ascontiguousarray(values).reshape(-1)
            return replace(self, across=False)._extreme(flat, pick)
        if self.groups is not None:
            order = np.argsort(self.groups, kind="stable")
            starts = np.searchsorted(self.groups[order], np.arange(self.scale.shape[axis]))
            ends = np.minimum(starts, len(order) - 1)  # of groups that no place is in
            return np.asarray(pick.reduceat(np.take(values, order, axis), ends, axis), np.float32)
        if self.block:
            if values.shape[axis] % self.block == 0 and values.flags.c_contiguous:
                shape = (*values.shape[:axis], -1, self.block, *values.shape[axis + 1 :])
                return _along(values.reshape(shape), axis + 1, pick)
            starts = np.arange(0, values.shape[axis], self.block)
            return np.asarray(pick.reduceat(values, starts, axis), np.float32)
        if self.scale.ndim > 1:
            return np.asarray(pick.reduce(values, axis=1), np.float32)
        others = tuple(i for i in range(values.ndim) if i != axis)
        return np.asarray(pick.reduce(values, axis=others), np.float32)

    def text(self, shape: tuple[int, ...] = ()) -> str:
        """Type, granularity and symmetry in words."""
        each = "per tensor"
        if self.across:
            each = f"blocks of {self.block} across rows"
        elif self.groups is not None:
            each = f"{self.scale.shape[self.axis]} groups along axis {self.axis}"
        elif self.block:
            each = f"blocks of {self.block} along axis {self.axis}"
        elif self.many:
            each = f"per channel, axis {self.axis}"
        way = ("symmetric" if self.symmetric else "asymmetric") if limits(self.kind).whole else "float"
        return f"{self.kind}, {each}, {way}"


def _along(values: Array, axis: int, pick: Any) -> Array:
    """The smallest or largest value along an axis; halves against each other, which is faster than along short rows."""
    found = np.moveaxis(values, axis, -1)
    while found.shape[-1] > 1 and found.shape[-1] % 2 == 0:
        half = found.shape[-1] // 2
        found = pick(found[..., :half], found[..., half:])
    return np.asarray(pick.reduce(found, axis=-1), np.float32)


def nearest(steps: Array, kind: str) -> Array:
    """Codes (as FP32) nearest to positions in steps, ties to even."""
    known = limits(kind)
    inside = np.clip(steps, known.low, known.high)
    if known.whole:
        return np.asarray(np.rint(inside))
    if kind in BOOKS:
        return nearest_level(inside, kind)
    return inside.astype(dtype_row(kind).numpy).astype(np.float32)


def _zero(grid: Grid) -> Array:
    return np.zeros(1, np.float32) if grid.zero is None else grid.zero


def _alike(one: Array, other: Array) -> bool:
    if one.size != other.size and 1 not in (one.size, other.size):
        return False
    with np.errstate(all="ignore"):
        return bool(np.allclose(one.reshape(-1), other.reshape(-1), rtol=1e-5, atol=0, equal_nan=True))


def rms(values: Array) -> float:
    """Root mean square, 0 for nothing."""
    flat = values.reshape(-1)
    return math.sqrt(float(np.dot(flat, flat)) / flat.size) if flat.size else 0.0


def reach(grid: Grid) -> tuple[float, float]:
    """The smallest and largest value that codes stand for."""
    known = limits(grid.kind)
    zero = 0.0 if grid.zero is None else grid.zero
    return float(np.min((known.low - zero) * grid.scale)), float(np.max((known.high - zero) * grid.scale))
