"""A graph that nodes for several GPUs are put into: DistCollective, which moves a tensor along its first axis alone."""

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import onnx
import onnx_graphsurgeon as gs

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.model.structure import Structure, changed
from layerwise._tool.surgery.plugins.patterns import from_graph, to_graph
from layerwise._tool.surgery.plugins.shard.hints import Collectives
from layerwise._tool.surgery.rewrite.tidy import in_order

COLLECTIVE = "DistCollective"
Tell = Callable[[str], None]


class ShardGraph:
    """The graph of a model. Names of new tensors and nodes are `shard_0`, `shard_1` and so on, as Polygraphy's are."""

    def __init__(self, structure: Structure, tell: Tell) -> None:
        """LayerwiseError where onnx-graphsurgeon does not support the model."""
        self.graph = to_graph(structure)
        self._structure = structure
        self._tell = tell
        self._numbers = count()
        self._tensors = self.graph.tensors()
        self._taken = {*self._tensors, *(node.name for node in self.graph.nodes)}
        self._name_apart()

    def tensor(self, name: str, what: str) -> Any:
        """The tensor of a name. UsageError if there is none; what: it is, in words."""
        found = self._tensors.get(name)
        if found is None:
            raise UsageError(f"the hints name the {what} {shown(name, 120)!r}, which the model does not have")
        return found

    def name(self, prefix: str = "") -> str:
        """A name that nothing in the model has."""
        stem = f"{prefix}_shard" if prefix else "shard"
        return next(name for name in (f"{stem}_{i}" for i in self._numbers) if name not in self._taken)

    def after(self, tensor: Any, op: str, attributes: dict[str, Any]) -> Any:
        """Put a node behind a tensor: all that read it, and the outputs of the model, get what the node makes."""
        self._tell(f"Inserting {op} for tensor: {tensor.name}")
        made = gs.Variable(self.name(), dtype=tensor.dtype)
        for reader in list(tensor.outputs):  # of graphs within nodes too
            for i, read in enumerate(reader.inputs):
                if read is tensor:
                    reader.inputs[i] = made
        self.graph.outputs = [made if output is tensor else output for output in self.graph.outputs]
        self.graph.nodes.append(gs.Node(op, self.name(), attributes, [tensor], [made]))
        return made

    def copied(self, tensor: Any, order: Sequence[int]) -> Any:
        """Transpose a tensor for a new reader; others read it as before.

        UsageError where the model tells that it has another number of axes.
        """
        _check_order(tensor, order)
        self._tell(f"Inserting Transpose for tensor: {tensor.name}")
        made = gs.Variable(self.name(), dtype=tensor.dtype)
        self.graph.nodes.append(gs.Node("Transpose", self.name(), {"perm": list(order)}, [tensor], [made]))
        return made

    def without(self, nodes: Sequence[Any]) -> None:
        """Take nodes out."""
        for node in nodes:
            node.inputs.clear()
            node.outputs.clear()
        gone = set(map(id, nodes))
        self.graph.nodes[:] = [node for node in self.graph.nodes if id(node) not in gone]

    def collective(self, tensor: Any, attributes: dict[str, Any], axis: int = 0, rank: int | None = None) -> Any:
        """Put a DistCollective behind a tensor, between transpositions if its axis is not the first.

        UsageError where the tensor has no such axis, or neither rank nor model tells how many it has.
        """
        if not axis:
            return self.after(tensor, COLLECTIVE, attributes)
        rank = rank if rank is not None else len(tensor.shape or ())
        name = shown(tensor.name, 120)
        if not rank:
            raise UsageError(f"neither the hints nor the model tell how many axes {name!r} has: give its rank")
        if axis >= rank:
            raise UsageError(f"the hints say that axis {axis} of {name!r} is split, and it has {rank} axes")
        swap = list(range(rank))
        swap[0], swap[axis] = axis, 0
        _check_order(tensor, swap)
        first = self.after(tensor, "Transpose", {"perm": swap})
        return self.after(self.after(first, COLLECTIVE, attributes), "Transpose", {"perm": list(swap)})

    def model(self, collectives: Collectives) -> Structure:
        """The model, its nodes in topological order. LayerwiseError if it is none any more."""
        groups = onnx.helper.make_attribute("groups", collectives.groups or [], attr_type=onnx.AttributeProto.INTS)
        model = in_order(from_graph(self.graph, self._structure))
        return model.with_(nodes=tuple(_grouped(node, groups) for node in model.nodes))

    def _name_apart(self) -> None:
        seen = set()
        for node in self.graph.nodes:
            if node.name in seen:
                node.name = self.name(node.name)
            seen.add(node.name)


def _check_order(tensor: Any, order: Sequence[int]) -> None:
    if tensor.shape and len(tensor.shape) != len(order):
        name, rank = shown(tensor.name, 120), len(tensor.shape)
        raise UsageError(f"{name!r} has {rank} axes, and the hints order {len(order)}: {list(order)}")


def _grouped(node: onnx.NodeProto, groups: onnx.AttributeProto) -> onnx.NodeProto:
    """onnx-graphsurgeon takes no empty list: it would not know of what."""
    if node.op_type != COLLECTIVE or any(attribute.name == "groups" for attribute in node.attribute):
        return node
    node = changed(node)
    node.attribute.append(groups)
    return node


def gathering(collectives: Collectives) -> dict[str, Any]:
    """Attributes of a DistCollective after which every rank has all of a tensor."""
    return _attributes(collectives, "none", "all_gather")


def scattering(collectives: Collectives) -> dict[str, Any]:
    """Of one after which every rank has its part."""
    return _attributes(collectives, collectives.reduce_op, "reduce_scatter")


def summing(collectives: Collectives) -> dict[str, Any]:
    """Of one that adds what the ranks have."""
    return _attributes(collectives, "sum", "all_reduce")


def _attributes(collectives: Collectives, reduce_op: str, operation: str) -> dict[str, Any]:
    numbers = {"group_size": collectives.group_size, "root": collectives.root, "nb_rank": collectives.nb_rank}
    return {**numbers, "reduce_op": reduce_op, "collective_operation": operation}
