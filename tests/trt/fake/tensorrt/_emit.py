"""One function a layer type: which ONNX nodes compute it. Named as LayerType's members in lower case."""

from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from ._types import numpy_of, onnx_of

CLASS_OF = {
    "IDENTITY": "IIdentityLayer",
    "CONSTANT": "IConstantLayer",
    "ELEMENTWISE": "IElementWiseLayer",
    "UNARY": "IUnaryLayer",
    "ACTIVATION": "IActivationLayer",
    "MATRIX_MULTIPLY": "IMatrixMultiplyLayer",
    "CONVOLUTION": "IConvolutionLayer",
    "SOFTMAX": "ISoftMaxLayer",
    "REDUCE": "IReduceLayer",
    "SHUFFLE": "IShuffleLayer",
    "CAST": "ICastLayer",
    "CONCATENATION": "IConcatenationLayer",
    "SLICE": "ISliceLayer",
    "SHAPE": "IShapeLayer",
    "NON_ZERO": "INonZeroLayer",
    "GATHER": "IGatherLayer",
    "SELECT": "ISelectLayer",
    "POOLING": "IPoolingLayer",
    "TOPK": "ITopKLayer",
    "QUANTIZE": "IQuantizeLayer",
    "DEQUANTIZE": "IDequantizeLayer",
}
_ELEMENTWISE = {
    "SUM": "Add", "PROD": "Mul", "MAX": "Max", "MIN": "Min", "SUB": "Sub", "DIV": "Div", "POW": "Pow", "AND": "And",
    "OR": "Or", "XOR": "Xor", "EQUAL": "Equal", "GREATER": "Greater", "LESS": "Less",
}  # fmt: skip
_UNARY = {"ISINF": "IsInf", "ISNAN": "IsNaN", "RECIP": "Reciprocal"}
_ACTIVATION = {
    "RELU": ("Relu", {}),
    "SIGMOID": ("Sigmoid", {}),
    "TANH": ("Tanh", {}),
    "LEAKY_RELU": ("LeakyRelu", {"alpha": "alpha"}),
    "ELU": ("Elu", {"alpha": "alpha"}),
    "SELU": ("Selu", {"alpha": "alpha", "gamma": "beta"}),
    "SOFTSIGN": ("Softsign", {}),
    "SOFTPLUS": ("Softplus", {}),
    "HARD_SIGMOID": ("HardSigmoid", {"alpha": "alpha", "beta": "beta"}),
    "THRESHOLDED_RELU": ("ThresholdedRelu", {"alpha": "alpha"}),
    "GELU_ERF": ("Gelu", {}),
}
_REDUCE = {"SUM": "ReduceSum", "PROD": "ReduceProd", "MAX": "ReduceMax", "MIN": "ReduceMin", "AVG": "ReduceMean"}


class Plan:
    """Collects the nodes and constants of one layer."""

    def __init__(self, layer: Any, inputs: list[str], outputs: list[str]) -> None:
        self.layer, self.inputs, self.outputs = layer, inputs, outputs
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def get(self, name: str, default: Any = None) -> Any:
        """A property of the layer."""
        value = self.layer.values.get(name)
        return default if value is None else value

    def node(self, op: str, inputs: list[str], outputs: list[str] | None = None, **attributes: Any) -> str:
        """Add a node; the name of its first output."""
        outputs = outputs or [f"{self.outputs[0]}/{len(self.nodes)}"]
        self.nodes.append(helper.make_node(op, inputs, outputs, f"{self.layer.name}/{len(self.nodes)}", **attributes))
        return outputs[0]

    def constant(self, array: Any, name: str = "") -> str:
        """Add a constant; its name."""
        name = name or f"{self.outputs[0]}/constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def weights(self, value: Any, shape: Any, role: str) -> str:
        """Add weights under the name they were given, or layer name and role; their name."""
        name = getattr(value, "_named", f"{self.layer.name} {role}")
        return self.constant(value._array.reshape(shape), name)


def bits(mask: int) -> list[int]:
    """The axes of a mask."""
    return [at for at in range(32) if mask >> at & 1]


def identity(p: Plan) -> None:
    p.node("Identity", p.inputs, p.outputs)


def constant(p: Plan) -> None:
    name = p.weights(p.get("weights"), tuple(p.get("shape")), "CONSTANT")
    p.node("Identity", [name], p.outputs)


def elementwise(p: Plan) -> None:
    op = p.get("op").name
    if op == "FLOOR_DIV":
        p.node("Floor", [p.node("Div", p.inputs)], p.outputs)
    else:
        p.node(_ELEMENTWISE[op], p.inputs, p.outputs)


def unary(p: Plan) -> None:
    op = p.get("op").name
    p.node(_UNARY.get(op, op.capitalize()), p.inputs, p.outputs)


def activation(p: Plan) -> None:
    kind = p.get("type").name
    alpha, beta = p.get("alpha", 0.0), p.get("beta", 0.0)
    if kind == "CLIP":
        kind_of = numpy_of(p.layer.inputs[0]._typed()[0])
        low, high = p.constant(np.array(alpha, kind_of)), p.constant(np.array(beta, kind_of))
        p.node("Clip", [*p.inputs, low, high], p.outputs)
    elif kind == "GELU_TANH":
        p.node("Gelu", p.inputs, p.outputs, approximate="tanh")
    else:
        op, names = _ACTIVATION[kind]
        values = {"alpha": float(alpha), "beta": float(beta)}
        p.node(op, p.inputs, p.outputs, **{ours: values[theirs] for ours, theirs in names.items()})


def matrix_multiply(p: Plan) -> None:
    sides = []
    for at, side in enumerate(("op0", "op1")):
        rank = len(p.layer.inputs[at]._typed()[1])
        turned = p.get(side).name == "TRANSPOSE"
        order = [*range(rank - 2), rank - 1, rank - 2]
        sides.append(p.node("Transpose", [p.inputs[at]], perm=order) if turned else p.inputs[at])
    p.node("MatMul", sides, p.outputs)


def convolution(p: Plan) -> None:
    kernel = tuple(p.get("kernel_size_nd"))
    groups, maps = p.get("num_groups", 1), p.get("num_output_maps")
    channels = p.layer.inputs[0]._typed()[1][1]
    inputs = [p.inputs[0], p.weights(p.get("kernel"), (maps, channels // groups, *kernel), "KERNEL")]
    if p.get("bias") is not None and p.get("bias")._array.size:
        inputs.append(p.weights(p.get("bias"), (maps,), "BIAS"))
    p.node("Conv", inputs, p.outputs, group=groups, dilations=_spread(p, "dilation_nd", kernel), **_window(p, kernel))


def _spread(p: Plan, name: str, like: tuple[int, ...]) -> list[int]:
    return list(p.get(name, [1] * len(like)))


def _window(p: Plan, kernel: tuple[int, ...]) -> dict[str, Any]:
    both = list(p.get("padding_nd", [0] * len(kernel)))
    pads = list(p.get("pre_padding", both)) + list(p.get("post_padding", both))
    return {"kernel_shape": kernel, "strides": _spread(p, "stride_nd", kernel), "pads": pads}


def pooling(p: Plan) -> None:
    op = "MaxPool" if p.get("type").name == "MAX" else "AveragePool"
    p.node(op, p.inputs, p.outputs, **_window(p, tuple(p.get("window_size_nd"))))


def softmax(p: Plan) -> None:
    p.node("Softmax", p.inputs, p.outputs, axis=bits(p.get("axes", 1))[0])


def reduce(p: Plan) -> None:
    axes = p.constant(np.array(bits(p.get("axes")), np.int64))
    p.node(_REDUCE[p.get("op").name], [p.inputs[0], axes], p.outputs, keepdims=int(p.get("keep_dims", False)))


def shuffle(p: Plan) -> None:
    current = p.inputs[0]
    if (first := p.get("first_transpose")) is not None:
        current = p.node("Transpose", [current], perm=list(first._items))
    if len(p.inputs) > 1:
        current = p.node("Reshape", [current, p.node("Cast", [p.inputs[1]], to=onnx.TensorProto.INT64)])
    elif (shape := p.get("reshape_dims")) is not None:
        zero = 0 if p.get("zero_is_placeholder", True) else 1
        current = p.node("Reshape", [current, p.constant(np.array(list(shape), np.int64))], allowzero=zero)
    if (second := p.get("second_transpose")) is not None:
        current = p.node("Transpose", [current], perm=list(second._items))
    p.node("Identity", [current], p.outputs)


def cast(p: Plan) -> None:
    p.node("Cast", p.inputs, p.outputs, to=onnx_of(p.get("to_type")))


def concatenation(p: Plan) -> None:
    p.node("Concat", p.inputs, p.outputs, axis=p.get("axis", 0))


def slice(p: Plan) -> None:
    start, shape, stride = (np.array(list(p.get(name)), np.int64) for name in ("start", "shape", "stride"))
    ends = start + (shape - 1) * stride + np.sign(stride)
    parts = [p.constant(x) for x in (start, ends, np.arange(len(start), dtype=np.int64), stride)]
    p.node("Slice", [p.inputs[0], *parts], p.outputs)


def shape(p: Plan) -> None:
    p.node("Shape", p.inputs, p.outputs)


def non_zero(p: Plan) -> None:
    p.node("NonZero", p.inputs, p.outputs)


def gather(p: Plan) -> None:
    p.node("Gather", p.inputs, p.outputs, axis=p.get("axis", 0))


def select(p: Plan) -> None:
    p.node("Where", p.inputs, p.outputs)


def topk(p: Plan) -> None:
    largest = int(p.get("op").name == "MAX")
    k = p.constant(np.array([p.get("k")], np.int64))
    values, indices = p.outputs
    found = p.node("TopK", [p.inputs[0], k], [values, f"{indices}/long"], axis=bits(p.get("axes"))[0], largest=largest)
    assert found == values
    p.node("Cast", [f"{indices}/long"], [indices], to=onnx.TensorProto.INT32)


def quantize(p: Plan) -> None:
    kind = numpy_of(p.get("to_type")) if p.get("to_type") is not None else np.dtype(np.int8)
    p.node("QuantizeLinear", [*p.inputs, p.constant(np.zeros((), kind))], p.outputs)


def dequantize(p: Plan) -> None:
    p.node("DequantizeLinear", p.inputs, p.outputs)
