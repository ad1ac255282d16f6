"""What two versions of a model share: equal parts; what differs: functions, and the nodes that call them."""

from collections.abc import Iterable

import onnx

from layerwise._tool.backends.model.reads import every_node
from layerwise._tool.surgery.model.proto import Proto
from layerwise._tool.surgery.model.structure import Structure, function_name

Functions = tuple[onnx.FunctionProto, ...]


def changed_functions(old: Functions, new: Functions) -> frozenset[str]:
    """Return the names (as in `called`) of functions that differ, were added or removed, and of their callers."""
    if old is new:
        return frozenset()
    before, after = ({id(function): function for function in functions} for functions in (old, new))
    different = before.keys() ^ after.keys()
    waiting = [function_name({**before, **after}[key]) for key in different]
    found = set(waiting)
    while waiting:
        name = waiting.pop()
        above = {function_name(f) for f in new if any(called(node) == name for node in every_node(f.node))}
        waiting += above - found
        found |= above
    return frozenset(found)


def callers(structure: Structure, names: Iterable[str]) -> list[onnx.NodeProto]:
    """Return the main graph's nodes that call one of these functions, also in their bodies."""
    wanted = frozenset(names)
    if not wanted:
        return []
    bodied = structure.lookups.bodied
    return [
        node for node in structure.nodes
        if any(called(inner) in wanted for inner in (every_node([node]) if id(node) in bodied else [node]))
    ]  # fmt: skip


def called(node: onnx.NodeProto) -> str:
    """Return the name of the function that a node would call, in the form of `function_name`."""
    return f"{node.domain}:{node.op_type}" if node.domain else str(node.op_type)


def shared(structure: Structure, known: Structure) -> Structure:
    """Return `structure` with the nodes and weights of `known` wherever they are equal.

    This shares memory, and lets derived data of a version be updated instead of rebuilt.
    """
    makers, weights = known.lookups.makers, known.initializers
    result = structure.with_(
        nodes=tuple(_same(node, makers.get(next(filter(None, node.output), ""))) for node in structure.nodes),
        initializers={name: _same(tensor, weights.get(name)) for name, tensor in structure.initializers.items()},
    )
    result.learn_from(known)
    return result


def _same(part: Proto, known: Proto | None) -> Proto:
    return known if known is not None and known == part else part
