"""A side's graph as aligning sees it."""

from hashlib import blake2b

import msgspec

from layerwise._tool.debugtools.align.graph import AlignGraph
from layerwise._tool.debugtools.align.onnx_graph import onnx_graph
from layerwise._tool.debugtools.align.side_data import SideData
from layerwise._tool.debugtools.compare.sides.side import ModelSide
from layerwise._tool.surgery.model.structure import Structure


def structure(side: ModelSide) -> Structure:
    """A side's model without its weights."""
    return Structure.from_proto(side.model.cut.model, side.model.file.folder)


def align_graph(side: ModelSide) -> AlignGraph:
    """The main graph of a side's model."""
    return onnx_graph(structure(side))


def digest(graph: AlignGraph) -> str:
    """A hash of a graph's operators and names; not of its weights and attributes."""
    data = msgspec.json.encode([graph.nodes, graph.inputs, graph.outputs, sorted(graph.weights)])
    return blake2b(data, digest_size=20).hexdigest()


def whole_numbers(data: SideData) -> frozenset[str]:
    """Constants and whole numbers among what nodes make: each exporter computes shapes its own way."""
    return frozenset(
        name
        for node in data.graph.nodes
        for name in node.outputs
        if node.op == "Constant" or (name in data.prints and data.prints[name].kind != "float")
    )
