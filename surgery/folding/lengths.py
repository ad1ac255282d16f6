"""Lengths of tensors in a graph: arithmetic on them stays in integers, and values that follow from shapes are known.

`Cast(int64) <- Op <- Cast(float) <- Shape` is written by exporters and rejected by engines: a length must stay an
integer. Only if the result is the same: the operator is exact on integers, and constants are whole numbers.

Shape and Size are followed through operators that select from them or join them: a vector with some known and some
unknown lengths is propagated through Gather, Slice, Concat, Cast, Identity, Squeeze and Unsqueeze:
`Gather(Shape(x), 1)` is known although the batch is not.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from layerwise._tool.backends.reference.evaluate import tensor_array
from layerwise._tool.surgery.folding.constants import numbers, weight
from layerwise._tool.surgery.model.structure import Graph, changed

_EXACT = frozenset({"Add", "Sub", "Mul", "Max", "Min", "Concat"})
_INTEGERS: dict[int, type[np.signedinteger[Any]]] = {TensorProto.INT32: np.int32, TensorProto.INT64: np.int64}
_FLOATS: dict[int, int] = {TensorProto.FLOAT: 1 << 24}  # represents all integers up to here
_LENGTHS = frozenset(
    {"Shape", "Size", "Gather", "Slice", "Squeeze", "Unsqueeze", "Concat", "Identity", "Cast", "Reshape"}
)
Dims = tuple[int | None, ...]


def without_casts(graph: Graph, types: Mapping[str, int], folder: Path | None) -> Graph:
    """Return the graph with such arithmetic in integers; unused nodes stay. types: TensorProto types."""
    for node in graph.nodes:
        new = _as_integers(graph, node, types, folder)
        if new is not None:
            graph = new
    return graph


def _as_integers(graph: Graph, node: onnx.NodeProto, types: Mapping[str, int], folder: Path | None) -> Graph | None:
    if node.op_type not in _EXACT or node.domain not in ("", "ai.onnx") or len(node.output) != 1:
        return None
    backs = graph.lookups.readers.get(node.output[0], ())
    if not backs or graph.read_outside(node.output[0]) or not all(_casts_to(back, _INTEGERS) for back in backs):
        return None
    kinds = {_target(back) for back in backs}
    sources = [_source(graph, name, types, folder) for name in node.input]
    kinds |= {kind for kind, _ in filter(None, sources) if kind}
    if None in sources or len(kinds) != 1 or not any(kind for kind, _ in filter(None, sources)):
        return None
    kind = kinds.pop()
    return _rewritten(graph, node, backs, [name for _, name in filter(None, sources)], kind, folder)


def _rewritten(
    graph: Graph, node: onnx.NodeProto, backs: tuple[onnx.NodeProto, ...], reads: list[str], kind: int,
    folder: Path | None,
) -> Graph:  # fmt: skip
    weights = dict(graph.initializers)
    new = changed(node)
    del new.input[:]
    for name in reads:
        tensor = weight(graph, name)
        whole = name
        if tensor is not None and tensor.data_type not in _INTEGERS:
            whole = graph.fresh(f"{name}__integer", weights)
            weights[whole] = numpy_helper.from_array(tensor_array(tensor, folder).astype(_INTEGERS[kind]), whole)
        new.input.append(whole)
    new.output[0] = backs[0].output[0]
    others = [helper.make_node("Identity", [new.output[0]], list(back.output)) for back in backs[1:]]
    gone: dict[int, list[onnx.NodeProto]] = {id(back): [] for back in backs}
    return graph.replaced({**gone, id(node): [new, *others]}).with_(initializers=weights)


def _source(graph: Graph, name: str, types: Mapping[str, int], folder: Path | None) -> tuple[int, str] | None:
    """Return an input's origin as an integer: (its type, its name); type 0 for a constant. None: not an integer."""
    tensor = weight(graph, name)
    if tensor is not None:
        if tensor.data_type not in _FLOATS or np.prod(tensor.dims, dtype=float) > 64:
            return None
        values = tensor_array(tensor, folder)
        exact = np.isfinite(values).all() and bool((values == np.floor(values)).all())
        return (0, name) if exact and bool((np.abs(values) < _FLOATS[tensor.data_type]).all()) else None
    maker = graph.lookups.makers.get(name)
    if maker is None or not _casts_to(maker, _FLOATS) or not _is_length(graph, maker.input[0]):
        return None
    kind = types.get(maker.input[0], 0)
    return (kind, maker.input[0]) if kind in _INTEGERS else None


def _is_length(graph: Graph, name: str) -> bool:
    """Return whether a tensor comes from shapes and constants through data movement only: far below 2^24."""
    waiting, seen, found = [name], set(), False
    while waiting:
        name = waiting.pop()
        maker = graph.lookups.makers.get(name)
        if maker is None:
            if weight(graph, name) is None:
                return False
            continue
        if maker.op_type not in _LENGTHS:
            return False
        if maker.op_type in ("Shape", "Size"):
            found = True
        elif id(maker) not in seen:
            seen.add(id(maker))
            waiting += filter(None, maker.input)
    return found


def _casts_to(node: onnx.NodeProto, kinds: Mapping[int, object]) -> bool:
    return node.op_type == "Cast" and node.domain in ("", "ai.onnx") and _target(node) in kinds


def _target(node: onnx.NodeProto) -> int:
    return next((attribute.i for attribute in node.attribute if attribute.name == "to"), 0)


@dataclass(frozen=True)
class Vector:
    """Integers of a tensor of rank 1 (or 0: `scalar`); None is an unknown one. kind: TensorProto.DataType."""

    items: Dims
    scalar: bool = False
    kind: int = TensorProto.INT64

    def tensor(self, name: str) -> TensorProto | None:
        """Return it as a weight, None if anything in it is unknown."""
        if None in self.items:
            return None
        array = np.array(self.items, _INTEGERS[self.kind])
        return numpy_helper.from_array(array.reshape(() if self.scalar else (-1,)), name)


def shape_values(graph: Graph, shapes: Mapping[str, Dims], folder: Path | None) -> dict[str, TensorProto]:
    """Return as weights all tensors of a graph, in topological order, whose values follow from known lengths.

    shapes: lengths of tensors by name, None for unknown ones; also of tensors of outer graphs.
    """
    vectors = _Vectors(graph, shapes, folder)
    found: dict[str, TensorProto] = {}
    for node in graph.nodes:
        vector = vectors.follow(node)
        if vector is None:
            continue
        vectors.known[node.output[0]] = vector
        tensor = vector.tensor(node.output[0])
        if tensor is not None:
            found[tensor.name] = tensor
    return found


class _Vectors:
    def __init__(self, graph: Graph, shapes: Mapping[str, Dims], folder: Path | None) -> None:
        self.known: dict[str, Vector] = {}
        self._graph, self._shapes, self._folder = graph, shapes, folder

    def follow(self, node: onnx.NodeProto) -> Vector | None:
        """Return what is known of the node's only output."""
        rule = _RULES.get(node.op_type)
        if rule is None or node.domain not in ("", "ai.onnx") or len(node.output) != 1:
            return None
        if any(attribute.ref_attr_name for attribute in node.attribute):
            return None
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        return rule(self, node, attributes)

    def shape(self, name: str) -> Dims | None:
        return self._shapes.get(name)

    def vector(self, name: str) -> Vector | None:
        """Return a propagated vector, or a small weight of rank 0 or 1."""
        if name in self.known:
            return self.known[name]
        tensor, values = weight(self._graph, name), numbers(self._graph, name, self._folder)
        if tensor is None or values is None or len(tensor.dims) > 1 or tensor.data_type not in _INTEGERS:
            return None
        return Vector(tuple(values), scalar=not tensor.dims, kind=tensor.data_type)

    def list_of(self, node: onnx.NodeProto, position: int, attributes: Mapping[str, object], key: str) -> "Numbers":
        """Return integers given as an input, or as an attribute in older opsets."""
        name = node.input[position] if len(node.input) > position else ""
        if name:
            return numbers(self._graph, name, self._folder)
        value = attributes.get(key)
        return [int(item) for item in value] if isinstance(value, list | tuple) else None


Numbers = Sequence[int] | None
Attributes = Mapping[str, object]


def _integer(attributes: Attributes, key: str, default: int) -> int:
    value = attributes.get(key, default)
    return value if isinstance(value, int) else default


def _shape(vectors: _Vectors, node: onnx.NodeProto, attributes: Attributes) -> Vector | None:
    shape = vectors.shape(node.input[0])
    if shape is None:
        return None
    end = _integer(attributes, "end", len(shape))
    return Vector(shape[slice(_integer(attributes, "start", 0), end)])


def _size(vectors: _Vectors, node: onnx.NodeProto, attributes: Attributes) -> Vector | None:
    shape = vectors.shape(node.input[0])
    if shape is None or None in shape:
        return None
    return Vector((int(np.prod(shape, dtype=np.int64)),), scalar=True)  # type: ignore[arg-type]


def _gather(vectors: _Vectors, node: onnx.NodeProto, attributes: Attributes) -> Vector | None:
    data, places = vectors.vector(node.input[0]), vectors.vector(node.input[1])
    if data is None or data.scalar or places is None or _integer(attributes, "axis", 0) != 0:
        return None
    size = len(data.items)
    if any(place is None or not -size <= place < size for place in places.items):
        return None
    return Vector(tuple(data.items[place] for place in places.items if place is not None), places.scalar, data.kind)


def _slice(vectors: _Vectors, node: onnx.NodeProto, attributes: Attributes) -> Vector | None:
    data = vectors.vector(node.input[0])
    starts, ends = (vectors.list_of(node, i, attributes, key) for i, key in ((1, "starts"), (2, "ends")))
    axes = vectors.list_of(node, 3, attributes, "axes") if len(node.input) > 3 or "axes" in attributes else [0]
    steps = vectors.list_of(node, 4, attributes, "steps") if len(node.input) > 4 else [1]
    if data is None or data.scalar or starts is None or ends is None or axes is None or steps is None:
        return None
    if len(starts) != 1 or list(axes) not in ([0], [-1]) or steps[0] <= 0:
        return None
    return Vector(data.items[slice(starts[0], ends[0], steps[0])], kind=data.kind)


def _concat(vectors: _Vectors, node: onnx.NodeProto, attributes: Attributes) -> Vector | None:
    parts = [vectors.vector(name) for name in node.input]
    if any(part is None or part.scalar for part in parts) or _integer(attributes, "axis", 0) not in (0, -1):
        return None
    known = [part for part in parts if part is not None]
    return Vector(tuple(item for part in known for item in part.items), kind=known[0].kind)


def _unsqueeze(vectors: _Vectors, node: onnx.NodeProto, attributes: Attributes) -> Vector | None:
    data, axes = vectors.vector(node.input[0]), vectors.list_of(node, 1, attributes, "axes")
    if data is None or not data.scalar or axes is None or list(axes) not in ([0], [-1]):
        return None
    return Vector(data.items, kind=data.kind)


def _squeeze(vectors: _Vectors, node: onnx.NodeProto, attributes: Attributes) -> Vector | None:
    data = vectors.vector(node.input[0])
    return Vector(data.items, True, data.kind) if data and not data.scalar and len(data.items) == 1 else None


def _identity(vectors: _Vectors, node: onnx.NodeProto, attributes: Attributes) -> Vector | None:
    return vectors.vector(node.input[0])


def _cast(vectors: _Vectors, node: onnx.NodeProto, attributes: Attributes) -> Vector | None:
    data, kind = vectors.vector(node.input[0]), _integer(attributes, "to", 0)
    if data is None or kind not in _INTEGERS:
        return None
    if kind == TensorProto.INT32 and any(item is not None and abs(item) >= 1 << 31 for item in data.items):
        return None
    return Vector(data.items, data.scalar, kind)


_RULES: Mapping[str, Callable[[_Vectors, onnx.NodeProto, Attributes], Vector | None]] = {
    "Shape": _shape,
    "Size": _size,
    "Gather": _gather,
    "Slice": _slice,
    "Concat": _concat,
    "Unsqueeze": _unsqueeze,
    "Squeeze": _squeeze,
    "Identity": _identity,
    "Cast": _cast,
}
