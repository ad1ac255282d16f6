"""Any nodes of a graph as a separate model, even if the rest of the graph is broken.

A piece is some nodes with their weights (external data in the model's own file, never copied), the local functions
they call, and the types that the model declares for their outputs. Cycles, undefined tensors and tensors made
twice are allowed: unlike `surgery.cut.segments` this is for graphs that may be broken.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from layerwise._tool.backends.model.reads import reads, subgraphs
from layerwise._tool.backends.tensors import dtype_name, to_onnx
from layerwise._tool.surgery.model.topological_order import topological_order

_INPUTS_HOLD_NO_WEIGHTS = 4  # from this IR version on, initializers need not be graph inputs
FunctionKey = tuple[str, str, str]


class Pieces:
    """A model's main graph, or a body in it, ready to be split; `model` is a structure and is not changed.

    order: positions of the nodes (in the file's order) in topological order; cyclic: positions on or after a cycle,
    which have no order. outer: the graph around a body, whose weights it may read. types: declared types of tensors,
    without shapes.
    """

    def __init__(self, model: onnx.ModelProto, graph: onnx.GraphProto, outer: "Pieces | None" = None) -> None:
        self.model, self.graph, self.outer = model, graph, outer
        self.nodes: list[onnx.NodeProto] = list(graph.node)
        self.reads = [reads(node) for node in self.nodes]
        self.weights = {tensor.name: tensor for tensor in graph.initializer}
        self.sparse = {sparse.values.name: sparse for sparse in graph.sparse_initializer}
        self.inputs = [v.name for v in graph.input if v.name not in self.weights and v.name not in self.sparse]
        self.maker: dict[str, int] = {}
        for position, node in enumerate(self.nodes):
            for name in filter(None, node.output):
                self.maker.setdefault(name, position)
        self.types = {v.name: _without_shape(v.type) for v in (*graph.input, *graph.value_info, *graph.output)}
        self.order, self.cyclic = self._sorted()
        functions = {(f.domain, f.name, f.overload): f for f in model.functions} if outer is None else outer._functions
        self._functions: dict[FunctionKey, onnx.FunctionProto] = functions

    def _sorted(self) -> tuple[list[int], list[int]]:
        sources = [[self.maker[name] for name in names if name in self.maker] for names in self.reads]
        order, cyclic = topological_order(sources)
        if not cyclic:
            return order, []
        rest = sorted(set(order).difference(cyclic))
        place = {position: i for i, position in enumerate(rest)}
        again, _ = topological_order([[place[s] for s in sources[position]] for position in rest])
        return [rest[i] for i in again], cyclic

    def is_weight(self, name: str) -> bool:
        """Return whether `name` is an initializer here or in an outer graph (and not shadowed)."""
        if name in self.weights or name in self.sparse:
            return True
        hidden = name in self.maker or name in self.inputs
        return not hidden and self.outer is not None and self.outer.is_weight(name)

    def weight(self, name: str) -> onnx.TensorProto | None:
        """Return the initializer that `name` refers to here, if it is a dense one."""
        return self.weights.get(name) or (self.outer.weight(name) if self.outer else None)

    def feeds(self, positions: Sequence[int]) -> list[str]:
        """Return the tensors that these nodes read, but neither make nor have as weights."""
        made = {name for i in positions for name in self.nodes[i].output}
        read = dict.fromkeys(name for i in positions for name in self.reads[i])
        return [name for name in read if name not in made and not self.is_weight(name)]

    def build(self, positions: Sequence[int], feeds: Mapping[str, onnx.TypeProto], gives: Sequence[str]) -> bytes:
        """Return the piece as a serialised ModelProto whose inputs are `feeds` and whose outputs are `gives`."""
        part = onnx.ModelProto(ir_version=max(self.model.ir_version, _INPUTS_HOLD_NO_WEIGHTS))
        part.opset_import.extend(self.model.opset_import)
        graph = part.graph
        graph.name = self.graph.name or "piece"
        graph.node.extend(self.nodes[i] for i in positions)
        part.functions.extend(self._called(graph.node))
        for name in dict.fromkeys(name for i in positions for name in self.reads[i]):
            if name not in feeds:
                self._add_weight(graph, name)
        for name, kind in feeds.items():
            graph.input.add(name=name).type.CopyFrom(kind)
        self._declare(graph, positions, gives)
        data: bytes = part.SerializeToString()
        return data

    def _add_weight(self, graph: onnx.GraphProto, name: str) -> None:
        if name in self.weights:
            graph.initializer.append(self.weights[name])
        elif name in self.sparse:
            graph.sparse_initializer.append(self.sparse[name])
        elif self.outer is not None and name not in self.maker and name not in self.inputs:
            self.outer._add_weight(graph, name)

    def _declare(self, graph: onnx.GraphProto, positions: Sequence[int], gives: Sequence[str]) -> None:
        for name in gives:
            graph.output.add(name=name).type.CopyFrom(self.types.get(name, onnx.TypeProto()))
        given = set(gives)
        for name in dict.fromkeys(name for i in positions for name in self.nodes[i].output):
            if name in self.types and name not in given:
                graph.value_info.add(name=name).type.CopyFrom(self.types[name])

    def _called(self, nodes: Sequence[onnx.NodeProto]) -> list[onnx.FunctionProto]:
        """Return the local functions that nodes call, transitively."""
        if not self._functions:
            return []
        found: dict[FunctionKey, onnx.FunctionProto] = {}
        waiting = list(nodes)
        while waiting:
            node = waiting.pop()
            key = (node.domain, node.op_type, node.overload)
            waiting += [inner for body in subgraphs(node) for inner in body.node]
            if key in self._functions and key not in found:
                found[key] = self._functions[key]
                waiting += found[key].node
        return list(found.values())


def type_of(value: Any) -> onnx.TypeProto | None:
    """Return the type of a value as a graph input: an array's with its shape, a list of arrays' without.

    None if the type does not follow from the value alone: an empty list, a map, nothing.
    """
    if isinstance(value, np.ndarray):
        return onnx.helper.make_tensor_type_proto(to_onnx(dtype_name(value)), value.shape) if _plain(value) else None
    if isinstance(value, list) and value and all(isinstance(item, np.ndarray) and _plain(item) for item in value):
        element = onnx.helper.make_tensor_type_proto(to_onnx(dtype_name(value[0])), None)
        return onnx.helper.make_sequence_type_proto(element)
    return None


def _plain(array: np.ndarray[Any, Any]) -> bool:
    """Return whether its elements are numbers or text, not other Python objects (maps)."""
    return array.dtype != object or all(isinstance(item, str | bytes) for item in array.flat)


def _without_shape(kind: onnx.TypeProto) -> onnx.TypeProto:
    bare = onnx.TypeProto()
    bare.CopyFrom(kind)
    if bare.HasField("tensor_type"):
        bare.tensor_type.ClearField("shape")
    return bare
