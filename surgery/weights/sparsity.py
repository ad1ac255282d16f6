"""2:4 structured sparsity: which weights can have it, which have it, and pruning.

A weight is 2:4 sparse if of each four neighbours along the axis that a product sums over at least two are zero:
NVIDIA's sparse tensor cores skip them. Which weights are eligible, and what is pruned, is as in Polygraphy's
`inspect sparsity` and `surgeon prune`, without its bugs: products of more than two dimensions are summed
over their last axes, and bfloat16 is pruned by magnitude too.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.reference.evaluate import tensor_array
from layerwise._tool.backends.type_names import type_name
from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.weights.arrays import with_weights

GROUP = 4
_TYPES = frozenset({TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16})
_THROUGH = frozenset(
    {"QuantizeLinear", "DequantizeLinear", "TRT_FP8QuantizeLinear", "TRT_FP8DequantizeLinear", "Cast", "Transpose"}
)
_CHUNK = 1 << 18  # elements that are pruned at a time


class Product(NamedTuple):
    """A weight that a Conv, Gemm or MatMul sums over, and along which axis."""

    weight: str
    axis: int


@dataclass(frozen=True)
class Candidates:
    """eligible: weights that can be 2:4 sparse; skipped: those that cannot, and why."""

    eligible: tuple[Product, ...]
    skipped: tuple[tuple[str, str], ...]


def candidates(nodes: Iterable[NodeProto], weights: Mapping[str, TensorProto]) -> Candidates:
    """Return the weights that convolutions and matrix products sum over, in node order."""
    nodes = list(nodes)
    made_by = {name: node for node in nodes for name in node.output if name}
    found = {}
    for node in nodes:
        for name, axis in _summed(node):
            product = _behind(name, axis, made_by, weights)
            if product is not None:
                found[product.weight] = product
    why = {name: _obstacle(weights[name], product.axis) for name, product in found.items()}
    return Candidates(
        tuple(product for name, product in found.items() if not why[name]),
        tuple((name, reason) for name, reason in why.items() if reason),
    )


def _summed(node: NodeProto) -> Iterator[tuple[str, int]]:
    """Return inputs of a node, and the axis (negative: from the end) that it sums each over."""
    if len(node.input) < 2:
        return
    left, right = node.input[:2]
    if node.op_type == "Conv":
        yield right, 1
    elif node.op_type == "MatMul":
        yield left, -1
        yield right, -2
    elif node.op_type == "Gemm":
        flags = {attribute.name: attribute.i for attribute in node.attribute}
        yield left, 0 if flags.get("transA") else 1
        yield right, 1 if flags.get("transB") else 0


def _behind(
    name: str, axis: int, made_by: Mapping[str, NodeProto], weights: Mapping[str, TensorProto]
) -> Product | None:
    """Return the weight that `name` is, or is derived from by casts, quantisation and transposes only."""
    passed: list[NodeProto] = []
    while name not in weights:
        node = made_by.get(name)
        if node is None or node.op_type not in _THROUGH or not node.input or len(passed) > len(made_by):
            return None
        passed.append(node)
        name = node.input[0]
    rank = len(weights[name].dims)
    axis += rank if axis < 0 else 0
    for node in passed:
        if node.op_type == "Transpose" and 0 <= axis < rank:
            axis = _before(node, axis, rank)
    return Product(name, axis)


def _before(transpose: NodeProto, axis: int, rank: int) -> int:
    """Return the axis of a Transpose's input that is `axis` of its output."""
    order = next((list(a.ints) for a in transpose.attribute if a.name == "perm"), [])
    order = order or list(range(rank))[::-1]
    return order[axis] if axis < len(order) else -1


def _obstacle(weight: TensorProto, axis: int) -> str:
    if weight.data_type not in _TYPES:
        return f"its type {type_name(weight.data_type)} is not one that is pruned"
    if not 0 <= axis < len(weight.dims):
        return f"it has no axis {axis}"
    if not weight.dims[axis] or weight.dims[axis] % GROUP:
        return f"the length of axis {axis} ({weight.dims[axis]} in {list(weight.dims)}) is not a multiple of 4"
    return ""


def prune_2_4(structure: Structure, names: Collection[str] | None = None) -> Structure:
    """Return the model with its eligible weights pruned, or those in `names` of them. Accuracy is not considered."""
    chosen = [
        product
        for product in candidates(structure.nodes, structure.initializers).eligible
        if names is None or product.weight in names
    ]
    weights = structure.initializers
    arrays = {name: pruned(tensor_array(weights[name], structure.folder), axis) for name, axis in chosen}
    return with_weights(structure, arrays)


def is_sparse(array: Array, axis: int) -> bool:
    """Return whether at least two of each four neighbours along `axis` are zero."""
    return all(bool(((part == 0).sum(axis=1) >= 2).all()) for part in _groups(array, axis))


def pruned(array: Array, axis: int) -> Array:
    """Return a copy in which the two smallest magnitudes of each four neighbours along `axis` are zero.

    Among equals the first are zeroed; NaN counts as large.
    """
    result = np.array(array, order="C")
    for part in _groups(result, axis):
        part[_smallest(part)] = 0
    return result


def _groups(array: Array, axis: int) -> Iterator[Array]:
    """Yield views [n, 4, m] (for a C-contiguous array) that cover it, groups of four along the second axis."""
    inner = int(np.prod(array.shape[axis + 1 :], dtype=np.int64))
    whole = np.ascontiguousarray(array).reshape(-1, GROUP, inner)
    step = max(1, _CHUNK // (GROUP * max(inner, 1)))
    for start in range(0, len(whole), step):
        yield whole[start : start + step]


def _smallest(part: Array) -> NDArray[np.bool_]:
    """Return a mask of two of each four: those that at least two others exceed, or equal at a later position."""
    with np.errstate(invalid="ignore"):
        size = np.abs(part.astype(np.float32, copy=False))
    size = np.where(np.isnan(size), np.inf, size)
    rank = np.zeros(part.shape, np.int8)
    for i in range(GROUP):
        for j in range(i + 1, GROUP):
            later = size[:, j] < size[:, i]
            rank[:, i] += later
            rank[:, j] += ~later
    marked: NDArray[np.bool_] = rank < 2
    return marked
