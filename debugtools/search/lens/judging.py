"""Whether a set keeps the bound: what its outputs come to, over what is allowed."""

import math
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.scripts import load_function, script_errors
from layerwise._tool.debugtools.compare.arithmetic.tolerance import Tolerances
from layerwise._tool.debugtools.compare.spec import ToleranceSpec
from layerwise._tool.debugtools.search.lens.chain import Tensors
from layerwise._tool.debugtools.search.lens.errors import Errors, allowed, over, root_mean_square
from layerwise._tool.debugtools.search.lens.lens import Lens
from layerwise._tool.debugtools.search.lens.spec import Bound

_PEAK = 4.0  # the largest of many errors over their root mean square, about


class Judging:
    """bound: of a lens. UsageError for a script without such a function."""

    def __init__(self, bound: Bound, tolerance: ToleranceSpec, lens: Lens) -> None:
        self._bound, self._tolerance, self._lens = bound, tolerance, lens
        self._path, self._score = Path(), None
        if bound.metric == "score":
            path, colon, name = bound.script.rpartition(":")
            self._path = Path(path if colon else bound.script)
            self._score = load_function(self._path, name if colon else "score")

    def allowed(self) -> float:
        """The relative L2 error that the choice begins with."""
        if self._bound.metric in ("tolerance", "max_abs"):
            return max(min(self._allowed_each(), default=1e-2), 1e-12)
        return 0.05 if self._score is not None else max(allowed(self._bound), 1e-12)

    def _allowed_each(self) -> Iterator[float]:
        """What the tolerance of each output of floats comes to, over its root mean square."""
        rules = Tolerances(self._tolerance)
        for name in self._lens.reference[0]:
            arrays = [outputs[name] for outputs in self._lens.reference]
            size = max(map(root_mean_square, arrays))
            if not size:
                continue
            if self._bound.metric == "max_abs":
                yield self._bound.value / size / _PEAK
            else:
                rule = rules.rule(name)
                yield max(rule.rtol, rule.atol / size)

    def measured(self, low: Collection[int]) -> tuple[Errors, float]:
        """What these candidates do, on the switchboard, and how often the bound is reached (at most 1: it is kept)."""
        settings = {i: self._lens.setting(self._lens.by_i[i]) for i in low}
        return self.judged(list(self._lens.outputs(settings)))

    def judged(self, outputs: Iterable[Tensors]) -> tuple[Errors, float]:
        """The same of outputs, of each input in turn."""
        made = list(outputs)
        errors = self._lens.errors_of(made)
        if self._score is None:
            return errors, over(self._bound, errors)
        value = self._scored(made)
        return errors, 0.0 if value >= self._bound.value else 2.0

    def _scored(self, made: list[Tensors]) -> float:
        score: Any = self._score
        mine, reference = (_copies(arrays) for arrays in (made, self._lens.reference))
        with script_errors(self._path, "the score"):
            value = score(mine, reference)
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise UsageError(f"the score is no number: {type(value).__name__}") from None
        if math.isnan(number):
            raise UsageError("the score is not a number (NaN)")
        return number


def _copies(outputs: Iterable[Tensors]) -> list[Tensors]:
    """What a script may change."""
    return [{name: array.copy() for name, array in arrays.items()} for arrays in outputs]
