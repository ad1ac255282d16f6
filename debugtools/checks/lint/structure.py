"""Checks a graph's structure, bodies included: names, references, cycles, and unused parts."""

from collections import Counter
from collections.abc import Iterator, Sequence

import onnx

from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.checks.lint.report import Level, Origin, Report
from layerwise._tool.surgery.cut.pieces import Pieces

_LISTED = 20


def labels(nodes: Sequence[onnx.NodeProto]) -> list[str]:
    """Return a name for each node: its own, or Polygraphy's default."""
    taken = {node.name for node in nodes}
    found = []
    for number, node in enumerate(nodes):
        name, again = node.name or f"polygraphy_unnamed_node_{number}", 0
        while not node.name and name in taken:
            name, again = f"polygraphy_unnamed_node_{number}_{again}", again + 1
        found.append(name)
    return found


def duplicate_names(pieces: Pieces, report: Report) -> None:
    """Report names that several nodes share."""
    count = Counter(node.name for node in pieces.nodes if node.name)
    places: dict[str, list[int]] = {name: [] for name, times in count.items() if times > 1}
    for number, node in enumerate(pieces.nodes):
        if node.name in places:
            places[node.name].append(number)
    for name, numbers in places.items():
        text = f"Duplicate node name: '{shown(name, 200)}' for nodes with topological IDs: {numbers[:_LISTED]} found."
        report.add(Level.EXCEPTION, Origin.STRUCTURE, text, [name])


def broken_references(pieces: Pieces, names: Sequence[str], report: Report) -> None:
    """Report nodes that read undefined tensors, undefined outputs, and cycles."""
    for position, name in _dangling(pieces):
        node = pieces.nodes[position]
        text = f"Input '{shown(name, 200)}' is made by no node, and is neither a graph input nor an initializer."
        report.add(Level.EXCEPTION, Origin.STRUCTURE, text, [names[position]], node.op_type)
    ring = _on_cycles(pieces)
    if ring:
        loop = [names[position] for position in ring]
        listed = ", ".join(shown(name, 80) for name in loop[:_LISTED]) + (", …" if len(loop) > _LISTED else "")
        report.add(Level.EXCEPTION, Origin.STRUCTURE, f"These nodes read each other in a cycle: {listed}", loop)


def _dangling(pieces: Pieces) -> Iterator[tuple[int, str]]:
    known = set(pieces.inputs)
    for position, read in enumerate(pieces.reads):
        for name in read:
            if name not in pieces.maker and name not in known and not pieces.is_weight(name):
                yield position, name


def _on_cycles(pieces: Pieces) -> list[int]:
    """Return the nodes on cycles and between cycles, from those on or after one."""
    left = set(pieces.cyclic)
    readers: Counter[int] = Counter()
    sources = {
        i: {pieces.maker[name] for name in pieces.reads[i] if pieces.maker.get(name) in left} for i in pieces.cyclic
    }
    for found in sources.values():
        readers.update(found)
    ends = [i for i in left if not readers[i]]
    while ends:
        end = ends.pop()
        left.discard(end)
        for source in sources[end]:
            readers[source] -= 1
            if not readers[source]:
                ends.append(source)
    return sorted(left)


def unused(pieces: Pieces, names: Sequence[str], report: Report) -> None:
    """Report inputs and nodes that no output depends on."""
    needed = _needed(pieces, [value.name for value in pieces.graph.output])
    read = {name for position in needed for name in pieces.reads[position]}
    read.update(value.name for value in pieces.graph.output)
    for name in pieces.inputs:
        if name not in read:
            text = f"Input: '{shown(name, 200)}' does not affect outputs, can be removed."
            report.add(Level.WARNING, Origin.STRUCTURE, text)
    for position in sorted(set(range(len(pieces.nodes))) - needed):
        op = pieces.nodes[position].op_type
        report.add(Level.WARNING, Origin.STRUCTURE, "Does not affect outputs, can be removed.", [names[position]], op)


def _needed(pieces: Pieces, outputs: Sequence[str]) -> set[int]:
    needed: set[int] = set()
    waiting = [pieces.maker[name] for name in outputs if name in pieces.maker]
    while waiting:
        position = waiting.pop()
        if position not in needed:
            needed.add(position)
            waiting += [pieces.maker[name] for name in pieces.reads[position] if name in pieces.maker]
    return needed
