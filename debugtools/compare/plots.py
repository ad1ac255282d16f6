"""Heatmaps of errors and plots of errors against magnitude, where the extra `plots` (matplotlib) is installed."""

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import placing
from layerwise._tool.backends.filesystem.files import atomic_writer
from layerwise._tool.backends.filesystem.folders import whole_folder
from layerwise._tool.backends.filesystem.permissions import make_folder
from layerwise._tool.backends.installed import require
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.arithmetic.kinds import arithmetic
from layerwise._tool.debugtools.compare.arithmetic.order_statistics import errors
from layerwise._tool.debugtools.compare.rows import LayerRow
from layerwise._tool.debugtools.compare.spec import CompareSpec

if TYPE_CHECKING:
    from typing_extensions import Self

_POINTS = 200_000  # more are thinned out evenly: they would only cover each other
PANELS = 49
_COLUMNS = 7
_DPI = 150


def need_matplotlib() -> None:
    """MissingDependency if matplotlib is not installed."""
    require("matplotlib", "a plot")


def figure(title: str, width: float = 6.4) -> Any:
    """Return an empty figure, `width` x 4.8 inches; its upper eighth is for the title, of up to three lines."""
    from matplotlib.figure import Figure

    made = Figure(figsize=(width, 4.8), dpi=_DPI)
    made.suptitle(title.replace("$", r"\$"), fontsize="x-small", y=0.99)  # matplotlib would read it as a formula
    return made


def save(made: Any, path: Path) -> None:
    """Write a figure as PNG; its title is the file's too."""
    with placing(path):
        make_folder(path.parent)
    with atomic_writer(path) as stream:
        made.savefig(stream, format=path.suffix[1:] or "png", metadata={"Title": made.get_suptitle()})


class Sheet(Struct, frozen=True):
    """Panels of one kind of error side by side, on one scale for the whole tensor.

    names: (text, row, column) of each panel, where there is more than one.
    """

    word: str
    image: Array
    norm: Any
    names: Sequence[tuple[str, int, int]]


def worst_panels(error: Array) -> NDArray[np.intp]:
    """Return which panels of an error (any shape) are drawn, in order: all, or the PANELS with the largest errors."""
    panels = _panels(error)
    if len(panels) <= PANELS:
        return np.arange(len(panels))
    largest = panels.reshape(len(panels), -1).max(axis=1)
    largest[np.isnan(largest)] = np.inf
    return np.sort(np.argsort(-largest, kind="stable")[:PANELS])


def sheet(error: Array, word: str, chosen: NDArray[np.intp]) -> Sheet:
    """Put the chosen panels of an error on one image: one drawing is far faster than 49.

    The scale is logarithmic where the errors of the tensor span more than three powers of ten.
    """
    panels = _panels(error)[chosen]
    count, height, width = panels.shape
    columns = min(_COLUMNS, count)
    down, right = height + -(-height // 5), width + max(1, width // 30)
    image = np.full((-(-count // columns) * down, columns * right), np.nan)
    names = []
    for number, panel in enumerate(panels):
        row, column = down * (number // columns), right * (number % columns)
        image[row : row + height, column : column + width] = panel
        names.append((_index(int(chosen[number]), error.shape[:-2]), row, column))
    return Sheet(word, image[: height - down, : width - right], _norm(error), names if count > 1 else ())


def save_sheets(sheets: Sequence[Sheet], title: str, shape: Sequence[int], path: Path) -> None:
    """Save the sheets of a tensor of `shape` side by side in one PNG; the title counts what is not drawn."""
    total = math.prod(shape[:-2])
    if total > PANELS:
        title += f"\n{PANELS} of {total} channels, those with the largest absolute errors; {total - PANELS} not drawn"
    made = figure(title, width=6.4 * len(sheets))
    for number, drawn in enumerate(sheets):
        left, width = (number + 0.02) / len(sheets), 0.82 / len(sheets)
        axis = made.add_axes((left, 0.02, width, 0.8))
        image = axis.imshow(drawn.image, norm=drawn.norm, cmap="viridis", interpolation="nearest", aspect="auto")
        axis.set_axis_off()
        axis.set_title(drawn.word, fontsize="x-small", pad=12)
        for text, row, column in drawn.names:
            axis.text(column - 0.5, row - 0.6, text, fontsize=4, va="bottom")
        made.colorbar(image, cax=made.add_axes((left + 1.03 * width, 0.1, 0.02, 0.64))).minorticks_off()
    save(made, path)


def _panels(error: Array) -> Array:
    return error.reshape((-1, *(1, 1, *error.shape)[-2:]))


def _index(number: int, leading: Sequence[int]) -> str:
    return ",".join(str(int(i)) for i in np.unravel_index(number, leading)) if leading else ""


def _norm(error: Array) -> Any:
    from matplotlib.colors import LogNorm, Normalize

    finite = error[np.isfinite(error)]
    positive = finite[finite > 0]
    if positive.size and positive.max() > 1e3 * positive.min():
        return LogNorm(vmin=positive.min(), vmax=positive.max())
    top = float(finite.max()) if finite.size else 1.0
    return Normalize(vmin=0.0, vmax=top or 1.0)


class Plots(ExitStack):
    """Draws what a spec asks for, one tensor at a time. MissingDependency at once if matplotlib is not there.

    A context manager: the folders appear when it is left, unless an error is why.
    """

    def __init__(self, spec: CompareSpec) -> None:
        super().__init__()
        self._spec = spec
        self._heatmaps: Path | None = None
        self._scatter: Path | None = None
        if spec.save_heatmaps or spec.save_error_plots:
            need_matplotlib()

    def __enter__(self) -> "Self":
        folders = (name and Path(name) for name in (self._spec.save_heatmaps, self._spec.save_error_plots))
        self._heatmaps, self._scatter = (self.enter_context(merged_folder(path)) if path else None for path in folders)
        return self

    def draw(self, row: LayerRow, runners: tuple[str, str], a: Array, b: Array) -> None:
        """Draw one pair of tensors, one heatmap and two plots; nothing for strings, empty ones and different shapes."""
        if not (self._heatmaps or self._scatter):
            return
        how = arithmetic(a.dtype, b.dtype)
        if a.shape != b.shape or not a.size or how.kind in ("string", "none"):
            return
        stem = f"{file_name(row.tensor, 120)}_{row.iteration}_{row.pair[0]}"
        title = f"error of {shown(row.tensor, 80)}\n{shown(runners[0], 60)} against {shown(runners[1], 60)}"
        chosen, sheets = None, []
        for relative, word in ((False, "absolute"), (True, "relative")):
            error = errors(a, b, how, relative=relative).astype(np.float64).reshape(a.shape)
            if self._heatmaps:
                chosen = worst_panels(error) if chosen is None else chosen
                sheets.append(sheet(error, word, chosen))
            if self._scatter:
                magnitude = np.abs(b.astype(np.complex128 if b.dtype.kind == "c" else np.float64))
                scatter(magnitude, error, f"{word} {title}", self._scatter / f"{stem}_{word}.png")
        if self._heatmaps:
            save_sheets(sheets, title, a.shape, self._heatmaps / f"{stem}.png")


def scatter(magnitude: Array, error: Array, title: str, path: Path) -> None:
    """Save a plot of the errors (y) against the magnitude of the reference (x)."""
    step = max(1, error.size // _POINTS)
    x, y = magnitude.reshape(-1)[::step], error.reshape(-1)[::step]
    kept = np.isfinite(x) & np.isfinite(y)
    made = figure(title)
    axis = made.add_subplot()
    axis.plot(x[kept], y[kept], ".", markersize=2)
    if np.any(y[kept] > 0):
        axis.set_yscale("log")
    axis.set(xlabel="magnitude of the reference", ylabel="error")
    axis.grid(linestyle=":")
    save(made, path)


def file_name(name: str, most: int) -> str:
    """A tensor's name as one of a file, of at most so many characters."""
    return "".join(c if c.isalnum() or c in "._-" else "_" for c in name)[:most]


def merged_folder(path: Path) -> AbstractContextManager[Path]:
    """A folder to fill, whose files are put among those at `path` in the end. Unwritable where there can be none."""
    with placing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    return whole_folder(path, merge=True)
