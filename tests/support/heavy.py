"""Realistic FP32 models without a download: ONNX's own `light_*` models, given weights.

The light models that come with the onnx package are well-known networks whose large weights are replaced by
constants; their numbers degenerate. Each constant gets random values of the size that its role calls for
(He et al. 2015 for convolutions and dense layers), so that activations stay healthy through all layers.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

NAMES = (
    *("bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet", "squeezenet"),
    *("vgg19", "zfnet512"),
)
_NORMAL = (0.0, 0.05)
_ROLES = {  # (operator, input): mean and spread of the values
    ("BatchNormalization", 1): (1.0, 0.1),
    ("BatchNormalization", 2): (0.0, 0.1),
    ("BatchNormalization", 3): (0.0, 0.1),
    ("Mul", 1): (1.0, 0.1),
    ("Add", 1): (0.0, 0.1),
    ("Conv", 2): (0.0, 0.01),
    ("Gemm", 2): (0.0, 0.01),
}


def light_model(name: str) -> Path:
    """Return the path of onnx's light model `name`, one of `NAMES`."""
    return Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / f"light_{name}.onnx"


def heavy_model(name: str, seed: int = 0) -> onnx.ModelProto:
    """Return the network `name` with random FP32 weights, the same for the same `seed`."""
    model = onnx.load(light_model(name))
    graph = model.graph
    shapes = {tensor.name: tensor for tensor in graph.initializer}
    random = np.random.default_rng(seed)
    roles = _roles(graph)
    nodes, weights = [], []
    for node in graph.node:
        if node.op_type == "ConstantOfShape" and node.input[0] in shapes:
            shape = tuple(int(size) for size in numpy_helper.to_array(shapes[node.input[0]]))
            values = _values(random, shape, roles.get(node.output[0], ("", 0)))
            weights.append(numpy_helper.from_array(values, node.output[0]))
        else:
            nodes.append(node)
    read = {name for node in nodes for name in node.input}
    weights += [tensor for tensor in graph.initializer if tensor.name in read]
    inputs = [value for value in graph.input if value.name not in shapes]
    new = onnx.helper.make_graph(nodes, f"heavy_{name}", inputs, graph.output, weights)
    return onnx.helper.make_model(new, ir_version=8, opset_imports=model.opset_import)


def make_heavy(folder: Path, name: str) -> Path:
    """Write `heavy_<name>.onnx` to `folder` unless it is there already; return its path."""
    path = folder / f"heavy_{name}.onnx"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        onnx.save(heavy_model(name), partial)
        partial.rename(path)
    return path


def make_gpu_bound(folder: Path) -> Path:
    """Write `gpu_bound.onnx` to `folder` unless it is there: 97 large products, small inputs and outputs.

    Each takes a GPU longer than the host takes to start it, so that the host is never waited for.
    """
    path = folder / "gpu_bound.onnx"
    if path.exists():
        return path
    random, rows, wide, narrow = np.random.default_rng(0), 4096, 2048, 64
    sizes = {"first": (narrow, wide), **{f"w{i}": (wide, wide) for i in range(8)}, "last": (wide, narrow)}
    weights = [numpy_helper.from_array(_values(random, size, ("Gemm", 1)), name) for name, size in sizes.items()]
    names = ["first", *(f"w{i % 8}" for i in range(95)), "last"]
    nodes = []
    for i, name in enumerate(names):
        nodes.append(onnx.helper.make_node("MatMul", [f"x{i}", name], [f"y{i}"]))
        nodes.append(onnx.helper.make_node("Relu", [f"y{i}"], [f"x{i + 1}"]))
    ends = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [rows, narrow])
        for name in ("x0", f"x{len(names)}")
    ]
    graph = onnx.helper.make_graph(nodes, "gpu_bound", ends[:1], ends[1:], weights)
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(onnx.helper.make_model(graph, ir_version=8, opset_imports=[onnx.helper.make_opsetid("", 17)]), path)
    return path


def _roles(graph: onnx.GraphProto) -> Mapping[str, tuple[str, int]]:
    """Who reads a tensor, as which input; DenseNet's scales change shape on the way, so look past that."""
    readers = {name: (node, place) for node in reversed(graph.node) for place, name in enumerate(node.input)}
    roles = {}
    for name, reader in readers.items():
        node, place = reader
        while node.op_type in ("Unsqueeze", "Reshape") and node.output[0] in readers:
            node, place = readers[node.output[0]]
        roles[name] = (node.op_type, place)
    return roles


def _values(random: np.random.Generator, shape: tuple[int, ...], role: tuple[str, int]) -> NDArray[Any]:
    drawn = random.standard_normal(shape)
    if role == ("BatchNormalization", 4):  # variances are positive
        values = 1 + 0.2 * np.abs(drawn)
    elif role in (("Conv", 1), ("Gemm", 1)) and len(shape) > 1:
        values = drawn * math.sqrt(2 / math.prod(shape[1:]))
    else:
        mean, spread = _ROLES.get(role, _NORMAL)
        values = mean + spread * drawn
    return values.astype(np.float32)
