"""The job action `tensor_view`: one tensor of a comparison again, with its values.

A histogram of each side, one of the error, and the elements that are worst.
"""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.specs import FeedSpec, read_spec
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.arithmetic.metrics import Comparison
from layerwise._tool.debugtools.compare.rows import LayerRow
from layerwise._tool.debugtools.compare.run import run_comparison
from layerwise._tool.debugtools.compare.sides.setup import Setup
from layerwise._tool.debugtools.compare.spec import NO_FILES, CompareSpec, MarkSpec
from layerwise._tool.debugtools.compare.table.comparison import Enough

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


Floats = NDArray[np.float64]

BINS = 24
WORST = 40
CHUNK = 1 << 20
LARGEST = 8e307
LOWEST, HIGHEST = -12, 6
"""The error histogram has one bin a power of ten from 1e-12 to 1e6."""


def tensor_values(a: Array, b: Array, atol: float, rtol: float) -> dict[str, Any]:
    """Describe `a` against the reference `b` as plain JSON values.

    Of equal shapes of real numbers: `values` (common edges, counts of both sides), `errors` (|a - b| by powers of
    ten, exact ones apart), `worst` (the WORST largest errors with index, both values, absolute and relative error),
    `over` (elements beyond both tolerances). Otherwise only shapes and dtypes. Works in chunks: a few MB beside the
    arrays.
    """
    found: dict[str, Any] = {"shapes": [list(a.shape), list(b.shape)], "dtypes": [str(a.dtype), str(b.dtype)]}
    if a.shape != b.shape or not _numeric(a) or not _numeric(b):
        return found
    low, high = _range(a, b)
    edges = np.linspace(low, high, BINS + 1)
    counts = np.zeros((2, BINS), np.int64)
    errors = _Errors(atol, rtol)
    for start, x, y in _chunks(a, b):
        for side, part in enumerate((x, y)):
            counts[side] += np.histogram(part[np.isfinite(part)], edges)[0]
        errors.add(start, x, y)
    return found | {
        "values": {"edges": edges.tolist(), "counts": counts.tolist()},
        "errors": errors.histogram(),
        "over": errors.over,
        "size": a.size,
        "worst": [_element(a, b, place) for place in errors.worst()],
    }


def _numeric(array: Array) -> bool:
    return not array.dtype.hasobject and array.dtype.kind not in "cUSMm"


def _chunks(a: Array, b: Array) -> Iterator[tuple[int, Floats, Floats]]:
    flat_a, flat_b = a.reshape(-1), b.reshape(-1)
    for start in range(0, a.size, CHUNK):
        x, y = (flat[start : start + CHUNK].astype(np.float64) for flat in (flat_a, flat_b))
        yield start, x, y


def _range(a: Array, b: Array) -> tuple[float, float]:
    low, high = math.inf, -math.inf
    for _, *parts in _chunks(a, b):
        for part in parts:
            finite = part[np.isfinite(part)]
            if finite.size:
                low, high = min(low, float(finite.min())), max(high, float(finite.max()))
    if low > high:
        return 0.0, 1.0
    low, high = max(low, -LARGEST), min(high, LARGEST)
    return (low, high) if low < high else (low - 0.5, high + 0.5)


class _Errors:
    """Absolute errors, chunk by chunk."""

    def __init__(self, atol: float, rtol: float) -> None:
        self._atol, self._rtol = atol, rtol
        self._counts = np.zeros(HIGHEST - LOWEST + 2, np.int64)
        self._exact = self._odd = self.over = 0
        self._top: list[tuple[float, int]] = []

    def add(self, start: int, x: Floats, y: Floats) -> None:
        with np.errstate(all="ignore"):
            error = np.abs(x - y)
            error[(x == y) | (np.isnan(x) & np.isnan(y))] = 0.0
            error[np.isnan(error)] = np.inf
            relative = error / np.abs(y)
            self.over += int(np.count_nonzero((error > self._atol) & ~(relative <= self._rtol)))
            inside = error[(error > 0) & np.isfinite(error)]
            powers = np.clip(np.floor(np.log10(inside)), LOWEST - 1, HIGHEST).astype(np.int64) - (LOWEST - 1)
        self._counts += np.bincount(powers, minlength=len(self._counts))
        self._exact += int(np.count_nonzero(error == 0))
        self._odd += int(np.count_nonzero(np.isinf(error)))
        self._keep_worst(start, error)

    def _keep_worst(self, start: int, error: Floats) -> None:
        kept = min(WORST, error.size)
        places = np.argpartition(error, error.size - kept)[error.size - kept :]
        self._top += [(float(error[place]), start + int(place)) for place in places if error[place] > 0]
        self._top = sorted(self._top, key=lambda item: (-item[0], item[1]))[:WORST]

    def worst(self) -> list[int]:
        return [place for _, place in self._top]

    def histogram(self) -> dict[str, Any]:
        """counts[k]: errors in [10^(lowest+k-1), 10^(lowest+k)); the first and last take what is beyond."""
        return {"lowest": LOWEST, "counts": self._counts.tolist(), "exact": self._exact, "not_finite": self._odd}


def _element(a: Array, b: Array, place: int) -> dict[str, Any]:
    index = [int(i) for i in np.unravel_index(place, a.shape)]
    x, y = _value(a.reshape(-1)[place]), _value(b.reshape(-1)[place])
    error = abs(x - y) if x != y else 0
    relative = float(error / abs(y)) if y else (math.inf if error else 0.0)
    return {"index": index, "a": x, "b": y, "abs": float(error), "rel": relative}


def _value(value: Any) -> Any:
    kind = np.asarray(value).dtype.kind
    return int(value) if kind in "iub" else float(value)


class ViewSpec(msgspec.Struct):
    """Which tensor of which comparison; atol and rtol are those of its row (null: none)."""

    compare: CompareSpec
    tensor: str
    iteration: int = 0
    pair: tuple[int, int] = (0, 1)
    mode: str = ""
    atol: float | None = None
    rtol: float | None = None


def tensor_view(context: "JobContext") -> dict[str, Any]:
    """Run both sides again as the row's comparison did, observing this tensor only; return its row and values.

    The sides run the same feeds. Raises LayerwiseError when the tensor does not come out again.
    """
    view = read_spec(context.params, ViewSpec, "the tensor")
    skipped, spec = _alone(view)
    setup = Setup(spec)
    setup.start()
    found: list[dict[str, Any]] = []

    def take(row: LayerRow, result: Comparison, a: Array, b: Array) -> None:
        if row.tensor == view.tensor and row.iteration == skipped:
            atol, rtol = (row.atol if view.atol is None else view.atol), (row.rtol if view.rtol is None else view.rtol)
            values = tensor_values(a, b, float(atol or 0.0), float(rtol or 0.0))
            found.append({"row": msgspec.to_builtins(row), **values})
            raise Enough

    run_comparison(_Quiet(context), setup, take)  # type: ignore[arg-type]
    if not found:
        raise LayerwiseError(f"{shown(view.tensor, 200)} did not come out again on both sides")
    return found[0]


class _Quiet:
    """A job's context for a run whose rows are not wanted."""

    def __init__(self, context: "JobContext") -> None:
        self.artifacts: Path = context.artifacts
        self.folder: Path = context.folder
        self.warn = context.warn

    def log(self, text: str, level: str = "info") -> None: ...

    def row(self, table: str, row: object) -> None: ...

    def progress(self, done: float, total: float | None, unit: str = "", text: str = "") -> None: ...

    def previous_rows(self, table: str) -> list[dict[str, Any]]:
        return []


def _alone(view: ViewSpec) -> tuple[int, CompareSpec]:
    """The comparison of the one pair, and how many iterations of it come before the wanted one."""
    first, second = view.pair
    if not (0 <= first < len(view.compare.runners) and 0 <= second < len(view.compare.runners)):
        raise UsageError(f"the comparison has no sides {first} and {second}")
    skipped, feeds = feeds_from(view.compare.feeds, view.iteration)
    return skipped, msgspec.structs.replace(
        view.compare, runners=[view.compare.runners[first], view.compare.runners[second]], feeds=feeds,
        **_observing(view), truth=False, validate=False, fail_fast=False, check_average=False, **NO_FILES,
    )  # fmt: skip


def _observing(view: ViewSpec) -> dict[str, Any]:
    """The tensor alone; or all that were marked, where they decide what is computed."""
    if view.mode == "marked":
        return {"observe": view.mode}
    return {"marks": MarkSpec(names=[view.tensor], only=True)}


def feeds_from(feeds: FeedSpec, iteration: int) -> tuple[int, FeedSpec]:
    """Feeds that begin at (or before) an iteration, and how many of their feed dicts come before it.

    Synthetic data are seeded by iteration; files and scripts are read from their beginning, and
    what is planned is planned for all iterations.
    """
    if feeds.files or feeds.script or feeds.made == "auto":
        return iteration, msgspec.structs.replace(feeds, iterations=iteration + 1)
    shapes = {name: [given[iteration % len(given)]] for name, given in feeds.shapes.items() if given}
    return 0, msgspec.structs.replace(feeds, seed=feeds.seed + iteration, shapes=shapes, iterations=1)
