"""A scope, or one block of a repeat in it, as items in rows: the unit that the page draws and folds.

A level's items are nodes, runs (equal blocks, folded into one item with a single level for all of them), and
connections to the outside: graph inputs and outputs on a scope's level, ports on a block's. Positions in a block's
level count from the block's first node, so that one level serves every block of its run.
"""

from dataclasses import dataclass, field
from enum import IntEnum

from layerwise._tool.surgery.graph.repeats import Repeat
from layerwise._tool.surgery.visual.layers import Edge, draw
from layerwise._tool.surgery.visual.scope_graph import OUTSIDE, ScopeGraph, pieces

Json = dict[str, object]
_DEEPEST = 6


class Item(IntEnum):
    """Kind of an item, which determines its `ref`: a node's position; an index in `runs` or `ports`; a tensor."""

    NODE = 0
    RUN = 1
    INPUT = 2
    OUTPUT = 3
    PORT_IN = 4
    PORT_OUT = 5


SIZES = {Item.NODE: (176, 58), Item.RUN: (208, 66), Item.INPUT: (150, 40), Item.OUTPUT: (150, 40),
         Item.PORT_IN: (120, 22), Item.PORT_OUT: (120, 22)}  # fmt: skip
"""Width and height of an item as it is drawn folded, in pixels at scale 1."""
BEND_WIDTH = 12.0


@dataclass(slots=True)
class _Level:
    """A level under construction.

    ports: (position, slot) of a read (captures after inputs, weights left out) or of an output.
    """

    kinds: list[Item] = field(default_factory=list)
    refs: list[int] = field(default_factory=list)
    runs: list[Repeat] = field(default_factory=list)
    ports: list[tuple[int, int]] = field(default_factory=list)
    edges: dict[tuple[int, int], Edge] = field(default_factory=dict)

    def add(self, kind: Item, ref: int) -> int:
        self.kinds.append(kind)
        self.refs.append(ref)
        return len(self.kinds) - 1

    def join(self, source: int, target: int, tensor: int) -> None:
        """Add an edge; two items are joined by one line, however many tensors it represents."""
        if source != target:
            self.edges.setdefault((source, target), Edge(source, target, tensor))


def scope_level(graph: ScopeGraph) -> Json:
    """Return the level of a whole scope, including those of its runs."""
    level = _Level()
    entries = {t: level.add(Item.INPUT, t) for t in dict.fromkeys(_inputs(graph))}
    owner = _inside(graph, level, range(len(graph)), 0)
    for position, links in enumerate(graph.reads):
        for tensor, maker in links:
            source = owner[maker] if maker != OUTSIDE else entries.get(tensor)
            if source is not None:
                level.join(source, owner[position], tensor)
    for tensor in _outputs(graph):
        maker = graph.maker(tensor)
        source = entries.get(tensor) if maker == OUTSIDE else owner[maker]
        if source is not None:
            level.join(source, level.add(Item.OUTPUT, tensor), tensor)
    return _drawn(graph, level, range(len(graph)), 0)


def _inputs(graph: ScopeGraph) -> list[int]:
    """Return the tensors that a scope reads from outside: its inputs (read or not), and its captures."""
    index = graph.index
    read = [tensor for links in graph.reads for tensor, maker in links if maker == OUTSIDE]
    named = {index.tensor_name(t): t for t in read if index.tensor_scope(t) == graph.scope}
    wanted = graph.index.meta["scopes"][graph.scope]["inputs"] if graph.scope == 0 else []
    declared = (named.get(name, index.find_tensor(name)) for name in wanted)
    return [*(t for t in declared if t >= 0 and index.tensor_scope(t) == graph.scope), *read]


def _outputs(graph: ScopeGraph) -> list[int]:
    """Return the outputs of a scope, in order."""
    index = graph.index
    made = [t for node in graph.nodes for t in index.node_outputs(node) if t >= 0 and index.is_output(t)]
    named = {index.tensor_name(t): t for t in [*_inputs(graph), *made]}
    return [named[name] for name in index.meta["scopes"][graph.scope]["outputs"] if name in named]


def _inside(graph: ScopeGraph, level: _Level, span: range, depth: int) -> dict[int, int]:
    """Add nodes and runs of these positions to a level; return the item of each position."""
    owner: dict[int, int] = {}
    runs = {found.start: found for found in graph.repeats(span.start, span.stop)} if depth < _DEEPEST else {}
    at = span.start
    while at < span.stop:
        run = runs.get(at)
        if run is None:
            owner[at] = level.add(Item.NODE, at - span.start)
            at += 1
        else:
            item = level.add(Item.RUN, len(level.runs))
            level.runs.append(run)
            owner.update((position, item) for position in range(run.start, run.end))
            at = run.end
    return owner


def _block_level(graph: ScopeGraph, run: Repeat, depth: int) -> Json:
    """Return the level of each block of a run, from its first."""
    blocks = pieces(run)
    first, level = blocks[0], _Level()
    ports: dict[int, int] = {}
    for position in first:
        for slot, (tensor, maker) in enumerate(graph.reads[position]):
            if maker not in first and tensor not in ports:
                ports[tensor] = level.add(Item.PORT_IN, len(level.ports))
                level.ports.append((position - first.start, slot))
    owner = _inside(graph, level, first, depth)
    for position in first:
        for tensor, maker in graph.reads[position]:
            level.join(owner[maker] if maker in first else ports[tensor], owner[position], tensor)
    for local, slot in _given(graph, blocks):
        tensor = graph.index.node_outputs(graph.nodes[first.start + local])[slot]
        level.join(owner[first.start + local], level.add(Item.PORT_OUT, len(level.ports)), tensor)
        level.ports.append((local, slot))
    return _drawn(graph, level, first, depth)


def _given(graph: ScopeGraph, blocks: list[range]) -> list[tuple[int, int]]:
    """Return the outputs, as (position in the block, slot), that are read outside of a block."""
    found: dict[tuple[int, int], None] = {}
    for block in blocks:
        for position in block:
            for slot, tensor in enumerate(graph.index.node_outputs(graph.nodes[position])):
                if (position - block.start, slot) not in found and tensor >= 0 and _leaves(graph, tensor, block):
                    found[position - block.start, slot] = None
    return sorted(found)


def _leaves(graph: ScopeGraph, tensor: int, block: range) -> bool:
    return graph.index.is_output(tensor) or any(reader not in block for reader in graph.readers(tensor))


def _drawn(graph: ScopeGraph, level: _Level, span: range, depth: int) -> Json:
    """Return a level as JSON: columns by item, edges as flat numbers: source, target, x in each row between."""
    widths = [float(SIZES[kind][0]) for kind in level.kinds]
    late = [kind not in (Item.INPUT, Item.PORT_IN) for kind in level.kinds]
    edges = list(level.edges.values())
    made = draw(widths, edges, late, BEND_WIDTH)
    lines: list[int] = []
    tags: list[int] = []
    for edge, bends in zip(edges, made.bends, strict=True):
        if bends is None:
            tags += [edge.source, edge.target]
        else:
            lines += [edge.source, edge.target, *(round(x) for x in bends)]
    return {
        "kind": [int(kind) for kind in level.kinds], "ref": level.refs, "row": made.row,
        "x": [round(x) for x in made.x], "width": round(made.width), "lines": lines, "tags": tags,
        "ports": [number for port in level.ports for number in port], "runs": [
            {"start": run.start - span.start, "period": run.period, "count": run.count,
             "level": _block_level(graph, run, depth + 1)} for run in level.runs],
    }  # fmt: skip
