"""The job action `tensor_view`: one tensor of a comparison again, with its values."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.specs import FeedSpec, read_spec
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.arithmetic.comparison import Comparison
from layerwise._tool.debugtools.compare.rows import LayerRow
from layerwise._tool.debugtools.compare.run import run_comparison
from layerwise._tool.debugtools.compare.sides.setup import Setup
from layerwise._tool.debugtools.compare.spec import NO_FILES, CompareSpec, MarkSpec
from layerwise._tool.debugtools.compare.table.comparison import Enough
from layerwise._tool.debugtools.compare.tensor_values import TensorValues, tensor_values

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


class ViewSpec(msgspec.Struct):
    """Which tensor of which comparison; atol and rtol are those of its row (null: none)."""

    compare: CompareSpec
    tensor: str
    iteration: int = 0
    pair: tuple[int, int] = (0, 1)
    mode: str = ""
    atol: float | None = None
    rtol: float | None = None


def tensor_view(context: "JobContext") -> TensorValues:
    """Run both sides again as the row's comparison did, observing this tensor only; return its row and values.

    The sides run the same feeds. Raises LayerwiseError when the tensor does not come out again.
    """
    view = read_spec(context.params, ViewSpec, "the tensor")
    skipped, spec = _alone(view)
    setup = Setup(spec)
    setup.start()
    found: list[TensorValues] = []

    def take(row: LayerRow, result: Comparison, a: Array, b: Array) -> None:
        if row.tensor == view.tensor and row.iteration == skipped:
            atol, rtol = (row.atol if view.atol is None else view.atol), (row.rtol if view.rtol is None else view.rtol)
            values = tensor_values(a, b, float(atol or 0.0), float(rtol or 0.0))
            found.append(msgspec.structs.replace(values, row=row))
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
