"""The graph of an ONNX model as aligning sees it, and the values of its weights."""

import ast
from collections.abc import Iterable, Iterator

import onnx

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.model.reads import reads
from layerwise._tool.debugtools.align.graph import AlignGraph, AlignNode
from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.model.topological_order import topological

_METADATA = "pkg.torch.onnx."
_LONGEST = 20_000  # characters of a list of scopes that are parsed


def onnx_graph(structure: Structure) -> AlignGraph:
    """Return the main graph; what bodies of If, Loop and Scan capture counts as inputs of their nodes."""
    node_reads = [reads(node) for node in structure.nodes]
    order = topological(structure.nodes, node_reads)
    nodes, read = [structure.nodes[place] for place in order], [node_reads[place] for place in order]
    return sorted_graph(structure, nodes, read)


def sorted_graph(structure: Structure, nodes: Iterable[onnx.NodeProto], node_reads: Iterable[list[str]]) -> AlignGraph:
    """The same, its nodes and what each reads in topological order."""
    found = tuple(_node(node, names) for node, names in zip(nodes, node_reads, strict=True))
    weights = frozenset(structure.initializers) | structure.sparse_names()
    return AlignGraph(found, tuple(structure.input_names), tuple(structure.output_names), weights)


def weight_arrays(model: ModelFile, names: Iterable[str]) -> Iterator[tuple[str, Array]]:
    """Yield weights of a model, one at a time; what cannot be read is left out."""
    for name in names:
        try:
            yield name, model.array(name)
        except LayerwiseError:
            continue


def scope_of(node: onnx.NodeProto) -> tuple[str, ...]:
    """The modules that a node lies in, outermost first, where an exporter of torch noted them; else ()."""
    return _scope("", {entry.key: entry.value for entry in getattr(node, "metadata_props", ())})


def _node(node: onnx.NodeProto, names: list[str]) -> AlignNode:
    metadata = {entry.key: entry.value for entry in getattr(node, "metadata_props", ())}
    own = tuple(node.input)
    inputs = (*own, *(name for name in names if name not in own))
    source = metadata.get(f"{_METADATA}fx_node", "")
    return AlignNode(node.op_type, inputs, tuple(node.output), node.name, _scope(node.name, metadata), _fx_name(source))


def _fx_name(text: str) -> str:
    """The name of an fx node from its printed form, "%name : [num_users=1] = call_function[…](…)"."""
    return text.strip().removeprefix("%").partition(" ")[0].partition(":")[0]


def _scope(name: str, metadata: dict[str, str]) -> tuple[str, ...]:
    """The modules that a node lies in, by the exporter's metadata or by a name such as "/encoder/layer.0/MatMul"."""
    text = metadata.get(f"{_METADATA}name_scopes", "")
    if text and len(text) <= _LONGEST:
        try:
            scopes = ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            scopes = None
        if isinstance(scopes, list | tuple):
            return tuple(str(scope) for scope in scopes[:-1] if scope)
    if not text and name.startswith("/"):
        parts = [part for part in name.split("/") if part][:-1]
        return tuple(parts)
    return ()
