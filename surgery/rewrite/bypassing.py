"""Removes nodes from a graph and connects their readers to the nodes' inputs."""

from collections.abc import Mapping, Sequence

import onnx
from onnx import helper

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.model.reads import reads
from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.model.structure import AnyGraph, Graph, node_label
from layerwise._tool.surgery.rewrite.rewiring import making, placed, reading, without_values


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
