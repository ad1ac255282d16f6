"""Which weights of a region are not the other model's, where names do not tell which belong together."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import onnx

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.align.operators import folds, operator_class, plain
from layerwise._tool.debugtools.compare.quantised.operators import channel_axis
from layerwise._tool.debugtools.compare.quantised.originals import channel_factors
from layerwise._tool.debugtools.locate.part import Part
from layerwise._tool.debugtools.locate.tensor_error import Error, error_of

_FLOATING = frozenset(
    {onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16}
)
_PARAMETERS = 5  # inputs of a normalisation by batch statistics: values, scale, bias, mean, variance


class _Weight(NamedTuple):
    """floating, dims: what two weights must have in common to be held against each other, dims in any order; codes say
    nothing of values. read: LayerwiseError if it is damaged.
    """

    label: str
    floating: bool
    dims: list[int]
    read: Callable[[], Array]


class _Folded(NamedTuple):
    """A product and the normalisation that follows it. axis: of the kernel's outputs; bias: of the product, or ""."""

    part: Part
    kernel: str
    bias: str
    norm: onnx.NodeProto
    axis: int

    def weights(self) -> Iterator[_Weight]:
        """Those of the one product that does the same."""
        dims = self.part.cut.initializers[self.kernel].dims
        behind = f"with {shown(self.norm.input[1], 80)} folded in"
        yield _Weight(f"{shown(self.kernel, 80)} {behind}", True, sorted(dims), self._kernel)
        yield _Weight(f"{shown(self.norm.input[2], 80)} {behind}", True, [dims[self.axis]], self._bias)

    def _factors(self) -> Array:
        return channel_factors(self.norm, self.part.weight)

    def _kernel(self) -> Array:
        value = self.part.weight(self.kernel)
        shape = [1] * value.ndim
        shape[self.axis] = -1
        return np.asarray((value * self._factors().reshape(shape)).astype(value.dtype))

    def _bias(self) -> Array:
        shift, mean = (self.part.weight(self.norm.input[i]) for i in (2, 3))
        own = self.part.weight(self.bias).astype(np.float64) if self.bias else 0.0
        return np.asarray((shift + (own - mean) * self._factors()).astype(shift.dtype))


def similar_weights(
    mine: Sequence[onnx.NodeProto], suspect: Part, theirs: Sequence[onnx.NodeProto], reference: Part
) -> Iterator[str]:
    """Of each weight of a suspect's nodes the reference's of the same dimensions that is nearest, if it is another one;
    turned where it is. Where one of the two normalises by batch statistics, those are held against the other's weights
    as they are with them.
    """
    fold = any(map(_normalises, mine)) != any(map(_normalises, theirs))
    others = _weights_of(reference, theirs, fold)
    for weight in _weights_of(suspect, mine, fold):
        alike = [each for each in others if each[1:3] == weight[1:3]]
        try:
            value = weight.read()
            found = [(_apart(value, each.read()), each.label) for each in alike]
        except LayerwiseError:  # a weight that cannot be read is told where it is used
            continue
        if found:
            error, label = min(found, key=lambda each: each[0].rel)
            if error.beyond:
                yield f"weight {weight.label} is not the reference's {label}: off by {error.rel:.3g}"


def _weights_of(part: Part, nodes: Sequence[onnx.NodeProto], fold: bool) -> list[_Weight]:
    folded = list(_folded(part, nodes)) if fold else []
    taken = {name for each in folded for name in (each.kernel, each.bias, *each.norm.input[1:])}
    weights = part.cut.initializers
    names = dict.fromkeys(name for node in nodes for name in node.input if name in weights and name not in taken)
    return [*(_plain(part, name) for name in names), *(weight for each in folded for weight in each.weights())]


def _plain(part: Part, name: str) -> _Weight:
    tensor = part.cut.initializers[name]
    return _Weight(shown(name, 80), tensor.data_type in _FLOATING, sorted(tensor.dims), lambda: part.weight(name))


def _folded(part: Part, nodes: Sequence[onnx.NodeProto]) -> Iterator[_Folded]:
    """The normalisations of some nodes that follow a product, where the sizes fit."""
    weights, made = part.cut.initializers, {name: node for node in nodes for name in node.output}
    for norm in filter(_normalises, nodes):
        product = made.get(norm.input[0])
        known = len(norm.input) == _PARAMETERS and all(name in weights for name in norm.input[1:])
        if product is None or not known or not folds(operator_class(product.op_type)):
            continue
        kernel, bias = (*product.input[1:3], "", "")[:2]
        if kernel in weights and (not bias or bias in weights):
            dims = weights[kernel].dims
            axis = _outputs(product, len(dims))
            if axis is not None and axis < len(dims) and dims[axis] == weights[norm.input[1]].dims[0]:
                yield _Folded(part, kernel, bias, norm, axis)


def _normalises(node: onnx.NodeProto) -> bool:
    return operator_class(node.op_type) == "batchnorm"


def _outputs(product: onnx.NodeProto, rank: int) -> int | None:
    """The axis of a product's kernel along which its outputs lie."""
    kinds = {"conv": "Conv", "convtranspose": "ConvTranspose"}
    plain_product = "MatMul" if plain(product.op_type) in ("matmul", "mm") else "Gemm"
    turned = plain(product.op_type) == "linear" or any(a.name == "transB" and a.i for a in product.attribute)
    return channel_axis(kinds.get(operator_class(product.op_type), plain_product), 1, rank, transposed=turned)


def _apart(mine: Array, theirs: Array) -> Error:
    """How far a weight is from another, as it is or turned."""
    found = [error_of(mine, other, (), 1) for other in (theirs, theirs.T) if other.shape == mine.shape]
    return min(found, key=lambda error: error.rel, default=Error(math.inf))
