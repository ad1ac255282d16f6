"""A picture of a tensor's errors: its last two dimensions as panels in a grid, a panel a channel."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from layerwise._tool.debugtools.compare.plots import figure

Array = NDArray[Any]
PANELS = 49
_COLUMNS = 7


@dataclass(frozen=True)
class Sheet:
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


def save(sheets: Sequence[Sheet], title: str, shape: Sequence[int], path: Path) -> None:
    """Save the sheets of a tensor of `shape` side by side in one PNG; the title counts what is not drawn."""
    total = math.prod(shape[:-2])
    if total > PANELS:
        title += f"\n{PANELS} of {total} channels, those with the largest absolute errors; {total - PANELS} not drawn"
    made = figure.figure(title, width=6.4 * len(sheets))
    for number, drawn in enumerate(sheets):
        left, width = (number + 0.02) / len(sheets), 0.82 / len(sheets)
        axis = made.add_axes((left, 0.02, width, 0.8))
        image = axis.imshow(drawn.image, norm=drawn.norm, cmap="viridis", interpolation="nearest", aspect="auto")
        axis.set_axis_off()
        axis.set_title(drawn.word, fontsize="x-small", pad=12)
        for text, row, column in drawn.names:
            axis.text(column - 0.5, row - 0.6, text, fontsize=4, va="bottom")
        made.colorbar(image, cax=made.add_axes((left + 1.03 * width, 0.1, 0.02, 0.64))).minorticks_off()
    figure.save(made, path)


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
