"""Checks a model without running it: names, references, cycles, unused parts, and what onnx.checker says.

The checker's findings are all collected, without reading weights. It stops at the first one, so a node that violates
its operator's schema would hide problems of the graph. Therefore, if it names a node, the graph is checked again with
every operator replaced by an unknown one, and the nodes one by one. Weights are replaced by empty tensors; their sizes
are checked against the file. Inputs and outputs without a rank are not a problem, although the checker requires a
shape: every engine infers them.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

import onnx
import onnx.checker
from onnx import TensorProto

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.model.protos import all_graphs, all_tensors
from layerwise._tool.backends.tensors import dtype_name, packed_nbytes
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.checks.lint.report import Level, LintFindings, LintSource
from layerwise._tool.surgery.cut.pieces import Pieces

_LISTED = 20


def labels(nodes: Sequence[onnx.NodeProto]) -> list[str]:
    """Return a name for each node: its own, or Polygraphy's default."""
    taken = {node.name for node in nodes}
    found = []
    for number, node in enumerate(nodes):
        name, again = node.name or f"polygraphy_unnamed_node_{number}", 0
        while not node.name and name in taken:
            name, again = f"polygraphy_unnamed_node_{number}_{again}", again + 1
        found.append(name)
    return found


def duplicate_names(pieces: Pieces, report: LintFindings) -> None:
    """Report names that several nodes share."""
    count = Counter(node.name for node in pieces.nodes if node.name)
    places: dict[str, list[int]] = {name: [] for name, times in count.items() if times > 1}
    for number, node in enumerate(pieces.nodes):
        if node.name in places:
            places[node.name].append(number)
    for name, numbers in places.items():
        text = f"Duplicate node name: '{shown(name, 200)}' for nodes with topological IDs: {numbers[:_LISTED]} found."
        report.add(Level.EXCEPTION, LintSource.STRUCTURE, text, [name])


def broken_references(pieces: Pieces, names: Sequence[str], report: LintFindings) -> None:
    """Report nodes that read undefined tensors, undefined outputs, and cycles."""
    for position, name in _dangling(pieces):
        node = pieces.nodes[position]
        text = f"Input '{shown(name, 200)}' is made by no node, and is neither a graph input nor an initializer."
        report.add(Level.EXCEPTION, LintSource.STRUCTURE, text, [names[position]], node.op_type)
    ring = _on_cycles(pieces)
    if ring:
        loop = [names[position] for position in ring]
        listed = ", ".join(shown(name, 80) for name in loop[:_LISTED]) + (", …" if len(loop) > _LISTED else "")
        report.add(Level.EXCEPTION, LintSource.STRUCTURE, f"These nodes read each other in a cycle: {listed}", loop)


def _dangling(pieces: Pieces) -> Iterator[tuple[int, str]]:
    known = set(pieces.inputs)
    for position, read in enumerate(pieces.reads):
        for name in read:
            if name not in pieces.maker and name not in known and not pieces.is_weight(name):
                yield position, name


def _on_cycles(pieces: Pieces) -> list[int]:
    """Return the nodes on cycles and between cycles, from those on or after one."""
    left = set(pieces.cyclic)
    readers: Counter[int] = Counter()
    sources = {
        i: {pieces.maker[name] for name in pieces.reads[i] if pieces.maker.get(name) in left} for i in pieces.cyclic
    }
    for found in sources.values():
        readers.update(found)
    ends = [i for i in left if not readers[i]]
    while ends:
        end = ends.pop()
        left.discard(end)
        for source in sources[end]:
            readers[source] -= 1
            if not readers[source]:
                ends.append(source)
    return sorted(left)


def unused(pieces: Pieces, names: Sequence[str], report: LintFindings) -> None:
    """Report inputs and nodes that no output depends on, by name, as Polygraphy orders them."""
    needed = needed_nodes(pieces)
    read = {name for position in needed for name in pieces.reads[position]}
    read.update(value.name for value in pieces.graph.output)
    for name in sorted(name for name in pieces.inputs if name not in read):
        text = f"Input: '{shown(name, 200)}' does not affect outputs, can be removed."
        report.add(Level.WARNING, LintSource.STRUCTURE, text)
    idle = {(names[i], node.op_type): None for i, node in enumerate(pieces.nodes) if i not in needed}
    for name, op in sorted(idle, key=lambda found: found[0]):
        report.add(Level.WARNING, LintSource.STRUCTURE, "Does not affect outputs, can be removed.", [name], op)


def needed_nodes(pieces: Pieces) -> set[int]:
    """Return the positions of the nodes that an output depends on."""
    needed: set[int] = set()
    waiting = [pieces.maker[value.name] for value in pieces.graph.output if value.name in pieces.maker]
    while waiting:
        position = waiting.pop()
        if position not in needed:
            needed.add(position)
            waiting += [pieces.maker[name] for name in pieces.reads[position] if name in pieces.maker]
    return needed


_BAD_NODE = "Bad node spec for node"
_ANY = "layerwise.any"
_GRAPHS = (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)


def check_graph(model: onnx.ModelProto) -> tuple[list[str], bool]:
    """Return problems of the model apart from its nodes, and whether a node violates its schema.

    `model`: a structure, which is modified.
    """
    short = list(_short_weights(model))
    _empty_weights(model)
    _give_shapes(model)
    message = _checked(model)
    bad_node = _BAD_NODE in message
    if bad_node:
        _any_operators(model)
        message = _checked(model)
    return [text for text in (message if _BAD_NODE not in message else "", *short) if text], bad_node


def check_nodes(model: onnx.ModelProto, graph: onnx.GraphProto) -> Iterator[tuple[int, str]]:
    """Yield position and reason for each node of `graph` that violates its operator's schema."""
    context = onnx.checker.C.CheckerContext()
    context.ir_version = model.ir_version
    context.opset_imports = {entry.domain: entry.version for entry in model.opset_import} or {"": 1}
    for position, node in enumerate(graph.node):
        try:
            onnx.checker.check_node(_without_bodies(node), context)
        except onnx.checker.ValidationError as error:
            yield position, _plain(error)


def _without_bodies(node: onnx.NodeProto) -> onnx.NodeProto:
    """Return the node with empty bodies: alone, their captures would count as missing."""
    if not any(attribute.type in _GRAPHS for attribute in node.attribute):
        return node
    bare = onnx.NodeProto()
    bare.CopyFrom(node)
    for attribute in bare.attribute:
        for body in (attribute.g, *attribute.graphs) if attribute.type in _GRAPHS else ():
            body.Clear()
            body.name = "body"
    return bare


def _checked(model: onnx.ModelProto) -> str:
    try:
        onnx.checker.check_model(model)
    except onnx.checker.ValidationError as error:
        return _plain(error)
    except Exception as error:  # protobuf's own, for messages that are too large or too deeply nested
        return f"onnx.checker cannot take the model: {_plain(error)}"
    return ""


def _plain(error: Exception) -> str:
    return shown(" ".join(str(error).split()), 600)


def _empty_weights(model: onnx.ModelProto) -> None:
    """Replace tensors in files by empty ones of the same type."""
    for tensor in all_tensors(model):
        if tensor.data_location == TensorProto.EXTERNAL:
            tensor.ClearField("external_data")
            tensor.ClearField("data_location")
            tensor.ClearField("dims")
            tensor.dims.append(0)


def _give_shapes(model: onnx.ModelProto) -> None:
    for graph in all_graphs(model):
        for value in (*getattr(graph, "input", ()), *getattr(graph, "output", ())):
            if hasattr(value, "type") and value.type.HasField("tensor_type"):
                value.type.tensor_type.shape.SetInParent()


def _short_weights(model: onnx.ModelProto) -> Iterator[str]:
    for tensor in all_tensors(model):
        length = next((entry.value for entry in tensor.external_data if entry.key == "length"), "")
        if not length.isdigit() or any(dim < 0 for dim in tensor.dims):
            continue
        try:
            needed = packed_nbytes(dtype_name(tensor.data_type), tensor.dims)
        except UsageError:  # an invalid type: the checker reports it
            continue
        if int(length) < needed:
            yield (
                f"TensorProto (tensor name: {shown(tensor.name, 200)}) raw_data size ({length} bytes) is too small "
                f"for the declared shape and type ({needed} bytes required)."
            )


def _any_operators(model: onnx.ModelProto) -> None:
    """Replace every operator by one without a schema; bodies stay, and are checked."""
    model.opset_import.add(domain=_ANY, version=1)
    for graph in all_graphs(model):
        for node in graph.node:
            node.op_type, node.domain = "Any", _ANY
            bodies = [attribute for attribute in node.attribute if attribute.type in _GRAPHS]
            del node.attribute[:]
            node.attribute.extend(bodies)
