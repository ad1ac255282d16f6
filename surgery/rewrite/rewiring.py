"""Changes which tensors nodes read and make, bodies included; places new nodes, and removes nodes."""

from collections.abc import Iterable, Mapping, Sequence

import onnx
from onnx import helper

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.model.reads import reads, subgraphs
from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.model.structure import AnyGraph, Graph, changed, node_label
from layerwise._tool.surgery.rewrite.tidy import in_order


def reading(node: onnx.NodeProto, names: Mapping[str, str]) -> onnx.NodeProto:
    """Return the node reading other tensors (old name -> new), also in its bodies; unchanged if it reads none."""
    if names.keys().isdisjoint(reads(node)):
        return node
    copy = changed(node)
    copy.input[:] = [names.get(name, name) for name in node.input]
    for body in subgraphs(copy):
        _capture(body, names)
    return copy


def making(node: onnx.NodeProto, names: Mapping[str, str]) -> onnx.NodeProto:
    """Return the node with other output names."""
    copy = changed(node)
    copy.output[:] = [names.get(name, name) for name in node.output]
    return copy


def reread(graph: AnyGraph, names: Mapping[str, str]) -> AnyGraph:
    """Return the graph with nodes reading other tensors. Graph outputs stay."""
    readers = {id(node): node for name in names for node in graph.lookups.readers.get(name, ())}
    return graph.replaced({key: [reading(node, names)] for key, node in readers.items()})


def renamed(graph: AnyGraph, old: str, new: str) -> AnyGraph:
    """Return the graph with a node's output renamed, in its readers and as a graph output."""
    maker = graph.lookups.makers[old]
    graph = reread(graph.replaced({id(maker): [making(maker, {old: new})]}), {old: new})
    values = {new if name == old else name: named(value, old, new) for name, value in graph.values.items()}
    return graph.with_(values=values, outputs=tuple(named(value, old, new) for value in graph.outputs))


def named(value: onnx.ValueInfoProto, old: str, new: str) -> onnx.ValueInfoProto:
    """Return the value info under the name `new` if it is that of `old`, otherwise unchanged."""
    return changed(value, name=new) if value.name == old else value


def without_values(graph: AnyGraph, names: Iterable[str]) -> AnyGraph:
    """Return the graph without declarations of some inner tensors."""
    gone = {name for name in names if name in graph.values}
    return graph.with_(values={n: v for n, v in graph.values.items() if n not in gone}) if gone else graph


def _capture(body: onnx.GraphProto, names: Mapping[str, str]) -> None:
    own = {value.name for value in body.input} | {tensor.name for tensor in body.initializer}
    own |= {name for node in body.node for name in node.output}
    seen = {old: new for old, new in names.items() if old not in own}
    for node in body.node:
        node.input[:] = [seen.get(name, name) for name in node.input]
        for inner in subgraphs(node):
            _capture(inner, seen)
    for value in body.output:
        value.name = seen.get(value.name, value.name)


def placed(graph: AnyGraph, node: onnx.NodeProto) -> AnyGraph:
    """Return the graph with a new node, after the makers of its inputs and before its readers."""
    known, ids = graph.lookups.makers, list(map(id, graph.nodes))
    last = max((ids.index(id(known[name])) for name in reads(node) if name in known), default=-1)
    nodes = (*graph.nodes[: last + 1], node, *graph.nodes[last + 1 :])
    return in_time(graph.with_(nodes=nodes), node)


def in_time(graph: AnyGraph, node: onnx.NodeProto) -> AnyGraph:
    """Return the graph, sorted if the node is before one that it reads or after one that reads it."""
    known, ids = graph.lookups, list(map(id, graph.nodes))
    before = set(ids[: ids.index(id(node))])
    early = any(id(r) in before for name in node.output if name for r in known.readers.get(name, ()))
    makers = [known.makers[name] for name in reads(node) if name in known.makers]
    late = any(id(maker) not in before and maker is not node for maker in makers)
    return in_order(graph) if early or late else graph


def bypassed(graph: AnyGraph, nodes: Sequence[onnx.NodeProto], reconnect: Mapping[str, str]) -> AnyGraph:
    """Return the graph without `nodes`; their readers read the nodes' inputs. LayerwiseError if nothing matches."""
    gone = {id(node) for node in nodes}
    instead = {out: into for node in nodes for out, into in _replacements(graph, node, reconnect).items()}
    final = {name: _followed(name, instead) for name in instead}
    readers = {id(n): n for name in final for n in graph.lookups.readers.get(name, ()) if id(n) not in gone}
    kept_outputs = [name for name in graph.output_names if name in final]
    new = {key: [reading(node, final)] for key, node in readers.items()}
    result = graph.replaced({**new, **{key: [] for key in gone}})
    result = without_values(result, [name for node in nodes for name in node.output])
    for name in dict.fromkeys(kept_outputs):
        result = _as_output(result, final[name], name)
    return without_unread(result, nodes)


def _replacements(graph: Graph, node: onnx.NodeProto, reconnect: Mapping[str, str]) -> dict[str, str]:
    """Return the replacement of each output that has readers."""
    read = [name for name in node.output if name and (name in graph.lookups.readers or graph.read_outside(name))]
    unknown = [name for out, name in reconnect.items() if out in node.output and name not in node.input]
    if unknown:
        raise LayerwiseError(f"node {shown(node_label(node), 80)!r} does not read {shown(unknown[0], 80)!r}")
    return {name: reconnect.get(name) or _alike(graph, node, name) for name in read}


def _alike(graph: Graph, node: onnx.NodeProto, output: str) -> str:
    computed: list[str] = [name for name in node.input if name and not _is_constant(graph, name)]
    if not computed:
        label = shown(node_label(node), 80)
        raise LayerwiseError(f"node {label!r} reads nothing that could take the place of {shown(output, 80)!r}")
    kind = _elem_type(graph, output)
    return next((name for name in computed if kind and _elem_type(graph, name) == kind), computed[0])


def _is_constant(graph: Graph, name: str) -> bool:
    maker = graph.lookups.makers.get(name)
    return name in graph.initializers or (maker is not None and maker.op_type == "Constant")


def _elem_type(graph: Graph, name: str) -> int:
    value = graph.value(name)
    return value.type.tensor_type.elem_type if value is not None else 0


def _followed(name: str, instead: Mapping[str, str]) -> str:
    seen = set()
    while name in instead and name not in seen:
        seen.add(name)
        name = instead[name]
    if name in instead:
        raise LayerwiseError(f"the nodes read each other in a circle through {shown(name, 80)!r}")
    return name


def _as_output(graph: AnyGraph, source: str, output: str) -> AnyGraph:
    """Return the graph with `source` as the graph output `output`, which has lost its maker."""
    maker = graph.lookups.makers.get(source)
    if maker is None or graph.read_outside(source):
        node = helper.make_node("Identity", [source], [output], graph.fresh_node(f"{output}_identity"))
        return placed(graph, node)
    values = {name: value for name, value in graph.values.items() if name != source}
    readers = graph.lookups.readers.get(source, ())
    new = {id(node): [reading(node, {source: output})] for node in readers}
    return graph.replaced({**new, id(maker): [making(maker, {source: output})]}).with_(values=values)


def without_unread(graph: AnyGraph, nodes: Sequence[onnx.NodeProto]) -> AnyGraph:
    """Return the graph without the weights that only the deleted `nodes` read."""
    known = graph.lookups
    unread = {n for node in nodes for n in reads(node) if n in graph.initializers and n not in known.readers}
    unread -= set(graph.output_names) | known.inner_names
    if not unread:
        return graph
    return graph.with_(
        initializers={name: tensor for name, tensor in graph.initializers.items() if name not in unread},
        inputs=tuple(value for value in graph.inputs if value.name not in unread),
    )
