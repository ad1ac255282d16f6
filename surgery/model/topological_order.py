"""Stable topological order of a graph's nodes: they keep file order wherever dependencies allow it."""

import heapq
from collections.abc import Sequence

import onnx

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.text import shown


def topological_order(reads: Sequence[Sequence[int]]) -> tuple[list[int], list[int]]:
    """Return the nodes' positions in topological order, and those on or after a cycle.

    reads: for each node the positions of the nodes whose outputs it reads. If there is a cycle, the nodes
    stay in file order. O(n + edges) if the file is already sorted, O(n log n + edges) otherwise.
    """
    if all(source < node for node, sources in enumerate(reads) for source in sources):
        return list(range(len(reads))), []
    waiting = [len(set(sources)) for sources in reads]
    readers: list[list[int]] = [[] for _ in reads]
    for node, sources in enumerate(reads):
        for source in set(sources):
            readers[source].append(node)
    ready = [node for node, count in enumerate(waiting) if count == 0]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        node = heapq.heappop(ready)
        order.append(node)
        for reader in readers[node]:
            waiting[reader] -= 1
            if waiting[reader] == 0:
                heapq.heappush(ready, reader)
    if len(order) == len(reads):
        return order, []
    return list(range(len(reads))), [node for node, count in enumerate(waiting) if count]


def topological(nodes: Sequence[onnx.NodeProto], node_reads: Sequence[Sequence[str]]) -> list[int]:
    """Return the nodes in topological order; unchanged if they already are.

    LayerwiseError if there is a cycle.
    """
    maker = {name: i for i, node in enumerate(nodes) for name in node.output if name}
    order, stuck = topological_order([[maker[name] for name in names if name in maker] for names in node_reads])
    if stuck:
        raise LayerwiseError(f"the graph has a cycle through node {shown(nodes[stuck[0]].name or '<unnamed>', 120)!r}")
    return order
