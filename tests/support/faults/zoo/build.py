"""Nodes and weights of a model in the making; node names are paths, as exporters write them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

Array = NDArray[Any]
Shape = Sequence[int | str]


@dataclass(frozen=True)
class Sample:
    """A model, and one feed dict for it."""

    model: onnx.ModelProto
    feed: dict[str, Array]


class Builder:
    """Collects a graph. Every method that adds nodes returns the name of the tensor that comes out."""

    def __init__(self, title: str, opset: int, seed: int) -> None:
        self.title, self.opset = title, opset
        self.random = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: dict[str, Array] = {}

    def node(self, op: str, name: str, inputs: Sequence[str], output: str = "", **attributes: Any) -> str:
        """Add a node with one output."""
        return self.split(op, name, inputs, 1, [output] if output else None, **attributes)[0]

    def split(
        self, op: str, name: str, inputs: Sequence[str], count: int, outputs: list[str] | None = None, **attributes: Any
    ) -> list[str]:
        """Add a node with `count` outputs."""
        outputs = outputs or [f"{name}_output_{i}" for i in range(count)]
        self.nodes.append(helper.make_node(op, inputs, outputs, name, **attributes))
        return outputs

    def weight(self, name: str, array: Any) -> str:
        """Add an initializer: float32, or int64 where integers are given; a name that exists keeps its value."""
        value = np.asarray(array)
        if value.dtype.kind in "iu":
            value = value.astype(np.int64)
        elif value.dtype.kind == "f":
            value = value.astype(np.float32)
        self.weights.setdefault(name, value)
        return name

    def draw(self, *shape: int, scale: float = 1.0, around: float = 0.0) -> Array:
        """Random numbers for a weight."""
        return around + scale * self.random.standard_normal(shape)

    def shift(self, name: str, *shape: int) -> str:
        """A small random bias."""
        return self.weight(name, self.draw(*shape, scale=0.05))

    def model(self, inputs: Mapping[str, tuple[int, Shape]], outputs: Mapping[str, Shape]) -> onnx.ModelProto:
        """The model. inputs: name to (element type, shape); outputs: float32."""
        graph = helper.make_graph(
            self.nodes,
            self.title,
            [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in inputs.items()],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs.items()],
            [numpy_helper.from_array(array, name) for name, array in self.weights.items()],
        )
        opsets = [helper.make_opsetid("", self.opset)]
        return helper.make_model(graph, producer_name="layerwise faults", ir_version=8, opset_imports=opsets)

    # Blocks

    def conv(
        self,
        name: str,
        x: str,
        into: int,
        out: int,
        kernel: Sequence[int] = (3, 3),
        stride: int = 1,
        gain: float = 1.0,
    ) -> str:
        """A convolution that keeps the size (at stride 1), with a bias."""
        fan = into * kernel[0] * kernel[1]
        weights = self.weight(f"{name}.weight", self.draw(out, into, *kernel, scale=gain * np.sqrt(2 / fan)))
        pads = [kernel[0] // 2, kernel[1] // 2] * 2
        inputs = [x, weights, self.shift(f"{name}.bias", out)]
        return self.node("Conv", f"{name}/Conv", inputs, kernel_shape=list(kernel), pads=pads, strides=[stride] * 2)

    def batch_norm(self, name: str, x: str, channels: int) -> str:
        """BatchNormalization with statistics near those of a trained network."""
        parts = [self.draw(channels, scale=0.1, around=around) for around in (1.0, 0.0, 0.0)]
        parts.append(0.5 + np.abs(self.draw(channels, scale=0.5)))
        names = ("weight", "bias", "running_mean", "running_var")
        inputs = [self.weight(f"{name}.{part}", array) for part, array in zip(names, parts, strict=True)]
        return self.node("BatchNormalization", f"{name}/BatchNormalization", [x, *inputs], epsilon=1e-5)

    def linear(self, name: str, x: str, into: int, out: int, gain: float = 1.0, shared: str = "") -> str:
        """MatMul and Add. shared: whose weights these are, if several nodes have the same."""
        owner = shared or name
        weights = self.weight(f"{owner}.weight", self.draw(into, out, scale=gain / np.sqrt(into)))
        product = self.node("MatMul", f"{name}/MatMul", [x, weights])
        return self.node("Add", f"{name}/Add", [product, self.shift(f"{owner}.bias", out)])

    def gemm(self, name: str, x: str, into: int, out: int, output: str = "") -> str:
        """A dense layer as exporters write it: the weight transposed."""
        weights = self.weight(f"{name}.weight", self.draw(out, into, scale=1 / np.sqrt(into)))
        return self.node("Gemm", f"{name}/Gemm", [x, weights, self.shift(f"{name}.bias", out)], output, transB=1)

    def layer_norm(self, name: str, x: str, width: int, scale: Array | None = None, shared: str = "") -> str:
        """LayerNormalization in single operators, as exporters wrote it up to opset 16."""
        owner = shared or name
        mean = self.node("ReduceMean", f"{name}/ReduceMean", [x], axes=[-1])
        centred = self.node("Sub", f"{name}/Sub", [x, mean])
        square = self.node("Pow", f"{name}/Pow", [centred, self.weight("two", 2.0)])
        variance = self.node("ReduceMean", f"{name}/ReduceMean_1", [square], axes=[-1])
        shifted = self.node("Add", f"{name}/Add", [variance, self.weight("epsilon", 1e-5)])
        deviation = self.node("Sqrt", f"{name}/Sqrt", [shifted])
        normal = self.node("Div", f"{name}/Div", [centred, deviation])
        gain = self.draw(width, scale=0.1, around=1) if scale is None else scale
        scaled = self.node("Mul", f"{name}/Mul", [normal, self.weight(f"{owner}.weight", gain)])
        return self.node("Add", f"{name}/Add_1", [scaled, self.shift(f"{owner}.bias", width)])
