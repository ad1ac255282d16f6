"""The display order of the nodes of an edited graph."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from layerwise._tool.surgery.graph.index import Numbers

if TYPE_CHECKING:
    import onnx

    from layerwise._tool.surgery.graph.overlay_nodes import OverlayNodes
    from layerwise._tool.surgery.model.graph_value import Graph

Places = NDArray[np.float64]
_STEP, _INNER_STEP = 1e-6, 1e-9


def in_order(overlay: "OverlayNodes", alive: NDArray[np.bool_]) -> tuple[Numbers, Places]:
    """Return the file's nodes in the order of the index, new ones right after what they read or before their readers.

    alive: which of the file's nodes remain. Returns the nodes, and their sort keys.
    """
    keys = _Keys(overlay)
    for number, node in overlay.own.items():
        if number >= alive.size:
            keys.add(number, node)
    file = np.flatnonzero(alive)
    if not keys.of:
        return file.astype(np.int32), file.astype(np.float64)
    numbers = np.concatenate([file, np.fromiter(keys.of, np.int64, len(keys.of))])
    return by_place(numbers, np.concatenate([file, np.fromiter(keys.of.values(), np.float64, len(keys.of))]))


def by_place(numbers: NDArray[Any], places: Places) -> tuple[Numbers, Places]:
    """Return nodes and their sort keys, sorted."""
    order = np.argsort(places, kind="stable")
    return numbers[order].astype(np.int32), places[order]


class _Keys:
    """Sort keys of the new nodes, between the numbers of the file's nodes."""

    def __init__(self, overlay: "OverlayNodes") -> None:
        self._overlay, self._n_file = overlay, overlay.ground.index.n_nodes
        self.of: dict[int, float] = {}

    def add(self, number: int, node: "onnx.NodeProto") -> None:
        scope = self._overlay.node_scope(number)
        graph, step = self._overlay.graph(scope), _INNER_STEP if scope else _STEP
        step *= len(self.of) + 1
        above = self._above(graph, node)
        if above:
            self.of[number] = max(above) + step
        else:
            below = self._below(graph, node)
            self.of[number] = min(below) - step if below else self._start(scope) + step

    def _above(self, graph: "Graph", node: "onnx.NodeProto") -> list[float]:
        """Return the position after everything it reads."""
        makers = (graph.lookups.makers.get(name) for name in node.input)
        numbers = (self._overlay.number(maker) for maker in makers if maker is not None)
        return [self._end(number) for number in numbers if number < self._n_file or number in self.of]

    def _below(self, graph: "Graph", node: "onnx.NodeProto") -> list[int]:
        """Return the file's nodes that read its outputs."""
        readers = (reader for name in node.output for reader in graph.lookups.readers.get(name, ()))
        return [number for number in map(self._overlay.number, readers) if 0 <= number < self._n_file]

    def _end(self, number: int) -> float:
        return self.of[number] if number in self.of else float(self._overlay.ground.after(number))

    def _start(self, scope: int) -> float:
        """Return the position of unconnected nodes: after the main graph, or first in a body or function."""
        ground = self._overlay.ground
        nodes = ground.index.scope_nodes(scope)
        if not scope:
            return float(ground.after(int(nodes[-1]))) if nodes.size else -1.0
        owner = ground.places[scope].owner
        if owner >= 0:
            return self.of.get(owner, float(owner))
        return float(nodes[0]) - 0.5 if nodes.size else float(self._n_file + scope)
