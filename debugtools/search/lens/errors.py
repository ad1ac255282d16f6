"""How far outputs are off: sums of squares over all inputs, and the bound that a set must keep."""

import math
from collections.abc import Mapping

import numpy as np
from msgspec import Struct

from layerwise._tool.backends.arrays import Array
from layerwise._tool.debugtools.compare.arithmetic.tolerance import Tolerances
from layerwise._tool.debugtools.compare.spec import ToleranceSpec
from layerwise._tool.debugtools.search.lens.rows import OutputEffect
from layerwise._tool.debugtools.search.lens.spec import Bound

Tensors = Mapping[str, Array]


class Off(Struct):
    """One output against the reference over all inputs. squares: of the differences; whole: of the reference; dot, own:
    for the cosine; most: the largest difference; over: the largest, in tolerances. changed: share of other types'
    values that differ.
    """

    squares: float = 0.0
    whole: float = 0.0
    dot: float = 0.0
    own: float = 0.0
    most: float = 0.0
    over: float = 0.0
    differing: int = 0
    count: int = 0
    floats: bool = True

    @property
    def error(self) -> float:
        """Relative L2 error, or the share of values that differ."""
        if not self.floats:
            return self.differing / self.count if self.count else 0.0
        if not math.isfinite(self.squares):
            return math.inf
        return math.sqrt(self.squares / self.whole) if self.whole else (math.inf if self.squares else 0.0)

    @property
    def cosine(self) -> float:
        size = math.sqrt(self.whole * self.own)
        return self.dot / size if size else float(not self.squares)


class Errors:
    """Outputs of one set against the reference's, gathered input by input."""

    def __init__(self, tolerance: ToleranceSpec | None = None) -> None:
        self.outputs: dict[str, Off] = {}
        self._rules = None if tolerance is None else Tolerances(tolerance)

    def add(self, made: Tensors, reference: Tensors) -> None:
        for name, array in reference.items():
            off = self.outputs.setdefault(name, Off(floats=array.dtype.kind in "fc" or array.dtype.kind == "V"))
            if name not in made or made[name].shape != array.shape:
                off.squares = off.most = off.over = math.inf
                off.differing, off.count = off.differing + array.size, off.count + array.size
            elif off.floats:
                self._floats(off, name, made[name], array)
            else:
                off.differing += int((made[name] != array).sum())
                off.count += array.size

    def _floats(self, off: Off, name: str, made: Array, array: Array) -> None:
        if self._rules is None and _finite_floats(off, made, array):
            return
        a, b = made.astype(np.float64), array.astype(np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            apart = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, a - b)
        real = np.isfinite(b)
        off.squares += float(np.sum(apart * apart)) if np.isfinite(apart).all() else math.inf
        off.whole += float(np.sum(b[real] ** 2))
        seen = real & np.isfinite(a)
        off.own += float(np.sum(a[seen] ** 2))
        off.dot += float(np.sum(a[seen] * b[seen]))
        size = np.abs(np.where(np.isnan(apart), math.inf, apart))
        off.most = max(off.most, float(size.max(initial=0)))
        if self._rules is not None:
            rule = self._rules.rule(name)
            allowed = np.maximum(rule.atol, rule.rtol * np.where(real, np.abs(b), 0.0))
            with np.errstate(divide="ignore", invalid="ignore"):
                over = np.where(size == 0, 0.0, size / allowed)
            off.over = max(off.over, float(over.max(initial=0)))

    @property
    def worst(self) -> float:
        """The relative L2 error of the worst output; share of values that differ where none is of floats."""
        floats = [off.error for off in self.outputs.values() if off.floats]
        return max(floats or [off.error for off in self.outputs.values()], default=0.0)

    def rows(self) -> list[OutputEffect]:
        return [OutputEffect(name, finite(off.error), not off.floats) for name, off in self.outputs.items()]


def _finite_floats(off: Off, made: Array, array: Array) -> bool:
    """Take in an output all of whose values are finite on both sides, in as few passes as that takes; False if it is
    another one, of which nothing was taken in.
    """
    b = array.reshape(-1).astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.subtract(made.reshape(-1), b, dtype=np.float64)
        squares, whole, across = (_dot(*pair) for pair in ((apart, apart), (b, b), (apart, b)))
    if not math.isfinite(squares + whole):
        return False
    off.squares += squares
    off.whole += whole
    off.own += whole + 2 * across + squares
    off.dot += whole + across
    ends = (float(apart.max(initial=0.0)), float(-apart.min(initial=0.0)))
    off.most = max(off.most, *ends)
    return True


def _dot(a: Array, b: Array) -> float:
    """By numpy itself: threads of BLAS wait for each other where sessions compute too."""
    return float(np.einsum("i,i->", a, b))


def finite(value: float | None) -> float | None:
    """The value, None for what JSON does not have."""
    return value if value is not None and math.isfinite(value) else None


def over(bound: Bound, errors: Errors) -> float:
    """How often the bound is reached by the worst output: 1 is just within; inf of one that leaves no room, unless
    nothing is off. Not of a score.
    """
    floats = [off for off in errors.outputs.values() if off.floats]
    if bound.metric == "tolerance":
        return max((off.over for off in floats), default=0.0)
    if bound.metric == "max_abs":
        return _times(max((off.most for off in floats), default=0.0), bound.value)
    if bound.metric == "cosine":
        return max((_times(max(1 - off.cosine, 0.0), 1 - bound.value) for off in floats), default=0.0)
    return _times(errors.worst, allowed(bound))


def _times(error: float, room: float) -> float:
    if error <= 0:
        return 0.0
    return error / room if room > 0 else math.inf


def allowed(bound: Bound) -> float:
    """The relative L2 error that the bound comes to, as far as it is one; else a first guess."""
    if bound.metric == "sqnr":
        return float(10 ** (-bound.value / 20))
    if bound.metric == "cosine":
        return math.sqrt(max(0.0, 2 * (1 - bound.value)))
    return bound.value


def root_mean_square(array: Array) -> float:
    """Of the finite values of floats; 0 where there are none."""
    if array.dtype.kind != "f" or not array.size:
        return 0.0
    values = array[np.isfinite(array)].astype(np.float64)
    return float(np.sqrt(np.mean(values * values))) if values.size else 0.0
