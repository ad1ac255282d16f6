"""Heatmaps of errors and plots of errors against magnitude, where the extra `plots` (matplotlib) is installed."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backends.errors import MissingDependency
from backends.text import shown
from debugtools.compare.kinds import arithmetic
from debugtools.compare.order import errors
from debugtools.compare.spec import CompareSpec

Array = NDArray[Any]
_ROWS, _COLUMNS = 7, 7
_POINTS = 200_000  # more are thinned out evenly: they would only cover each other


class Plots:
    """Draws what a spec asks for, one tensor at a time. MissingDependency at once if matplotlib is not there."""

    def __init__(self, spec: CompareSpec) -> None:
        self._heatmaps = Path(spec.save_heatmaps) if spec.save_heatmaps else None
        self._scatter = Path(spec.save_error_plots) if spec.save_error_plots else None
        if self._heatmaps or self._scatter:
            _pyplot()

    def draw(self, row: dict[str, Any], runners: tuple[str, str], a: Array, b: Array) -> None:
        """Draw one pair of tensors; nothing for strings, empty tensors and different shapes."""
        if not (self._heatmaps or self._scatter):
            return
        how = arithmetic(a.dtype, b.dtype)
        if a.shape != b.shape or not a.size or how.kind in ("string", "none"):
            return
        stem = f"{_file_name(row['tensor'])}_{row['iteration']}_{row['pair'][0]}"
        for relative, word in ((False, "absolute"), (True, "relative")):
            error = errors(a, b, how, relative=relative).astype(np.float64).reshape(a.shape)
            title = (
                f"{word} error of {shown(row['tensor'], 80)}\n{shown(runners[0], 60)} against {shown(runners[1], 60)}"
            )
            if self._heatmaps:
                heatmaps(error, title, self._heatmaps, f"{stem}_{word}")
            if self._scatter:
                scatter(np.abs(b.astype(np.float64)), error, title, self._scatter / f"{stem}_{word}.png")


def heatmaps(error: Array, title: str, folder: Path, stem: str) -> None:
    """Save images of the last two dimensions, as many figures of 49 as it takes: `stem_0.png`, …

    One scale for all; it is logarithmic where the errors span more than three powers of ten.
    """
    images = error.reshape((-1, *(1, 1, *error.shape)[-2:]))
    norm = _norm(error)
    folder.mkdir(parents=True, exist_ok=True)
    for number, first in enumerate(range(0, len(images), _ROWS * _COLUMNS)):
        part = images[first : first + _ROWS * _COLUMNS]
        _heatmap_figure(part, first, f"{title}", norm, folder / f"{stem}_{number}.png")


def _heatmap_figure(images: Array, first: int, title: str, norm: Any, path: Path) -> None:
    plt = _pyplot()
    figure, axis = plt.subplots(constrained_layout=True)
    try:
        drawn = axis.imshow(_sheet(images), norm=norm, cmap="viridis", interpolation="nearest", aspect="auto")
        axis.set_axis_off()
        which = f", images {first} to {first + len(images) - 1} row by row" if len(images) > 1 else ""
        axis.set_title(_plain(title) + which, fontsize="x-small")
        figure.colorbar(drawn, ax=axis, shrink=0.7)
        figure.savefig(path, dpi=150)
    finally:
        plt.close(figure)


def _sheet(images: Array) -> Array:
    """Images (n, height, width) side by side on one, `_COLUMNS` a row: one drawing is far faster than 49."""
    count, height, width = images.shape
    columns = min(_COLUMNS, count)
    rows, gap = -(-count // columns), max(1, width // 30)
    sheet = np.full((rows * (height + gap) - gap, columns * (width + gap) - gap), np.nan)
    for number, image in enumerate(images):
        top, left = ((height + gap) * (number // columns), (width + gap) * (number % columns))
        sheet[top : top + height, left : left + width] = image
    return sheet


def scatter(magnitude: Array, error: Array, title: str, path: Path) -> None:
    """Save a plot of the errors (y) against the magnitude of the reference (x)."""
    plt = _pyplot()
    step = max(1, error.size // _POINTS)
    x, y = magnitude.reshape(-1)[::step], error.reshape(-1)[::step]
    kept = np.isfinite(x) & np.isfinite(y)
    figure, axis = plt.subplots(constrained_layout=True)
    try:
        axis.plot(x[kept], y[kept], ".", markersize=2)
        if np.any(y[kept] > 0):
            axis.set_yscale("log")
        axis.set(xlabel="magnitude of the reference", ylabel="error")
        axis.set_title(_plain(title), fontsize="small")
        axis.grid(linestyle=":")
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150)
    finally:
        plt.close(figure)


def _norm(error: Array) -> Any:
    from matplotlib.colors import LogNorm, Normalize

    finite = error[np.isfinite(error)]
    positive = finite[finite > 0]
    if positive.size and positive.max() > 1e3 * positive.min():
        return LogNorm(vmin=positive.min(), vmax=positive.max())
    top = float(finite.max()) if finite.size else 1.0
    return Normalize(vmin=0.0, vmax=top or 1.0)


def _plain(title: str) -> str:
    return title.replace("$", r"\$")  # matplotlib would read it as a formula


def _file_name(name: str) -> str:
    return "".join(c if c.isalnum() or c in "._-" else "_" for c in name)[:120]


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise MissingDependency("plots need matplotlib: pip install 'layerwise[plots]'") from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt
