"""Statistics and histograms of one array, as numbers and as Polygraphy's text.

All types are computed in float64 (min and max of integers exactly), in chunks that fit the cache.
"""

import math
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
from msgspec import Struct

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.tensors import EXTENDED_NAMES, dtype_name, is_floating, is_integral

CHUNK = 1 << 14  # elements: two chunks of float64 stay in the cache
BINS = 10
BAR = 40  # characters of the longest bar
QUANTILES = (0.5, 0.9, 0.95, 0.99)
Index = tuple[int, ...]


class Stats(Struct, frozen=True):
    """Statistics of one array. A NaN among the values makes all of them NaN, and `argmin` its first index.

    std, var: of the population. quantiles: median, p90, p95, p99, interpolated linearly; None if not requested.
    nan, inf: counts.
    """

    size: int
    mean: float
    var: float
    min: float | int
    argmin: Index
    max: float | int
    argmax: Index
    avg_magnitude: float
    nan: int
    inf: int
    quantiles: tuple[float, ...] | None

    @property
    def std(self) -> float:
        """The standard deviation."""
        return math.sqrt(self.var)


def array_stats(array: Array, quantiles: bool = True) -> Stats | None:
    """Return an array's statistics; None for no elements, text, complex numbers and raw bytes."""
    values = _numbers(array)
    if values is None or not values.size:
        return None
    flat = values.reshape(-1)
    with np.errstate(all="ignore"):
        sums = _Sums()
        for start in range(0, flat.size, CHUNK):
            sums.add(flat[start : start + CHUNK])
        low, high = int(flat.argmin()), int(flat.argmax())
        return Stats(
            size=flat.size,
            mean=sums.mean,
            var=sums.squares / flat.size,
            min=flat[low].item(),
            argmin=_index(low, array.shape),
            max=flat[high].item(),
            argmax=_index(high, array.shape),
            avg_magnitude=sums.magnitude / flat.size,
            nan=sums.nan,
            inf=sums.inf,
            quantiles=_quantiles(flat, sums.nan) if quantiles else None,
        )


def _index(place: int, shape: tuple[int, ...]) -> Index:
    return tuple(int(i) for i in np.unravel_index(place, shape))


def _numbers(array: Array) -> Array | None:
    """Return the values in a type that NumPy computes with; None if they are not real numbers."""
    name = dtype_name(array)
    if name == "bool":
        return array.view(np.uint8)
    if name in EXTENDED_NAMES:
        return array.astype(np.float32 if is_floating(name) else np.int8)
    return array if is_floating(name) or is_integral(name) else None


class _Sums:
    """Running sums; the chunks' variances are combined by Chan's formula (Stanford STAN-CS-79-773, 1979)."""

    def __init__(self) -> None:
        self.count = 0
        self.mean = self.squares = self.magnitude = 0.0
        self.nan = self.inf = 0
        self._wide = np.empty(CHUNK)
        self._scratch = np.empty(CHUNK)

    def add(self, values: Array) -> None:
        chunk, scratch = self._wide[: values.size], self._scratch[: values.size]
        chunk[:] = values
        mean = float(chunk.sum()) / chunk.size
        self.magnitude += float(np.abs(chunk, out=scratch).sum())
        if not math.isfinite(mean):
            self.nan += int(np.isnan(chunk).sum())
            self.inf += int(np.isinf(chunk).sum())
        chunk -= mean
        squares = float(np.multiply(chunk, chunk, out=scratch).sum())
        total = self.count + chunk.size
        step = mean - self.mean
        share = chunk.size / total
        self.squares += squares + step * step * self.count * share
        # 0 * inf would be NaN where the first chunk's mean is infinite
        self.mean = mean if not self.count or not math.isfinite(mean) else self.mean + step * share
        self.count = total


def _quantiles(flat: Array, nan: int) -> tuple[float, ...]:
    if nan:
        return (math.nan,) * len(QUANTILES)
    rest, found = flat.copy(), []
    done = 0  # positions before the rest, which hold smaller values
    for place in (q * (flat.size - 1) for q in QUANTILES):
        at = math.floor(place) - done
        rest.partition(at)  # only of the rest: three times faster than one partition for all positions
        rest, done = rest[at:], done + at
        low = float(rest[0])
        high = float(rest[1:].min()) if rest.size > 1 else low
        found.append(low if low == high or place == done else low + (high - low) * (place - done))
    return tuple(found)


def stats_text(array: Array) -> str:
    """Return the statistics as in Polygraphy's line after "Stats: ", followed by counts of NaN and Inf if any."""
    stats = array_stats(array)
    if stats is None:
        return "no elements" if not array.size else f"none for {dtype_name(array)}"
    parts = [f"mean={stats.mean:.5g}", f"std-dev={stats.std:.5g}", f"var={stats.var:.5g}"]
    if stats.quantiles is not None:
        parts.append(f"median={stats.quantiles[0]:.5g}")
    parts += [f"min={stats.min:.5g} at {stats.argmin}", f"max={stats.max:.5g} at {stats.argmax}"]
    parts.append(f"avg-magnitude={stats.avg_magnitude:.5g}")
    if stats.quantiles is not None and dtype_name(array) != "bool":
        p90, p95, p99 = stats.quantiles[1:]
        parts += [f"p90={p90:.5g}", f"p95={p95:.5g}", f"p99={p99:.5g}"]
    parts += [f"{name}={count}" for name, count in (("nan", stats.nan), ("inf", stats.inf)) if count]
    return ", ".join(parts)


def histogram(array: Array, span: tuple[float, float] | None = None) -> tuple[list[int], list[float]] | None:
    """Count the finite values in 10 bins over `span` (default: the values' range); return counts and 11 edges, those
    of FP32 as Polygraphy rounds them.

    None if there is nothing to count: text, bool, complex, no finite value.
    """
    values = None if dtype_name(array) == "bool" else _numbers(array)
    if values is None:
        return None
    finite: Any = values.reshape(-1)
    if finite.dtype.kind == "f":
        ok = np.isfinite(finite)
        finite = finite if ok.all() else finite[ok]
    if not finite.size:
        return None
    for numbers, within in _countable(finite, span):
        with suppress(ValueError):  # fewer numbers lie in the range than there are bins
            counts, edges = np.histogram(numbers, BINS, within)
            return counts.tolist(), edges.tolist()
    return None


def _countable(finite: Any, span: tuple[float, float] | None) -> Iterator[tuple[Any, tuple[float, float] | None]]:
    """The numbers and the range to count them in; what follows is for ranges that are too small for the one before."""
    low, high = span or (float(finite.min()), float(finite.max()))
    if finite.dtype == np.float32 and high - low <= np.finfo(np.float32).max:
        yield finite, span
    wide = finite.astype(np.float64)
    yield wide, span
    yield wide, (low, low + 2 * BINS * float(np.spacing(max(abs(low), abs(high)))))


def histogram_text(array: Array, span: tuple[float, float] | None = None) -> str:
    """Return the histogram (over `span`) as Polygraphy writes it; empty if there is none."""
    found = histogram(array, span)
    if found is None or not max(found[0]):
        return ""
    counts, edges = found
    ends = [f"{edge:.3g}" for edge in edges]
    first, second = max(map(len, ends)), max(map(len, ends[1:]))
    lines = ["---- Histogram ----", f"{'Bin Range':{first + second + 5}}|  Num Elems | Visualization"]
    for count, start, end in zip(counts, ends, ends[1:], strict=False):
        bar = "#" * int(BAR * count / max(counts))
        lines.append(f"({start:<{first}}, {end:<{second}}) | {count:10} | {bar}")
    left_out = array.size - sum(counts)
    if left_out and span is None:
        lines.append(f"{left_out} values are not finite")
    return "\n".join(lines)
