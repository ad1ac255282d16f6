"""What a lens measured of nodes, by the tensors that they make: columns of the Errors screen."""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from layerwise._tool.debugtools.search.lens.predict import predicted, worst
from layerwise._tool.debugtools.search.lens.rows import EffectRow


class LensEffects:
    """form: the format; job: the lens's number. Falsy without rows."""

    def __init__(self) -> None:
        self.job, self.form = 0, ""
        self._rows: dict[int, EffectRow] = {}
        self._found: dict[str, tuple[EffectRow, float]] | None = None

    def __bool__(self) -> bool:
        return bool(self._rows)

    def begin(self, job: int, form: str) -> None:
        """Forget the rows: those of another lens come, or the same anew."""
        self.job, self.form = job, form
        self._rows, self._found = {}, None

    def take(self, row: EffectRow) -> None:
        """Take a row; the newest of a node counts."""
        self._rows[row.i] = row
        self._found = None

    def of(self, tensor: str) -> tuple[EffectRow, float] | None:
        """The row of the node that makes a tensor, and its gain: by what share of itself the predicted error of all
        nodes in the format falls if it stays in FP32 (NaN where that is not known).
        """
        if self._found is None:
            sums = predicted(self._rows, self._rows)
            whole = worst(sums)
            self._found = {name: (row, _gain(row, sums, whole)) for row in self._rows.values() for name in row.outputs}
        return self._found.get(tensor)

    def column(self, name: str, tensors: Sequence[str]) -> npt.NDArray[np.float64]:
        """`effect` or `gain` of the makers of these tensors, NaN where nothing is known; inf: not finite."""
        found = (self.of(tensor) for tensor in tensors)
        return np.array([math.nan if each is None else _number(name, *each) for each in found], np.float64)


def _number(name: str, row: EffectRow, gain: float) -> float:
    if name == "gain":
        return gain
    return math.inf if row.effect is None else row.effect


def _gain(row: EffectRow, sums: dict[str, float], whole: float) -> float:
    if not whole or not math.isfinite(whole):
        return math.nan
    own = {effect.name: effect.error or 0.0 for effect in row.effects}
    return 1 - max(math.sqrt(max(0.0, sums[name] ** 2 - own.get(name, 0.0) ** 2)) for name in sums) / whole
