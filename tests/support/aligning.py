"""One network written in two ways, with names that have nothing in common, and every tensor that a model computes."""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.debugtools.align.onnx_graph import onnx_graph, weight_arrays
from layerwise._tool.debugtools.align.side_data import SideData, collect
from layerwise._tool.surgery.model.structure import Structure

Array = NDArray[Any]
WIDTH, HEADS, LENGTH = 32, 4, 12
Values = dict[str, Array]


class Writer:
    """Adds nodes and weights. parts: operators in parts (MatMul and Add, a Gelu of five nodes), not as one node."""

    def __init__(self, parts: bool) -> None:
        self.parts = parts
        self.nodes: list[onnx.NodeProto] = []
        self.weights: dict[str, Array] = {}

    def add(self, op: str, *inputs: str, **attributes: object) -> str:
        """A node with one output, whose name it returns."""
        name = f"t{len(self.nodes)}_{op}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], **attributes))
        return name

    def weight(self, name: str, value: object, kind: Any = np.float32) -> str:
        """An initializer."""
        self.weights[name] = np.asarray(value, kind)
        return name

    def linear(self, x: str, name: str, weight: Array, bias: Array) -> str:
        """The product with a matrix, and a sum; as Gemm between reshapes with the matrix transposed if not in parts."""
        if self.parts:
            product = self.add("MatMul", x, self.weight(f"{name}.w", weight))
            return self.add("Add", product, self.weight(f"{name}.b", bias))
        flat = self.add("Reshape", x, self.weight(f"{name}.in", [-1, weight.shape[0]], np.int64))
        weights = self.weight(f"{name}.wt", np.ascontiguousarray(weight.T)), self.weight(f"{name}.c", bias)
        out = self.add("Gemm", flat, *weights, transB=1)
        return self.add("Reshape", out, self.weight(f"{name}.out", [2, LENGTH, weight.shape[1]], np.int64))

    def norm(self, x: str, name: str, scale: Array, bias: Array) -> str:
        """A LayerNormalization."""
        weights = self.weight(f"{name}.scale", scale), self.weight(f"{name}.bias", bias)
        if not self.parts:
            return self.add("LayerNormalization", x, *weights, epsilon=1e-5)
        centred = self.add("Sub", x, self.add("ReduceMean", x, axes=[-1]))
        two, epsilon = self.weight("two", 2.0), self.weight("epsilon", 1e-5)
        spread = self.add("ReduceMean", self.add("Pow", centred, two), axes=[-1])
        unit = self.add("Div", centred, self.add("Sqrt", self.add("Add", spread, epsilon)))
        return self.add("Add", self.add("Mul", unit, weights[0]), weights[1])

    def gelu(self, x: str) -> str:
        """A Gelu: with Erf, or with Erf of a product instead of a quotient."""
        if self.parts:
            erf = self.add("Erf", self.add("Div", x, self.weight("root", np.sqrt(2.0))))
            product = self.add("Mul", x, self.add("Add", erf, self.weight("one", 1.0)))
            return self.add("Mul", product, self.weight("half", 0.5))
        erf = self.add("Erf", self.add("Mul", x, self.weight("unroot", np.sqrt(0.5))))
        half = self.add("Mul", x, self.weight("half_", 0.5))
        return self.add("Mul", half, self.add("Add", erf, self.weight("one_", 1.0)))

    def heads(self, x: str, order: list[int]) -> str:
        """[batch, length, width] → [batch, heads, length, width / heads], or transposed."""
        shape = self.weight("heads", [2, LENGTH, HEADS, WIDTH // HEADS], np.int64)
        return self.add("Transpose", self.add("Reshape", x, shape), perm=order)


def encoder(*, parts: bool, layers: int = 2, seed: int = 0, same: bool = False) -> onnx.ModelProto:
    """x [2, 12, 32] → y. same: all layers have the same weights."""
    rng = np.random.default_rng(seed)
    write, x = Writer(parts), "x" if parts else "input"
    shapes = [("q", WIDTH, WIDTH), ("k", WIDTH, WIDTH), ("v", WIDTH, WIDTH), ("o", WIDTH, WIDTH)]
    shapes += [("up", WIDTH, 2 * WIDTH), ("down", 2 * WIDTH, WIDTH)]
    for layer in range(layers):
        draw = np.random.default_rng(seed) if same else rng
        w = {name: (draw.standard_normal((i, o)) / np.sqrt(i), draw.standard_normal(o) * 0.1) for name, i, o in shapes}
        normed = write.norm(x, f"l{layer}.n1", *_norm_weights(draw))
        q, k, v = (write.linear(normed, f"l{layer}.{name}", *w[name]) for name in "qkv")
        scores = write.add("MatMul", write.heads(q, [0, 2, 1, 3]), write.heads(k, [0, 2, 3, 1]))
        scaled = write.add("Mul", scores, write.weight("scale", (WIDTH / HEADS) ** -0.5))
        attended = write.add("MatMul", write.add("Softmax", scaled, axis=-1), write.heads(v, [0, 2, 1, 3]))
        merged = write.add("Transpose", attended, perm=[0, 2, 1, 3])
        merged = write.add("Reshape", merged, write.weight("merged", [2, LENGTH, WIDTH], np.int64))
        x = write.add("Add", x, write.linear(merged, f"l{layer}.o", *w["o"]))
        normed = write.norm(x, f"l{layer}.n2", *_norm_weights(draw))
        hidden = write.gelu(write.linear(normed, f"l{layer}.up", *w["up"]))
        x = write.add("Add", x, write.linear(hidden, f"l{layer}.down", *w["down"]))
    return model_of(write, "x" if parts else "input", x, [2, LENGTH, WIDTH])


def _norm_weights(rng: np.random.Generator) -> tuple[Array, Array]:
    return 1 + 0.1 * rng.standard_normal(WIDTH), 0.1 * rng.standard_normal(WIDTH)


def convnet(seed: int = 0) -> onnx.ModelProto:
    """image [2, 3, 16, 16] → y: Conv, BatchNormalization and Relu with residuals, pooled, a Gemm."""
    rng, write, x, channels = np.random.default_rng(seed), Writer(True), "image", 3
    for block in range(4):
        kernel = rng.standard_normal((8, channels, 3, 3)) / np.sqrt(9 * channels)
        y = write.add("Conv", x, write.weight(f"k{block}", kernel), pads=[1, 1, 1, 1])
        stats = [write.weight(f"{part}{block}", 0.5 + rng.random(8)) for part in ("s", "b", "m", "v")]
        y = write.add("Relu", write.add("BatchNormalization", y, *stats))
        x, channels = write.add("Add", x, y) if block else y, 8
    flat = write.add("Flatten", write.add("GlobalAveragePool", x))
    y = write.add("Gemm", flat, write.weight("w", rng.standard_normal((8, 5))), write.weight("c", rng.random(5)))
    return model_of(write, "image", y, [2, 3, 16, 16])


def model_of(write: Writer, x: str, y: str, shape: list[int]) -> onnx.ModelProto:
    """The model of what was written."""
    graph = helper.make_graph(
        write.nodes,
        "g",
        [helper.make_tensor_value_info(x, TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(y, TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in write.weights.items()],
    )
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


def renamed(
    model: onnx.ModelProto, seed: int = 0, kept: Collection[str] = ()
) -> tuple[onnx.ModelProto, dict[str, str]]:
    """The model with other names for all tensors but `kept` and none for nodes, and the new name of each tensor."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    graph = copy.graph
    names = sorted({name for node in graph.node for name in (*node.input, *node.output) if name})
    order = np.random.default_rng(seed).permutation(len(names))
    new = {n: n if n in kept else f"r{place}" for n, place in zip(names, order.tolist(), strict=True)}
    for node in graph.node:
        node.input[:] = [new.get(name, "") for name in node.input]
        node.output[:] = [new.get(name, "") for name in node.output]
        node.name = ""
    for value in (*graph.input, *graph.output, *graph.initializer):
        value.name = new[value.name]
    del graph.value_info[:]
    return copy, new


def observed(model: onnx.ModelProto, feed: Mapping[str, Array]) -> Values:
    """Every tensor of the main graph, nothing fused."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    known = {value.name for value in copy.graph.output}
    made = [name for node in copy.graph.node for name in node.output if name and name not in known]
    copy.graph.output.extend(onnx.ValueInfoProto(name=name) for name in made)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(copy.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_outputs()]
    return {**feed, **dict(zip(names, session.run(names, dict(feed)), strict=True))}


def side(model: onnx.ModelProto, x: Array, folder: Path) -> tuple[SideData, Values]:
    """A model's data for aligning, and all its tensors; x: its input."""
    path = folder / "side.onnx"
    path.write_bytes(model.SerializeToString())
    with ModelFile(path) as file:
        structure = Structure.open(file)
        graph = onnx_graph(structure)
        values = observed(model, {graph.inputs[0]: x})
        for name, weight in weight_arrays(file, structure.initializers):
            values[name] = np.array(weight)
    return collect(graph, values.items(), file.path.name), values


def feed_of(model: onnx.ModelProto, seed: int = 1) -> Array:
    """A random input."""
    shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def scaled_weight(model: onnx.ModelProto, name: str, factor: float) -> onnx.ModelProto:
    """The model with one weight multiplied."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for weight in copy.graph.initializer:
        if weight.name == name:
            weight.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weight) * np.float32(factor), name))
    return copy


def weights_of(model: onnx.ModelProto) -> Iterator[str]:
    """Names of the initializers."""
    return (weight.name for weight in model.graph.initializer)
