"""Heatmaps of errors and plots of errors against magnitude, where the extra `plots` (matplotlib) is installed."""

from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from layerwise._tool.backends.errors import placing
from layerwise._tool.backends.filesystem.folders import whole_folder
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.arithmetic.kinds import arithmetic
from layerwise._tool.debugtools.compare.arithmetic.order_statistics import errors
from layerwise._tool.debugtools.compare.plots import figure, heatmaps
from layerwise._tool.debugtools.compare.rows import LayerRow
from layerwise._tool.debugtools.compare.spec import CompareSpec

Array = NDArray[Any]
_POINTS = 200_000  # more are thinned out evenly: they would only cover each other


class Plots:
    """Draws what a spec asks for, one tensor at a time. MissingDependency at once if matplotlib is not there.

    A context manager: the folders appear when it is left, unless an error is why.
    """

    def __init__(self, spec: CompareSpec) -> None:
        self._spec, self._stack = spec, ExitStack()
        self._heatmaps: Path | None = None
        self._scatter: Path | None = None
        if spec.save_heatmaps or spec.save_error_plots:
            figure.need_matplotlib()

    def __enter__(self) -> Self:
        self._heatmaps, self._scatter = map(self._folder, (self._spec.save_heatmaps, self._spec.save_error_plots))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def _folder(self, name: str | None) -> Path | None:
        if name is None:
            return None
        with placing(name):
            Path(name).parent.mkdir(parents=True, exist_ok=True)
        return self._stack.enter_context(whole_folder(Path(name), merge=True))

    def draw(self, row: LayerRow, runners: tuple[str, str], a: Array, b: Array) -> None:
        """Draw one pair of tensors, one heatmap and two plots; nothing for strings, empty ones and different shapes."""
        if not (self._heatmaps or self._scatter):
            return
        how = arithmetic(a.dtype, b.dtype)
        if a.shape != b.shape or not a.size or how.kind in ("string", "none"):
            return
        stem = f"{_file_name(row.tensor)}_{row.iteration}_{row.pair[0]}"
        title = f"error of {shown(row.tensor, 80)}\n{shown(runners[0], 60)} against {shown(runners[1], 60)}"
        chosen, sheets = None, []
        for relative, word in ((False, "absolute"), (True, "relative")):
            error = errors(a, b, how, relative=relative).astype(np.float64).reshape(a.shape)
            if self._heatmaps:
                chosen = heatmaps.worst_panels(error) if chosen is None else chosen
                sheets.append(heatmaps.sheet(error, word, chosen))
            if self._scatter:
                magnitude = np.abs(b.astype(np.complex128 if b.dtype.kind == "c" else np.float64))
                scatter(magnitude, error, f"{word} {title}", self._scatter / f"{stem}_{word}.png")
        if self._heatmaps:
            heatmaps.save(sheets, title, a.shape, self._heatmaps / f"{stem}.png")


def scatter(magnitude: Array, error: Array, title: str, path: Path) -> None:
    """Save a plot of the errors (y) against the magnitude of the reference (x)."""
    step = max(1, error.size // _POINTS)
    x, y = magnitude.reshape(-1)[::step], error.reshape(-1)[::step]
    kept = np.isfinite(x) & np.isfinite(y)
    made = figure.figure(title)
    axis = made.add_subplot()
    axis.plot(x[kept], y[kept], ".", markersize=2)
    if np.any(y[kept] > 0):
        axis.set_yscale("log")
    axis.set(xlabel="magnitude of the reference", ylabel="error")
    axis.grid(linestyle=":")
    figure.save(made, path)


def _file_name(name: str) -> str:
    return "".join(c if c.isalnum() or c in "._-" else "_" for c in name)[:120]
