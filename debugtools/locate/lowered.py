"""Sides that compute in a low type as a whole, and the steps on which they leave it: rounding there is no fault."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.tensors import dtype_name, is_integral
from layerwise._tool.debugtools.compare.quantised.coarsest import rounded_to
from layerwise._tool.debugtools.compare.sides.side import ModelSide, Side
from layerwise._tool.debugtools.locate.walk import Met
from layerwise._tool.surgery.cut.explode import Regions

if TYPE_CHECKING:
    import onnx

    from layerwise._tool.surgery.cut.segments import GraphCut

_EDGE = 0.5  # of the numbers
_HUGE, _END = np.float32(1e30), np.float32(60000)
_LOW = frozenset({"float16", "bfloat16"})
_FEW = 2  # weights that somebody may have written by hand


class Lowered:
    """first, second: the sides. names: the tensors that both have."""

    def __init__(self, first: ModelSide, second: Side, names: Iterable[str]) -> None:
        self._first, self._second, self._names = first, second, names
        self._mine = usual_type(first.model.cut)
        has_graph = isinstance(second, ModelSide) and second.model.has_graph
        self._theirs = usual_type(second.model.cut) if isinstance(second, ModelSide) and has_graph else ""

    def met(self, met: Met) -> Met:
        """A tensor, what a mask hides written as in the reference: a side in FP16 has its lowest number there,
        one in bfloat16 infinity."""
        if not _LOW & {self._mine, self._theirs} or met.reference.dtype.kind not in "fV":
            return met
        one = met.accumulated is met.local
        local = None if met.local is None else as_hidden(met.local, met.reference)
        accumulated = None if met.accumulated is None else as_hidden(met.accumulated, met.reference)
        return replace(met, local=local, accumulated=local if one else accumulated)

    def rounds_to_steps(self, region: Sequence[int]) -> bool:
        """Whether whole numbers are made there of real ones that a side rounds to a low type: at the edge of a step
        one side gives the next number.
        """
        if not (self._mine or self._theirs):
            return False
        kinds = (rounded_to(self._first.model.cut.nodes[i]) for i in region)
        return any(is_integral(kind) for found in kinds for kind in found)

    def types(self, name: str, region: Sequence[int]) -> list[str]:
        """The low types that a tensor's nodes come from or go to, of sides that have them nearly everywhere.

        region: positions of the suspect's nodes that make it.
        """
        found = [self._mine] if self._mine and _casts(self._first.model.cut.nodes[i] for i in region) else []
        if self._theirs and self._theirs not in found and isinstance(self._second, ModelSide):
            cut, own = self._second.model.cut, self._second.own(name)
            if own in cut.maker and _casts(cut.nodes[i] for i in self._regions.of(own).nodes):
                found.append(self._theirs)
        return found

    @cached_property
    def _regions(self) -> Regions:
        assert isinstance(self._second, ModelSide)
        return Regions(self._second.model.cut, [self._second.own(name) for name in self._names])


def usual_type(cut: "GraphCut") -> str:
    """The low type that a graph holds weights in, of more than one element; "" where hardly any are in one.

    A conversion keeps operators in FP32 that a type overflows or does not have: it need not be most of them.
    """
    kinds = (dtype_name(weight.data_type) for weight in cut.initializers.values() if math.prod(weight.dims) > 1)
    found = Counter(kind for kind in kinds if kind in _LOW)
    return next((kind for kind, count in found.most_common(1) if count >= _FEW), "")


def next_steps(values: Array, reference: Array) -> bool:
    """Whether whole numbers differ by one at most, and few of them."""
    if values.shape != reference.shape or values.dtype.kind not in "iu" or not values.size:
        return False
    differ = values != reference
    apart = np.abs(values[differ].astype(np.float64) - reference[differ].astype(np.float64))
    return bool(apart.max(initial=0.0) <= 1 and differ.mean() <= _EDGE)


def as_hidden(values: Array, reference: Array) -> Array:
    """The values, with the reference's in place of those that hide what is at their place: a finite one of 1e30 and
    beyond on one side, and on the other one of the same sign near the end of FP16, or beyond it.
    """
    if values.shape != reference.shape or values.dtype.kind not in "fV" or not values.size:
        return values
    sizes = np.abs(values.astype(np.float32)), np.abs(reference.astype(np.float32))
    if not any(float(np.max(size)) >= _HUGE for size in sizes):
        return values
    huge = [(size >= _HUGE) & np.isfinite(size) for size in sizes]
    same = (huge[0] & (sizes[1] >= _END)) | (huge[1] & (sizes[0] >= _END))
    same &= (values > 0) == (reference > 0)
    return np.where(same, reference, values) if same.any() else values


def _casts(nodes: "Iterable[onnx.NodeProto]") -> bool:
    return any(node.op_type == "Cast" for node in nodes)
