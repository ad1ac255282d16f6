"""A graph of a model for display: typed inputs, outputs, initializers, nodes and attribute values."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from layerwise._tool.backends.errors import BadFile, LayerwiseError
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.model.record_values import (
    Attribute,
    Value,
    read_attribute,
    read_initializer,
    read_sparse_initializer,
    read_type,
    read_value,
)
from layerwise._tool.backends.model.records import GraphSpans, ModelRecord, Node, read_graph, read_model, read_node
from layerwise._tool.backends.model.structure import TensorRecord, WeightRef
from layerwise._tool.backends.model.wire import MAX_DEPTH, WireError
from layerwise._tool.backends.text import shown, shown_lines
from layerwise._tool.backends.type_names import type_name
from layerwise._tool.backends.wording import in_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from layerwise._tool.surgery.origin.origin import Origin

LIST_LIMIT = 1000
_TYPE_ATTRIBUTES = {"to", "dtype", "target_type"}
_INT, _STRING, _TENSOR, _GRAPH, _SPARSE, _TYPE = 2, 3, 4, 5, 11, 13
_FLOAT = 1
_LIST_OF = {6: _FLOAT, 7: _INT, 8: _STRING, 9: _TENSOR, 10: _GRAPH, 12: _SPARSE, 14: _TYPE}


@dataclass(frozen=True)
class Elided:
    """A list attribute: its first values, and its length."""

    values: list[Any]
    total: int


class GraphView:
    """One graph (the main one or a body) over a structure's bytes. Reads on demand, caches no node.

    known: types of tensors as far as known, including those of outer graphs. WireError for damaged bytes.
    """

    def __init__(
        self,
        model: ModelFile,
        data: bytes,
        graph: GraphSpans,
        outer: Mapping[str, Value] | None = None,
        depth: int = 0,
    ) -> None:
        if depth > MAX_DEPTH // 3:
            raise WireError(f"nested more than {MAX_DEPTH} levels deep")
        self._model, self._data, self._depth = model, data, depth
        self.name, self.doc, self._nodes = graph.name, graph.doc, graph.nodes
        self.n_nodes = len(graph.nodes)
        self.initializers = [read_initializer(data, s) for s in graph.initializers]
        self.initializers += [read_sparse_initializer(data, s) for s in graph.sparse]
        self.initializer_names = {t.name for t in self.initializers}
        inputs = [read_value(data, *s) for s in graph.inputs]
        self.inputs = _distinct(v for v in inputs if v.name not in self.initializer_names)
        self.outputs = _distinct(read_value(data, *s) for s in graph.outputs)
        self.known: dict[str, Value] = dict(outer or {})
        for span in graph.values:
            value = read_value(data, *span)
            self.known[value.name] = value
        for tensor in self.initializers:
            self.known[tensor.name] = Value(tensor.name, type_name(tensor.dtype), tuple(tensor.dims))
        self.known |= {v.name: v for v in (*self.inputs, *self.outputs)}

    def nodes(self) -> Iterator[Node]:
        """Yield the nodes in file order."""
        for span in self._nodes:
            yield read_node(self._data, *span)

    def origins(self) -> "list[Origin | None]":
        """Return where each node comes from, None where nothing tells."""
        from layerwise._tool.surgery.origin.graph import record_origins

        return record_origins(self._data, self._nodes)

    def nodes_in(self, module: str) -> "list[tuple[int, Node, Origin]]":
        """Return the nodes in the modules that a pattern names, with their numbers. LayerwiseError if none is."""
        from layerwise._tool.surgery.origin.tree import InModule

        inside = InModule(module)
        found = [(i, origin) for i, origin in enumerate(self.origins()) if origin is not None and inside(origin)]
        if not found:
            raise LayerwiseError(f"no node lies in module {shown(module, 200)!r}: --show modules lists the modules")
        return [(i, read_node(self._data, *self._nodes[i]), origin) for i, origin in found]

    def value(self, name: str) -> Value:
        """Return what is known of a tensor."""
        return self.known.get(name) or Value(name, "", None)

    def attributes(self, node: Node) -> Iterator[tuple[str, Any]]:
        """Yield names and values: int, float, str, TensorRecord, GraphView, or Elided with a list of these."""
        for span in node.attributes:
            attribute = read_attribute(self._data, *span, LIST_LIMIT)
            yield attribute.name, self._attribute(attribute)

    def attribute_bytes(self, node: Node) -> list[bytes]:
        """Return a node's serialised attributes, one bytes object each."""
        return [self._data[start:end] for start, end in node.attributes]

    def _attribute(self, attribute: Attribute) -> Any:
        if attribute.reference:
            return f"@{attribute.reference}"
        kind = _LIST_OF.get(attribute.kind, attribute.kind)
        values = [self._one(kind, value) for value in attribute.values]
        if attribute.kind in _LIST_OF:
            return Elided(values, attribute.total)
        if kind == _INT and attribute.name in _TYPE_ATTRIBUTES and values:
            known = type_name(values[0])
            return values[0] if known == "unknown" else known
        return values[0] if values else f"<attribute type {attribute.kind}>"

    def _one(self, kind: int, value: Any) -> Any:
        if kind == _STRING:
            return value.decode(errors="backslashreplace")
        if kind == _TENSOR:
            return read_initializer(self._data, value)
        if kind == _GRAPH:
            graph = read_graph(self._data, *value)
            return GraphView(self._model, self._data, graph, self.known, self._depth + 1)
        if kind == _SPARSE:
            return read_sparse_initializer(self._data, value)
        if kind == _TYPE:
            return read_type(self._data, *value)[0]
        return value

    def array(self, tensor: TensorRecord) -> "NDArray[Any]":
        """Return a tensor's values, memory-mapped if in a file. BadFile if they do not match the tensor."""
        from layerwise._tool.backends.model.weight_arrays import inline_array, mapped_array

        model = self._model
        if tensor.external is None:
            return inline_array(model.path, tensor, self._data)
        if model.ignore_external_data:
            raise BadFile(model.path, f"tensor {shown(tensor.name, 200)!r}: its external data was ignored")
        location, offset, nbytes = tensor.external
        ref = WeightRef(tensor.name, tensor.dtype, tuple(tensor.dims), model.folder / location, offset, nbytes or 0)
        return mapped_array(model.path, ref)


def open_view(model: ModelFile, structure: bytes) -> tuple[GraphView, ModelRecord]:
    """Return the main graph of a structure, and the top level of the model."""
    head = read_model(structure)
    return GraphView(model, structure, head.graph), head


def array_text(view: GraphView, tensor: TensorRecord) -> str:
    """Return a tensor's values as NumPy prints them (at most about 1000 of them), or why there are none."""
    from layerwise._tool.backends.tensors import format_array

    try:
        return shown_lines(format_array(view.array(tensor)))
    except LayerwiseError as error:
        return f"<{in_words(error)}>"


def _distinct(values: Iterable[Value]) -> list[Value]:
    return list({value.name: value for value in values}.values())
