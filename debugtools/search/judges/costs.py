"""What it costs to try a node: expected seconds, so that a search asks first where asking is cheap.

An estimate from shapes alone: opening and dispatching (measured at 0.1 ms a node), moving its outputs and weights, and
multiply-adds of the operators that are made of them. Only ratios matter to a search.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from layerwise._tool.backends.arrays import Array
from layerwise._tool.debugtools.search.judges.subject import Subject

_NODE = 1e-4  # seconds
_BYTES, _MULTIPLY_ADDS = 5e9, 2e10  # a second, on one core
_CONVOLUTIONS = frozenset({"Conv", "ConvTranspose", "ConvInteger", "QLinearConv"})
_PRODUCTS = frozenset({"MatMul", "Gemm", "MatMulInteger", "QLinearMatMul"})


def expected_seconds(subject: Subject, nodes: Sequence[int]) -> list[float]:
    """Return the expected seconds of each of `nodes` (positions)."""
    return [_seconds(subject, i) for i in nodes]


def _seconds(subject: Subject, i: int) -> float:
    graph, tensors = subject.cut, subject.tensors
    node = graph.nodes[i]
    made = [tensors.raw(name) for name in node.output if name and name in tensors]
    weights = [math.prod(graph.initializers[name].dims) for name in graph.reads[i] if name in graph.initializers]
    moved: int = sum(array.nbytes for array in made) + 4 * sum(weights)
    work: float = max((array.size for array in made), default=0) * _depth(subject, i)
    return _NODE + moved / _BYTES + work / _MULTIPLY_ADDS


def _depth(subject: Subject, i: int) -> float:
    """Multiply-adds behind each element of an output; 0 for operators that are not made of them."""
    graph, node = subject.cut, subject.cut.nodes[i]
    if node.op_type not in _CONVOLUTIONS | _PRODUCTS:
        return 0.0
    shape = _shape(graph.initializers, subject.tensors, node.input[1]) if len(node.input) > 1 else ()
    if not shape:
        return 0.0
    return float(math.prod(shape[1:]) if node.op_type in _CONVOLUTIONS else shape[-2] if len(shape) > 1 else shape[0])


def _shape(weights: Mapping[str, Any], tensors: Mapping[str, Array], name: str) -> Sequence[int]:
    if name in weights:
        return tuple(weights[name].dims)
    return tensors[name].shape if name in tensors else ()
