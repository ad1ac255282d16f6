"""A model's graph for following values: bodies included, weights by their dimensions alone."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import onnx
import onnx.numpy_helper
from numpy.typing import NDArray

from layerwise._tool.backends.model.protos import dims_of
from layerwise._tool.backends.tensors import Dim, TensorInfo, dtype_name

State = TypeVar("State")
_SMALL = 4096  # elements; larger constants are never looked at
_WEIGHT_KEEPS = {"Identity", "Cast", "DequantizeLinear", "QuantizeLinear"}


class Value(NamedTuple):
    """A tensor: its name, and the graph that defines it (0 is the main one)."""

    scope: int
    name: str


class Use(NamedTuple):
    """A node that reads a tensor, at which of its inputs; scope: the graph that it is in."""

    node: onnx.NodeProto
    slot: int
    scope: int


class IndexedTable(NamedTuple):
    """What is indexed: its name, its dimensions as far as they are known, whether it is a weight."""

    name: str
    dims: tuple[int | None, ...]
    weight: bool


class FeedGraph:
    """Readers, makers and constants of a structure's graphs. `model` is not changed; its large weights are external."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.model = _without_functions(model)
        self.readers: dict[Value, list[Use]] = defaultdict(list)
        self.makers: dict[Value, tuple[onnx.NodeProto, int]] = {}
        self.same: dict[Value, list[Value]] = defaultdict(list)
        self._weights: dict[Value, onnx.TensorProto] = {}
        self._owners: list[tuple[int, set[str]]] = []
        self._shapes: dict[str, tuple[int | None, ...]] = {}
        self._read(self.model.graph, -1)
        self.inputs = [info for info in map(_info, self.model.graph.input) if Value(0, info.name) not in self._weights]
        self.ops = {node.op_type for node, _ in self.makers.values()}

    def learn(self, shapes: Mapping[str, Sequence[Dim]]) -> None:
        """Take the dimensions of tensors of the main graph, as inferred for the inputs' chosen shapes."""
        self._shapes |= {n: tuple(d if isinstance(d, int) else None for d in shape) for n, shape in shapes.items()}

    def _read(self, graph: onnx.GraphProto, parent: int) -> int:
        scope = len(self._owners)
        own = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
        own |= {name for node in graph.node for name in node.output if name}
        self._owners.append((parent, own))
        self._weights |= {Value(scope, tensor.name): tensor for tensor in graph.initializer}
        for node in graph.node:
            for slot, name in enumerate(node.input):
                if name:
                    self.readers[self.value(scope, name)].append(Use(node, slot, scope))
            for name in filter(None, node.output):
                self.makers[Value(scope, name)] = (node, scope)
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    self._join(node, attribute.g, scope, self._read(attribute.g, scope))
        return scope

    def _join(self, node: onnx.NodeProto, body: onnx.GraphProto, scope: int, inner: int) -> None:
        """Say which tensors of a body are those of its node."""
        skipped = 0 if node.op_type == "If" else 1 if node.op_type == "Loop" else 0
        for result, name in zip(list(body.output)[skipped:], node.output, strict=False):
            self.same[self.value(inner, result.name)].append(Value(scope, name))
        taken = list(zip(node.input, body.input, strict=False)) if node.op_type in ("Loop", "Scan") else []
        for outer, value in taken[2 * skipped :]:
            if outer:
                self.same[self.value(scope, outer)].append(Value(inner, value.name))

    def value(self, scope: int, name: str) -> Value:
        """The tensor that a name means in a graph."""
        at = scope
        while at >= 0:
            parent, own = self._owners[at]
            if name in own:
                return Value(at, name)
            at = parent
        return Value(scope, name)

    def read_by(self, use: Use, slot: int) -> Value | None:
        """Another input of a reader; None where it has none."""
        names = use.node.input
        return self.value(use.scope, names[slot]) if slot < len(names) and names[slot] else None

    def outputs(self, use: Use) -> Iterator[Value]:
        """What a reader makes."""
        return (Value(use.scope, name) for name in use.node.output if name)

    def constant(self, value: Value | None) -> NDArray[Any] | None:
        """The values of a small constant; None for all other tensors."""
        for _ in range(8):
            tensor = None if value is None else self._tensor(value)
            if tensor is not None:
                return _small(tensor)
            made = None if value is None else self.makers.get(value)
            if made is None or made[0].op_type not in ("Identity", "Cast", "Unsqueeze", "Squeeze", "Reshape"):
                return None
            value = self.value(made[1], made[0].input[0])
        return None

    def _tensor(self, value: Value) -> onnx.TensorProto | None:
        if value in self._weights:
            return self._weights[value]
        made = self.makers.get(value)
        if made is None or made[0].op_type != "Constant":
            return None
        return next((_constant(a) for a in made[0].attribute), None)

    def table(self, value: Value | None) -> IndexedTable | None:
        """Name and dimensions of what is indexed: a weight, cast or dequantised or not; or an inner tensor."""
        if value is None:
            return None
        at, swapped = value, False
        for _ in range(8):
            tensor = self._tensor(at)
            if tensor is not None:
                dims = tuple(tensor.dims)
                return IndexedTable(at.name, dims[::-1] if swapped else dims, True)
            made = self.makers.get(at)
            if made is None or not made[0].input or made[0].op_type not in (*_WEIGHT_KEEPS, "Transpose"):
                break
            swapped ^= made[0].op_type == "Transpose"
            at = self.value(made[1], made[0].input[0])
        known = self._shapes.get(value.name) if value.scope == 0 else None
        return None if known is None else IndexedTable(value.name, known, False)

    def dims(self, value: Value | None) -> tuple[int | None, ...] | None:
        """The dimensions of a tensor, as far as known."""
        table = self.table(value)
        return None if table is None else table.dims


class Walk(Generic[State]):
    """Follows the values of an input of the main graph to who reads them, each once, as far as the caller goes on.

    state: what the caller knows of the tensor that a reader reads.
    """

    def __init__(self, graph: FeedGraph, name: str, state: State, most: int) -> None:
        """most: tensors that are looked at."""
        self._graph, self._most = graph, most
        self._waiting: list[tuple[Value, State]] = [(Value(0, name), state)]

    def __iter__(self) -> Iterator[tuple[Value, Use, State]]:
        seen: set[Value] = set()
        while self._waiting and len(seen) < self._most:
            value, state = self._waiting.pop()
            if value in seen:
                continue
            seen.add(value)
            self._waiting += ((other, state) for other in self._graph.same.get(value, ()))
            for use in self._graph.readers.get(value, ()):
                yield value, use, state

    def beyond(self, use: Use, state: State) -> None:
        """Go on with what a reader makes."""
        self._waiting += ((made, state) for made in self._graph.outputs(use))


def attribute(node: onnx.NodeProto, name: str, default: Any) -> Any:
    """An attribute's value, a number or numbers; the default where it is missing or of another type."""
    for item in node.attribute:
        if item.name == name and item.type in (onnx.AttributeProto.INT, onnx.AttributeProto.INTS):
            value = item.i if item.type == onnx.AttributeProto.INT else list(item.ints)
            return value if default is None or isinstance(value, type(default)) else default
    return default


def _without_functions(model: onnx.ModelProto) -> onnx.ModelProto:
    if not model.functions:
        return model
    import onnx.inliner

    from layerwise._tool.backends.model.expansion import check_functions

    with suppress(Exception):  # native code raises its own; then what functions do with inputs is not seen
        check_functions(model.SerializeToString())
        return onnx.inliner.inline_local_functions(model)
    return model


def _info(value: onnx.ValueInfoProto) -> TensorInfo:
    tensor = value.type.tensor_type
    shape = tuple(dims_of(value)) if tensor.HasField("shape") else None
    return TensorInfo(value.name, dtype_name(tensor.elem_type), shape)


def _constant(item: onnx.AttributeProto) -> onnx.TensorProto | None:
    if item.name == "value":
        return item.t
    if item.name in ("value_int", "value_float", "value_ints", "value_floats"):
        return onnx.numpy_helper.from_array(np.asarray(onnx.helper.get_attribute_value(item)))
    return None


def _small(tensor: onnx.TensorProto) -> NDArray[Any] | None:
    count = 1
    for dim in tensor.dims:
        count *= dim
    if count > _SMALL or count < 0 or tensor.data_location == tensor.EXTERNAL:
        return None
    with suppress(Exception):  # damaged values: they are said elsewhere
        array: NDArray[Any] = onnx.numpy_helper.to_array(tensor)
        return array if array.dtype.kind in "biuf" else None
    return None
