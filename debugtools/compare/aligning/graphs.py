"""A side's graph as aligning sees it."""

from hashlib import blake2b

import msgspec
from msgspec.structs import replace

from layerwise._tool.debugtools.align.alignment import Alignment, Unpaired
from layerwise._tool.debugtools.align.graph import AlignGraph
from layerwise._tool.debugtools.align.onnx_graph import sorted_graph
from layerwise._tool.debugtools.align.side_data import SideData
from layerwise._tool.debugtools.compare.sides.side import ModelSide
from layerwise._tool.surgery.model.structure import Structure

_BYTES = {"int8", "uint8"}


def structure(side: ModelSide) -> Structure:
    """A side's model without its weights."""
    return Structure.from_proto(side.model.cut.model, side.model.file.folder)


def align_graph(side: ModelSide) -> AlignGraph:
    """The main graph of a side's model."""
    cut = side.model.cut
    return sorted_graph(structure(side), cut.nodes, cut.reads)


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


def without_codes(found: Alignment, mine: SideData, theirs: SideData) -> Alignment:
    """The alignment without pairs of int8 and uint8: codes whose zero points are 128 apart, as onnxruntime rewrites
    them, stand for the same values, but cannot be held against each other nor fed to the other side.
    """
    kinds = [{name: each.dtype for name, each in data.prints.items()} for data in (mine, theirs)]
    other = [
        pair
        for pair in found.pairs
        if {kinds[0].get(pair.tensor), kinds[1].get(pair.other)} == _BYTES and "hand" not in pair.reasons
    ]
    left = [
        one for pair in other for one in (Unpaired(pair.tensor, 0, pair.other), Unpaired(pair.other, 1, pair.tensor))
    ]
    pairs = [pair for pair in found.pairs if pair not in other]
    return replace(found, pairs=pairs, unpaired=[*found.unpaired, *left])
