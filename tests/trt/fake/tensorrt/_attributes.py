"""What a layer made of an ONNX node says about itself: its TensorRT properties, from the node's attributes."""

from collections.abc import Callable
from typing import Any

import onnx
from onnx import helper, numpy_helper

from ._arguments import CLASSES
from ._classes import new
from ._types import dtype_of_onnx
from ._values import dims, weights

_ELEMENTWISE = {
    "Add": "SUM", "Mul": "PROD", "Max": "MAX", "Min": "MIN", "Sub": "SUB", "Div": "DIV", "Pow": "POW", "And": "AND",
    "Or": "OR", "Xor": "XOR", "Equal": "EQUAL", "Greater": "GREATER", "Less": "LESS",
}  # fmt: skip
_ACTIVATION = {"Relu": "RELU", "Sigmoid": "SIGMOID", "Tanh": "TANH", "LeakyRelu": "LEAKY_RELU", "Clip": "CLIP",
               "Elu": "ELU", "Gelu": "GELU_ERF", "Selu": "SELU"}  # fmt: skip
_UNARY = {"Reciprocal": "RECIP", "IsNaN": "ISNAN", "IsInf": "ISINF"}
_REDUCE = {"ReduceMean": "AVG", "GlobalAveragePool": "AVG", "ReduceSum": "SUM", "ReduceMax": "MAX", "ReduceMin": "MIN",
           "ReduceProd": "PROD"}  # fmt: skip


class Facts:
    """A node, its attributes and its initializers."""

    def __init__(self, node: onnx.NodeProto, initializers: dict[str, onnx.TensorProto]) -> None:
        self.node, self.initializers = node, initializers
        self.attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute if a.type != a.GRAPH}

    def array(self, slot: int) -> Any:
        """The constant input of a slot; None where it is none."""
        name = self.node.input[slot] if slot < len(self.node.input) else ""
        return numpy_helper.to_array(self.initializers[name]) if name in self.initializers else None


def member(enum: str, name: str) -> Any:
    """An enum's member by name."""
    return getattr(CLASSES[enum], name)


def values(kind: str, facts: Facts) -> dict[str, Any]:
    """The properties of a layer of this kind."""
    maker = _MAKERS.get(kind)
    return {key: value for key, value in (maker(facts) if maker else {}).items() if value is not None}


def _window(facts: Facts, kernel: tuple[int, ...]) -> dict[str, Any]:
    rank = len(kernel)
    pads = facts.attributes.get("pads", [0] * 2 * rank)
    return {
        "stride_nd": dims(facts.attributes.get("strides", [1] * rank)),
        "pre_padding": dims(pads[:rank]),
        "post_padding": dims(pads[rank:]),
    }


def _convolution(facts: Facts) -> dict[str, Any]:
    kernel, bias = facts.array(1), facts.array(2)
    if kernel is None:
        return {}
    shape = kernel.shape[2:]
    return {
        "kernel": weights(kernel), "bias": weights(bias) if bias is not None else None,
        "num_output_maps": kernel.shape[0], "kernel_size_nd": dims(shape),
        "num_groups": facts.attributes.get("group", 1),
        "dilation_nd": dims(facts.attributes.get("dilations", [1] * len(shape))), **_window(facts, shape),
    }  # fmt: skip


def _pooling(facts: Facts) -> dict[str, Any]:
    shape = tuple(facts.attributes.get("kernel_shape", ()))
    kind = "MAX" if facts.node.op_type == "MaxPool" else "AVERAGE"
    return {"type": member("PoolingType", kind), "window_size_nd": dims(shape), **_window(facts, shape)}


def _activation(facts: Facts) -> dict[str, Any]:
    kind = member("ActivationType", _ACTIVATION[facts.node.op_type])
    if facts.node.op_type == "Clip":
        low, high = (None if limit is None else float(limit) for limit in (facts.array(1), facts.array(2)))
        return {"type": kind, "alpha": low, "beta": high}
    return {"type": kind, "alpha": facts.attributes.get("alpha"), "beta": facts.attributes.get("gamma")}


def _shuffle(facts: Facts) -> dict[str, Any]:
    perm, shape = facts.attributes.get("perm"), facts.array(1)
    return {
        "first_transpose": new("Permutation", _items=list(perm)) if perm else None,
        "reshape_dims": dims(shape) if shape is not None else None,
        "zero_is_placeholder": True,
    }


def _matrix_multiply(facts: Facts) -> dict[str, Any]:
    sides = {"op0": "transA", "op1": "transB"}
    names = {side: "TRANSPOSE" if facts.attributes.get(name) else "NONE" for side, name in sides.items()}
    return {side: member("MatrixOperation", name) for side, name in names.items()}


def _unary(facts: Facts) -> dict[str, Any]:
    return {"op": member("UnaryOperation", _UNARY.get(facts.node.op_type, facts.node.op_type.upper()))}


def _axes(facts: Facts) -> int | None:
    axes = facts.attributes.get("axes", facts.array(1))
    return None if axes is None or min(axes, default=0) < 0 else sum(1 << int(axis) for axis in axes)


_MAKERS: dict[str, Callable[[Facts], dict[str, Any]]] = {
    "CONVOLUTION": _convolution,
    "DECONVOLUTION": _convolution,
    "POOLING": _pooling,
    "ACTIVATION": _activation,
    "SHUFFLE": _shuffle,
    "MATRIX_MULTIPLY": _matrix_multiply,
    "UNARY": _unary,
    "ELEMENTWISE": lambda facts: {"op": member("ElementWiseOperation", _ELEMENTWISE[facts.node.op_type])},
    "REDUCE": lambda facts: {
        "op": member("ReduceOperation", _REDUCE[facts.node.op_type]),
        "keep_dims": bool(facts.attributes.get("keepdims", 1)),
        "axes": _axes(facts),
    },
    "CAST": lambda facts: {"to_type": dtype_of_onnx(facts.attributes["to"])},
    "CONCATENATION": lambda facts: {"axis": facts.attributes["axis"]},
    "GATHER": lambda facts: {"axis": facts.attributes.get("axis", 0)},
    "SOFTMAX": lambda facts: {"axes": 1 << facts.attributes["axis"]} if facts.attributes.get("axis", -1) >= 0 else {},
}
