"""What the keys of Surgery act on: chosen nodes of one graph of the model, as edits name them."""

from collections.abc import Sequence
from dataclasses import dataclass

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.graph.overlay import Overlay
from layerwise._tool.surgery.model.structure import Graph, Scope


@dataclass(frozen=True)
class Target:
    """Nodes of one graph. scope: where it stands; labels: what edits find the nodes by."""

    graph: Graph
    scope: Scope
    labels: tuple[str, ...]
    ops: tuple[str, ...]

    @property
    def outputs(self) -> list[str]:
        """Names of all that the nodes make."""
        return [name for label in self.labels for name in self.graph.node(label).output if name]

    @property
    def one(self) -> str:
        """The node's label. UsageError if there are several."""
        if len(self.labels) != 1:
            raise UsageError(f"this changes one node, and {len(self.labels)} are marked: - clears the marks")
        return self.labels[0]

    def text(self) -> str:
        """The nodes in a few words."""
        return shown(self.labels[0], 60) if len(self.labels) == 1 else f"{len(self.labels):,} nodes"


def target(graph: Overlay, nodes: Sequence[int]) -> Target:
    """The nodes with these numbers. UsageError if there are none, or they stand in different graphs."""
    if not nodes:
        raise UsageError("there is no node here")
    scopes = {graph.node_scope(node) for node in nodes}
    if len(scopes) > 1:
        raise UsageError("the marked nodes stand in different graphs: mark those of one body or function")
    number = scopes.pop()
    labels = tuple(dict.fromkeys(map(graph.label, nodes)))
    ops = tuple(dict.fromkeys(map(graph.node_op, nodes)))
    return Target(graph.graph(number), scope_of(graph, number), labels, ops)


def find_node(graph: Overlay, name: str) -> int:
    """The node of a name, or that makes the tensor of that name. UsageError if there is none."""
    node = graph.find_node(name)
    tensor = graph.find_tensor(name) if node < 0 else -1
    node = graph.producer(tensor) if tensor >= 0 else node
    if node < 0:
        raise UsageError(f"there is no node {shown(name, 80)}")
    return node


def scope_of(graph: Overlay, number: int) -> Scope:
    """The graph's scope `number` as edits write it."""
    found: Scope = ()
    while number > 0:
        scope = graph.meta["scopes"][number]
        if scope["kind"] == "function":
            return ("function", str(scope["name"]), *found)
        found = (graph.label(scope["owner"]), str(scope["attribute"]), *found)
        number = graph.node_scope(scope["owner"])
    return found
