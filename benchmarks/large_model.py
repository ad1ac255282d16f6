"""A Llama-shaped ONNX model of any size with random weights in an external file, written a weight at a time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

_TILE = 1 << 24  # values that are drawn; larger weights repeat them from another place
_ALIGNMENT = 4096


@dataclass(frozen=True)
class Shape:
    """heads share keys and values in groups: there are `groups` of these."""

    hidden: int
    layers: int
    inner: int
    heads: int
    groups: int
    vocabulary: int
    half: bool = False
    length: int = 64

    @property
    def dtype(self) -> type[np.generic]:
        return np.float16 if self.half else np.float32


BILLION = Shape(hidden=2048, layers=19, inner=5632, heads=32, groups=8, vocabulary=32000)
EIGHT_BILLION = Shape(hidden=4096, layers=32, inner=14336, heads=32, groups=8, vocabulary=128256, half=True)


class Writer:
    """Nodes, and weights that go to the file as they are made."""

    def __init__(self, shape: Shape, data: BinaryIO, file: str) -> None:
        self.shape, self._data, self._file = shape, data, file
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self._random = np.random.default_rng(0)
        self._values = self._random.standard_normal(_TILE, dtype=np.float32)
        self._scope: list[str] = []

    def op(self, kind: str, inputs: Sequence[str], name: str, **attributes: Any) -> str:
        """Add a node; its output's name."""
        self.nodes.append(helper.make_node(kind, inputs, [name], name, **attributes))
        return name

    def constant(self, name: str, value: Any, dtype: Any = None) -> str:
        self.weights.append(numpy_helper.from_array(np.array(value, dtype or self.shape.dtype), name))
        return name

    def weight(self, name: str, *dims: int, spread: float | None = None) -> str:
        """A random weight; spread: standard deviation (1 / sqrt(rows) unless told)."""
        count, start = int(np.prod(dims)), int(self._random.integers(_TILE))
        scale = np.float32(dims[0] ** -0.5 if spread is None else spread)
        self._data.seek(-(-self._data.tell() // _ALIGNMENT) * _ALIGNMENT)
        tensor = TensorProto(name=name, dims=dims, data_location=TensorProto.EXTERNAL)
        tensor.data_type = helper.np_dtype_to_tensor_dtype(np.dtype(self.shape.dtype))
        offset = self._data.tell()
        for piece in self._pieces(start, count):
            (piece * scale).astype(self.shape.dtype).tofile(self._data)
        length = self._data.tell() - offset
        for key, value in (("location", self._file), ("offset", offset), ("length", length)):
            tensor.external_data.add(key=key, value=str(value))
        self.weights.append(tensor)
        return name

    def _pieces(self, start: int, count: int) -> Iterator[NDArray[np.float32]]:
        while count:
            piece = self._values[start : start + count]
            yield piece
            count, start = count - piece.size, 0


def llama(path: Path, shape: Shape) -> Path:
    """Write the model: input ids (1, length), output logits (1, length, vocabulary)."""
    file = f"{path.name}.data"
    with (path.parent / file).open("wb") as data:
        writer = Writer(shape, data, file)
        x = writer.op("Gather", [writer.weight("embed", shape.vocabulary, shape.hidden, spread=1.0), "ids"], "x")
        _tables(writer)
        for layer in range(shape.layers):
            x = _layer(writer, f"layers.{layer}", x)
        x = _norm(writer, "norm", x)
        writer.op("MatMul", [x, writer.weight("head", shape.hidden, shape.vocabulary)], "logits")
    kind = TensorProto.FLOAT16 if shape.half else TensorProto.FLOAT
    graph = helper.make_graph(
        writer.nodes, "llama",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, [1, shape.length])],
        [helper.make_tensor_value_info("logits", kind, [1, shape.length, shape.vocabulary])],
        writer.weights,
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


def _tables(writer: Writer) -> None:
    """Rotary tables, the mask, and what all layers share."""
    shape = writer.shape
    size = shape.hidden // shape.heads
    angles = np.arange(shape.length)[:, None] * 10000.0 ** (-np.arange(0, size, 2) / size)[None]
    angles = np.concatenate([angles, angles], axis=1)
    writer.constant("cos", np.cos(angles))
    writer.constant("sin", np.sin(angles))
    mask = np.triu(np.full((shape.length, shape.length), np.finfo(shape.dtype).min), 1)
    writer.constant("mask", mask)
    writer.constant("epsilon", 1e-5, np.float32)
    writer.constant("two", 2.0, np.float32)
    writer.constant("scale", size**-0.5)
    for name, count in (("queries", shape.heads), ("keys", shape.groups)):
        writer.constant(f"to_{name}", [0, 0, count, size], np.int64)
    writer.constant("flat", [0, 0, shape.hidden], np.int64)
    writer.constant("halves", [size // 2, size // 2], np.int64)
    writer.constant("axis2", [2], np.int64)
    each = shape.heads // shape.groups
    writer.constant("repeat", [1, shape.groups, each, shape.length, size], np.int64)
    writer.constant("joined", [1, shape.heads, shape.length, size], np.int64)


def _norm(writer: Writer, name: str, x: str) -> str:
    half = writer.shape.half  # as in Llama's code, the norm is in FP32
    wide = writer.op("Cast", [x], f"{name}.wide", to=TensorProto.FLOAT) if half else x
    square = writer.op("Pow", [wide, "two"], f"{name}.square")
    mean = writer.op("ReduceMean", [square], f"{name}.mean", axes=[-1])
    root = writer.op("Sqrt", [writer.op("Add", [mean, "epsilon"], f"{name}.added")], f"{name}.root")
    normal = writer.op("Div", [wide, root], f"{name}.normal")
    normal = writer.op("Cast", [normal], f"{name}.narrow", to=TensorProto.FLOAT16) if half else normal
    gain = writer.constant(f"{name}.weight", np.ones(writer.shape.hidden))
    return writer.op("Mul", [gain, normal], f"{name}.out")


def _rotated(writer: Writer, name: str, x: str) -> str:
    first, second = f"{name}.first", f"{name}.second"
    writer.nodes.append(helper.make_node("Split", [x, "halves"], [first, second], f"{name}.split", axis=-1))
    turned = writer.op("Concat", [writer.op("Neg", [second], f"{name}.neg"), first], f"{name}.turned", axis=-1)
    straight = writer.op("Mul", [x, "cos"], f"{name}.straight")
    return writer.op("Add", [straight, writer.op("Mul", [turned, "sin"], f"{name}.across")], f"{name}.rotated")


def _heads(writer: Writer, name: str, x: str, kind: str, width: int) -> str:
    weight = writer.weight(f"{name}.weight", writer.shape.hidden, width)
    apart = writer.op("Reshape", [writer.op("MatMul", [x, weight], f"{name}.dense"), f"to_{kind}"], f"{name}.apart")
    return writer.op("Transpose", [apart], f"{name}.heads", perm=[0, 2, 1, 3])


def _repeated(writer: Writer, name: str, x: str) -> str:
    wide = writer.op("Expand", [writer.op("Unsqueeze", [x, "axis2"], f"{name}.wide"), "repeat"], f"{name}.expanded")
    return writer.op("Reshape", [wide, "joined"], f"{name}.repeated")


def _layer(writer: Writer, name: str, x: str) -> str:
    shape, attention = writer.shape, f"{name}.attention"
    narrow = shape.hidden // shape.heads * shape.groups
    y = _norm(writer, f"{name}.norm1", x)
    queries = _rotated(writer, f"{attention}.q", _heads(writer, f"{attention}.q", y, "queries", shape.hidden))
    keys = _rotated(writer, f"{attention}.k", _heads(writer, f"{attention}.k", y, "keys", narrow))
    values = _repeated(writer, f"{attention}.v", _heads(writer, f"{attention}.v", y, "keys", narrow))
    keys = writer.op("Transpose", [_repeated(writer, f"{attention}.k", keys)], f"{attention}.k.t", perm=[0, 1, 3, 2])
    scores = writer.op("Mul", [writer.op("MatMul", [queries, keys], f"{attention}.qk"), "scale"], f"{attention}.scaled")
    masked = writer.op("Add", [scores, "mask"], f"{attention}.masked")
    weights = writer.op("Softmax", [masked], f"{attention}.softmax", axis=-1)
    mixed = writer.op("Transpose", [writer.op("MatMul", [weights, values], f"{attention}.mixed")],
                      f"{attention}.together", perm=[0, 2, 1, 3])  # fmt: skip
    flat = writer.op("Reshape", [mixed, "flat"], f"{attention}.flat")
    out = writer.op("MatMul", [flat, writer.weight(f"{attention}.o", shape.hidden, shape.hidden)], f"{attention}.out")
    x = writer.op("Add", [x, out], f"{name}.residual1")
    y = _norm(writer, f"{name}.norm2", x)
    gate = writer.op("MatMul", [y, writer.weight(f"{name}.gate", shape.hidden, shape.inner)], f"{name}.gated")
    silu = writer.op("Mul", [gate, writer.op("Sigmoid", [gate], f"{name}.sigmoid")], f"{name}.silu")
    up = writer.op("MatMul", [y, writer.weight(f"{name}.up", shape.hidden, shape.inner)], f"{name}.upped")
    inner = writer.op("Mul", [silu, up], f"{name}.inner")
    down = writer.op("MatMul", [inner, writer.weight(f"{name}.down", shape.inner, shape.hidden)], f"{name}.downed")
    return writer.op("Add", [x, down], f"{name}.residual2")
