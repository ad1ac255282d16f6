"""An ONNX graph put into a network: every node becomes one layer."""

from contextlib import suppress
from typing import Any

import onnx
import onnx.version_converter

from . import _attributes
from ._network import Layer, fixed
from ._types import dtype_of_onnx

_KINDS = {
    "Conv": "CONVOLUTION", "ConvTranspose": "DECONVOLUTION", "MatMul": "MATRIX_MULTIPLY", "Gemm": "MATRIX_MULTIPLY",
    "Relu": "ACTIVATION", "Sigmoid": "ACTIVATION", "Tanh": "ACTIVATION", "LeakyRelu": "ACTIVATION",
    "Clip": "ACTIVATION",
    "Gelu": "ACTIVATION", "Elu": "ACTIVATION", "Add": "ELEMENTWISE", "Sub": "ELEMENTWISE", "Mul": "ELEMENTWISE",
    "Div": "ELEMENTWISE", "Pow": "ELEMENTWISE", "Max": "ELEMENTWISE", "Min": "ELEMENTWISE", "Softmax": "SOFTMAX",
    "MaxPool": "POOLING", "AveragePool": "POOLING", "GlobalAveragePool": "REDUCE", "ReduceMean": "REDUCE",
    "ReduceSum": "REDUCE", "ReduceMax": "REDUCE", "Reshape": "SHUFFLE", "Transpose": "SHUFFLE", "Flatten": "SHUFFLE",
    "Cast": "CAST", "Concat": "CONCATENATION", "Slice": "SLICE", "Shape": "SHAPE", "Gather": "GATHER",
    "Constant": "CONSTANT", "Where": "SELECT", "TopK": "TOPK", "NonZero": "NON_ZERO", "QuantizeLinear": "QUANTIZE",
    "DequantizeLinear": "DEQUANTIZE", "Identity": "IDENTITY", "LayerNormalization": "NORMALIZATION",
    "BatchNormalization": "SCALE", "Resize": "RESIZE", "Squeeze": "SQUEEZE", "Unsqueeze": "UNSQUEEZE",
    "Exp": "UNARY", "Log": "UNARY", "Sqrt": "UNARY", "Reciprocal": "UNARY", "Abs": "UNARY", "Neg": "UNARY",
    "Sin": "UNARY", "Cos": "UNARY", "Erf": "UNARY", "Floor": "UNARY", "Ceil": "UNARY", "Not": "UNARY",
    "Round": "UNARY", "Sign": "UNARY", "IsNaN": "UNARY", "IsInf": "UNARY", "Equal": "ELEMENTWISE",
    "Greater": "ELEMENTWISE", "Less": "ELEMENTWISE", "And": "ELEMENTWISE", "Or": "ELEMENTWISE", "Selu": "ACTIVATION",
    "Einsum": "EINSUM", "Pad": "SLICE", "Expand": "SLICE", "Split": "SLICE",
}  # fmt: skip
_NEWEST = 13


def typed(value: onnx.ValueInfoProto) -> bool:
    """Whether it is a tensor of a type that TensorRT has (or not known to be another)."""
    if not value.HasField("type"):
        return True
    element = value.type.tensor_type.elem_type
    return value.type.HasField("tensor_type") and (not element or dtype_of_onnx(element) is not None)


def _converted(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model of an opset that has what a build adds, such as QuantizeLinear, where it is older."""
    if any(opset.domain == "" and opset.version < _NEWEST for opset in model.opset_import):
        with suppress(Exception):  # of the converter, about operators that it does not know
            return onnx.version_converter.convert_version(model, _NEWEST)
    return model


class Importer:
    """Puts an ONNX model into a network."""

    def __init__(self, network: Any, model: onnx.ModelProto) -> None:
        self.network, self.model = network, _converted(model)
        inferred = onnx.shape_inference.infer_shapes(self.model, data_prop=True).graph
        self.known = {value.name: value for value in [*inferred.value_info, *inferred.output, *inferred.input]}
        self.tensors: dict[str, Any] = {}

    def untyped(self) -> list[tuple[str, int, onnx.NodeProto]]:
        """Reason, index and node of every node with an output (or a graph input) of a type that TensorRT lacks."""
        bad = {name for name, value in self.known.items() if not typed(value)}
        return [
            (f"Unsupported data type of tensor {name}", at, node)
            for at, node in enumerate(self.model.graph.node)
            for name in [*node.input, *node.output]
            if name in bad
        ]

    def run(self) -> None:
        """Inputs, layers, outputs."""
        network, graph = self.network, self.model.graph
        network._opsets, network._functions = list(self.model.opset_import), list(self.model.functions)
        network._initializers |= {initializer.name: initializer for initializer in graph.initializer}
        for value in graph.input:
            if value.name not in network._initializers:
                self.tensors[value.name] = network._tensor(value.name, fixed(value))
                network._inputs.append(self.tensors[value.name])
        for node in graph.node:
            self._layer(node)
        for value in graph.output:
            network._outputs.append(self.tensors[value.name])

    def _layer(self, node: onnx.NodeProto) -> None:
        slots = [slot for slot, name in enumerate(node.input) if name in self.tensors]
        name = node.name or f"node_of_{node.output[0]}"
        kind = _KINDS.get(node.op_type, "PLUGIN_V2")
        found = _attributes.values(kind, _attributes.Facts(node, self.network._initializers))
        layer = Layer(
            self.network, name, kind, [self.tensors[node.input[s]] for s in slots],
            node=node, slots=slots, values={"metadata": f"[ONNX Layer: {name}]", **found},
        )  # fmt: skip
        self.network._layers.append(layer)
        for slot, output in enumerate(node.output):
            if output:
                typed = fixed(self.known.get(output)) or (dtype_of_onnx(1), ())
                self.tensors[output] = self.network._tensor(output, typed, layer, slot)
                layer.outputs.append(self.tensors[output])
