"""Topological order of nodes."""

from collections.abc import Sequence

import onnx

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.model.topological_order import topological_order


def topological(nodes: Sequence[onnx.NodeProto], node_reads: Sequence[Sequence[str]]) -> list[int]:
    """Return the nodes in topological order; unchanged if they already are.

    LayerwiseError if there is a cycle.
    """
    maker = {name: i for i, node in enumerate(nodes) for name in node.output if name}
    order, stuck = topological_order([[maker[name] for name in names if name in maker] for names in node_reads])
    if stuck:
        raise LayerwiseError(f"the graph has a cycle through node {shown(nodes[stuck[0]].name or '<unnamed>', 120)!r}")
    return order
