"""The tensors of a changed graph, of its bodies and functions."""

from typing import TYPE_CHECKING

import numpy as np

from layerwise._tool.backends.model.record_values import read_value
from layerwise._tool.backends.tensors import dtype_name
from layerwise._tool.surgery.graph.index import Dim, Numbers
from layerwise._tool.surgery.graph.numbering import MAIN, NOTHING, nbytes
from layerwise._tool.surgery.graph.overlay_nodes import OverlayNodes, Type

if TYPE_CHECKING:
    from layerwise._tool.surgery.model.graph_value import Graph


class OverlayTensors(OverlayNodes):
    """One state of the graph; this part knows its tensors."""

    def _holder(self, tensor: int) -> "Graph | None":
        """Return the graph that defines a tensor, None if the file's index does."""
        scope = self.tensor_scope(tensor)
        found = self._changed(scope)
        return found if tensor < self._base.n_tensors else found or self.numbering.graph(scope) or NOTHING

    def tensor_name(self, tensor: int) -> str:
        return self._base.tensor_name(tensor) if tensor < self._base.n_tensors else self.numbering.new_tensor(tensor)[1]

    def tensor_scope(self, tensor: int) -> int:
        base = self._base
        return base.tensor_scope(tensor) if tensor < base.n_tensors else self.numbering.new_tensor(tensor)[0]

    def tensor_dtype(self, tensor: int) -> str:
        return self._type(tensor)[0]

    def tensor_shape(self, tensor: int) -> tuple[Dim, ...] | None:
        return self._type(tensor)[1]

    def _type(self, tensor: int) -> Type:
        scope, name, graph = self.tensor_scope(tensor), self.tensor_name(tensor), self._holder(tensor)
        if graph is not None:
            if scope == MAIN and name in self.types:
                return self.types[name]
            weight = graph.initializers.get(name)
            if weight is not None:
                return dtype_name(weight.data_type), tuple(weight.dims)
            said, old = graph.value(name), self.numbering.graph(scope)
            if said is not None and (old is None or said != old.value(name)):
                data = said.SerializeToString()
                value = read_value(data, 0, len(data))
                return value.kind, value.shape
        base = self._base
        return (base.tensor_dtype(tensor), base.tensor_shape(tensor)) if tensor < base.n_tensors else ("", None)

    def tensor_kind(self, tensor: int) -> str:
        graph = self._holder(tensor)
        if graph is None:
            return self._base.tensor_kind(tensor)
        name = self.tensor_name(tensor)
        inputs, outputs = self._ends_of(self.tensor_scope(tensor), graph)
        if name in inputs:
            return "input"
        if name in graph.initializers:
            return "initializer"
        if name not in graph.lookups.makers:
            return "missing"
        return "output" if name in outputs else "node"

    def _ends_of(self, scope: int, graph: "Graph") -> tuple[set[str], set[str]]:
        """Return names of a graph's inputs and outputs."""
        if scope not in self._ends:
            self._ends[scope] = set(graph.input_names), set(graph.output_names)
        return self._ends[scope]

    def is_output(self, tensor: int) -> bool:
        graph = self._holder(tensor)
        if graph is None:
            return self._base.is_output(tensor)
        return self.tensor_name(tensor) in self._ends_of(self.tensor_scope(tensor), graph)[1]

    def producer(self, tensor: int) -> int:
        graph = self._holder(tensor)
        if graph is None:
            return self._base.producer(tensor)
        maker = graph.lookups.makers.get(self.tensor_name(tensor))
        return -1 if maker is None else self.number(maker)

    def consumers(self, tensor: int) -> Numbers:
        name, base, changed = self.tensor_name(tensor), self._base, {MAIN: self.state, **self._inner.graphs}
        found: set[int] = set()
        for scope, graph in changed.items():
            readers = graph.lookups.readers.get(name, ())
            if readers and self._inner.tensor(scope, name) == tensor:
                found.update(map(self.number, readers))
        if tensor < base.n_tensors and len(base.meta["scopes"]) > 1:
            inner = base.consumers(tensor).tolist()
            found.update(n for n in inner if base.node_scope(n) not in changed and self._alive[n])
        return np.array(sorted(found), np.int32)

    def weight(self, tensor: int) -> tuple[str, int, int] | None:
        scope, name = self.tensor_scope(tensor), self.tensor_name(tensor)
        graph, old = self._holder(tensor), self.numbering.graph(scope)
        held = None if graph is None else graph.initializers.get(name)
        if graph is None or (old is not None and held is old.initializers.get(name)):
            return self._base.weight(tensor) if tensor < self._base.n_tensors else None
        return None if held is None else ("", 0, nbytes(held))
