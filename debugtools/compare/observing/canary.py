"""The canary: did looking at tensors move the outputs?"""

import math
from collections.abc import Sequence

import numpy as np
from msgspec import structs

from layerwise._tool.backends.arrays import Array
from layerwise._tool.debugtools.compare.arithmetic.metrics import compare_arrays
from layerwise._tool.debugtools.compare.arithmetic.tolerance import Rule, rounding_bound
from layerwise._tool.debugtools.compare.result import CanaryReport
from layerwise._tool.debugtools.compare.spec import MetricName

_WORD = np.uint64
_COPIED = 1 << 16  # bytes up to which two copies are compared faster than the arrays
_CHUNK = 1 << 19


class Canary:
    """Compares the outputs of the plain runs with the same tensors as the observing runs gave them."""

    def __init__(self, metrics: Sequence[MetricName]) -> None:
        self._metrics = metrics
        self.checked = 0
        self.moved = 0.0
        self._within = True
        self._worst = ""
        self._flips: list[str] = []

    def check(
        self, name: str, runner: str, plain: Array, observed: Array, depth: int, types: Sequence[str] = (),
        explained: float = 0.0,
    ) -> bool:  # fmt: skip
        """Take in one output of one runner. Returns whether it is bit-equal to the plain run's.

        depth, types: rounded steps behind it, and what they rounded to. explained: relative L2 error besides, from
        layers that make small differences large.
        """
        self.checked += 1
        if same_bits(plain, observed):
            return True
        result = compare_arrays(observed, plain, Rule(), metrics=())
        by = math.inf if result.totals is None else float(result.totals.abs.high)
        bound = max(rounding_bound((*result.dtypes, *types), depth), explained)
        within = result.rel_l2 is not None and result.rel_l2 <= bound
        self._within = self._within and within
        if not by <= self.moved:
            self.moved, self._worst = by, f"{name} of {runner}"
        return False

    def verdicts(self, name: str, plain: tuple[Array, Array], observed: tuple[Array, Array], rule: Rule) -> None:
        """Note whether the observed pair would have got another verdict than the plain one.

        rule: by which one of them was judged, with what rounding explains if that decided.
        """
        settled = structs.replace(rule, auto=False)
        first, second = (compare_arrays(*pair, settled, metrics=self._metrics).passed for pair in (plain, observed))
        if first != second:
            self._flips.append(name)

    @property
    def ok(self) -> bool:
        """Whether rounding explains what looking did, and no verdict changes by it."""
        return self._within and not self._flips

    def report(self) -> CanaryReport | None:
        """The result's `canary`; None if nothing was observed."""
        if not self.checked:
            return None
        if self.moved == 0:
            text = "looking did not move the outputs: bit-equal to the plain runs"
        else:
            size = "within" if self._within else "beyond"
            text = f"looking moved the outputs by up to {self.moved:.3g} ({self._worst}), {size} what rounding explains"
        if self._flips:
            text += f"; the verdict changes for {', '.join(self._flips[:3])}"
        return CanaryReport(self.ok, self.moved, text)


def same_bits(a: Array, b: Array) -> bool:
    """True if two arrays are the same in type, shape and every bit."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.hasobject:
        return bool(np.array_equal(a, b))
    if a.nbytes <= _COPIED:
        return a.tobytes() == b.tobytes()
    first, second = (np.ascontiguousarray(side).reshape(-1).view(np.uint8) for side in (a, b))
    return all(
        bool((first[at : at + _CHUNK].view(_WORD) == second[at : at + _CHUNK].view(_WORD)).all())
        if at + _CHUNK <= first.size
        else first[at:].tobytes() == second[at:].tobytes()
        for at in range(0, first.size, _CHUNK)
    )
