"""The local error of a body's nodes, with what rounding in them explains: the rule of the graph around it."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.tensors import dtype_name, is_floating
from layerwise._tool.debugtools.compare.table.rounding import InferredShapes, StepRule, made_by, steps_of
from layerwise._tool.debugtools.compare.table.step import Scale, scale_of_array
from layerwise._tool.debugtools.locate.part import Part
from layerwise._tool.debugtools.locate.tensor_error import Error, error_of
from layerwise._tool.debugtools.locate.walk import Met


class BodyErrors:
    """Of one trip, whose tensors come in order. feed: what the body reads in it."""

    def __init__(self, mine: Part, theirs: Part, feed: Mapping[str, Array]) -> None:
        self._cut, self._rule = mine.cut, StepRule(mine.spec.kind == theirs.spec.kind)
        self._shapes = {name: array.shape for name, array in feed.items() if isinstance(array, np.ndarray)}
        self._inferred = InferredShapes(mine.cut, dict(self._shapes))
        self._scales: dict[str, Scale] = {}
        for name in self._shapes:
            self._saw(name, feed[name])

    def of(self, met: Met, region: Sequence[int]) -> Error | None:
        """The local error of a tensor that `region` makes; None where that could not run."""
        self._saw(met.name, met.reference)
        if met.local is None:
            return None
        error = error_of(met.local, met.reference, (), len(region))
        if not error.bound or not error.beyond:
            return error
        made = made_by(steps_of(self._cut, region, str, self._inferred))
        types = dtype_name(met.local), dtype_name(met.reference)
        terms = made.terms(self._shapes.get, math.prod(met.reference.shape))
        inner = {name for i in region for name in self._cut.nodes[i].output}
        read = {name for i in region for name in self._cut.reads[i]} - inner
        scales = [self._scales[name] for name in sorted(read) if name in self._scales]
        return error.within(self._rule.bound(made, types, terms, scale_of_array(met.reference), scales))

    def _saw(self, name: str, array: Array) -> None:
        self._shapes[name] = array.shape
        if is_floating(dtype_name(array)) and name not in self._cut.initializers:
            self._scales[name] = scale_of_array(array)
