"""The truth of the tensors that a locate job meets.

Both sides are held against it on the reference's tensors: the reference for what it made of them in its own run, the
suspect for what its region makes of them, rounded to the types that it takes (`debugtools.compare.truth.truths`).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.rows import Truth
from layerwise._tool.debugtools.compare.truth.evaluation import NoTruth
from layerwise._tool.debugtools.compare.truth.truths import Truths
from layerwise._tool.debugtools.locate.part import fit, fits
from layerwise._tool.debugtools.locate.walk import Met


class LocalTruths:
    """Tells the truth of each tensor of a walk, in its order. feed: the suspect's inputs, by the reference's names."""

    def __init__(self, truths: Truths, feed: Mapping[str, Array]) -> None:
        self._truths, self._feed = truths, feed
        self._types: dict[str, np.dtype[Any]] = {}

    def of(self, met: Met, accumulated: float | None) -> Truth:
        """Return the truth of a tensor. accumulated: the relative L2 difference in the whole run."""
        self._truths.keep(1, met.name, met.reference)
        if met.accumulated is not None:
            self._types[met.name] = met.accumulated.dtype
        try:
            return self._told(met, accumulated)
        except NoTruth as no:
            return Truth(why=str(no))
        finally:
            self._truths.done(met.name)

    def _told(self, met: Met, accumulated: float | None) -> Truth:
        feed = self._truths.fed(met.name)
        if met.local is None:
            raise NoTruth("the suspect cannot be run on the reference's inputs")
        given = {name: self._given(name, common, array) for name, (common, array) in feed.items()}
        theirs = {name: array for name, (_, array) in feed.items()}
        return self._truths.measure(met.name, (met.local, met.reference), (given, theirs), accumulated)

    def _given(self, name: str, common: str, array: Array) -> Array:
        """What the suspect was given for a tensor of the reference."""
        dtype = self._feed[name].dtype if name in self._feed else self._types.get(common)
        if dtype is not None and not fits(array, dtype):
            raise NoTruth(f"the suspect has its input {shown(common, 80)} as {dtype}")
        return fit(array, dtype)
