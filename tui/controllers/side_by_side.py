"""Two states of a model, or two models, laid side by side. Runs in the desk's thread."""

from pathlib import Path

from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.debugtools.diff.matching import Matching
from layerwise._tool.debugtools.diff.nodes import graph_side
from layerwise._tool.debugtools.diff.sides import GraphSide
from layerwise._tool.surgery.graph import GraphIndex
from layerwise._tool.surgery.graph.overlay import Overlay
from layerwise._tool.surgery.inspect.view import open_view
from layerwise._tool.tui.state.changes import Pair, Sides
from layerwise._tool.tui.state.surgery import Ghost


def states_side_by_side(names: tuple[str, str], ghost: Ghost) -> Sides:
    """The states before and after a change."""
    pairs = []
    for node in ghost.shown.order.tolist():
        sign = ghost.signs.get(node, " ")
        pairs.append(Pair(-1 if sign == "+" else node, -1 if sign == "-" else node, sign))
    return Sides(names, ghost.before, ghost.after, pairs)


def model_side_by_side(names: tuple[str, str], state: Overlay, path: Path, index: GraphIndex, other: Path) -> Sides:
    """A state of the open model (at `path`) beside another model; nodes are matched by structure, then by name.

    Main graphs only. BadFile if one of the files cannot be read any more.
    """
    with ModelFile(path) as own, ModelFile(other) as file:
        a = graph_side(open_view(own, state.state.proto().SerializeToString())[0])
        b = graph_side(open_view(file, file.structure_bytes())[0])
    shared = {name: name for name in (*a.weights, *a.inputs) if name in b.weights or name in b.inputs}
    matching = Matching(a, b, shared)
    matching.run()
    left = [state.number(node) for node in state.state.nodes]
    right = {index.node_position(int(node)): int(node) for node in index.main_nodes()}
    return Sides(names, state, index, _pairs(matching, left, right))


def _pairs(matching: Matching, left: list[int], right: dict[int, int]) -> list[Pair]:
    """Nodes in the order of the right side, those of the left alone before what follows them."""
    found: list[Pair] = []
    alone = [i for i in matching.a.order if i not in matching.forth]
    place = {i: at for at, i in enumerate(matching.a.order)}
    for j in matching.b.order:
        i = matching.back.get(j)
        if i is None:
            found.append(Pair(-1, right[j], "+"))
            continue
        while alone and place[alone[0]] < place[i]:
            found.append(Pair(left[alone.pop(0)], -1, "-"))
        found.append(Pair(left[i], right[j], " " if _same(matching, matching.a, i, matching.b, j) else "~"))
    return found + [Pair(left[i], -1, "-") for i in alone]


def _same(matching: Matching, a: GraphSide, i: int, b: GraphSide, j: int) -> bool:
    one, other = a.nodes[i], b.nodes[j]
    if a.signatures[i] != b.signatures[j] or len(one.inputs) != len(other.inputs):
        return False
    return all(matching.tensors.get(x) == y for x, y in zip(one.inputs, other.inputs, strict=True))
