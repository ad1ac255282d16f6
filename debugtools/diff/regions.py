"""Regions: what one graph does in some nodes and the other in others, ending in two nodes that correspond."""

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress

from msgspec import Struct

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.diff.graph_side import GraphSide
from layerwise._tool.debugtools.diff.matching import Matching
from layerwise._tool.surgery.inspect.text import attribute_text
from layerwise._tool.surgery.inspect.view import GraphView

_LISTED = 8
_PARAMETER = 4  # elements at most of what is shown as a parameter


class DiffRegion(Struct, frozen=True):
    """Nodes of both sides in topological order; the last of each are those that correspond."""

    first: list[int]
    second: list[int]


def regions(matching: Matching) -> dict[int, DiffRegion]:
    """The regions, by their last node on the first side.

    Nodes without counterpart belong to the first node with one that is computed from them. Where one side alone has
    such nodes, and the ends are the same operator, they are no region: something was put in, or left out.
    """
    mine, theirs = _inner(matching.a, matching.forth), _inner(matching.b, matching.back)
    found = {}
    for i, j in matching.forth.items():
        one, other = mine.get(i, []), theirs.get(j, [])
        other_operator = matching.a.nodes[i].op != matching.b.nodes[j].op
        if (one and other) or (other_operator and (one or other)):
            found[i] = DiffRegion([*one, i], [*other, j])
    return found


def pair_weights(matching: Matching, region: DiffRegion) -> None:
    """Pair weights without counterpart that a region reads, where one on each side has as many elements."""
    by_size: dict[int, tuple[list[str], list[str]]] = {}
    for place, names in enumerate(_alone(matching, region)):
        weights = (matching.a, matching.b)[place].weights
        for name in (name for name in names if name in weights):
            by_size.setdefault(math.prod(weights[name].dims), ([], []))[place].append(name)
    matching.take((x[0], y[0]) for x, y in by_size.values() if len(x) == len(y) == 1)


def _alone(matching: Matching, region: DiffRegion) -> tuple[list[str], list[str]]:
    """What one part reads alone, of either side."""
    mine, theirs = _reads(matching.a, region.first), _reads(matching.b, region.second)
    mapped = {name: matching.tensors.get(name, "") for name in mine}
    there = {name: matching.equal.get(name, name) for name in theirs}
    alone = [name for name in mine if mapped[name] not in there.values()]
    return alone, [name for name, known in there.items() if known not in mapped.values()]


def _inner(side: GraphSide, paired: Mapping[int, int]) -> dict[int, list[int]]:
    """The unpaired nodes before each paired one, parameters left out."""
    place = {number: at for at, number in enumerate(side.order)}
    readers: dict[int, list[int]] = {}
    for i, node in enumerate(side.nodes):
        for name in (*node.inputs, *(side.captures(i) if i not in paired else ())):
            if name in side.maker:
                readers.setdefault(side.maker[name][0], []).append(i)
    end: dict[int, int] = {}
    found: dict[int, list[int]] = {}
    for number in reversed(side.order):
        if number in paired or side.is_parameter(number):
            continue
        reading = readers.get(number, ())
        ends = [each if each in paired else end[each] for each in reading if each in paired or each in end]
        if ends:
            end[number] = min(ends, key=place.__getitem__)
            found.setdefault(end[number], []).append(number)
    return {number: inner[::-1] for number, inner in found.items()}


def region_lines(matching: Matching, region: DiffRegion) -> Iterator[str]:
    """What the two parts read that is not the same, and their attributes and parameters."""
    for side, names in zip(("first", "second"), _alone(matching, region), strict=True):
        if names:
            yield f"reads in the {side} alone: {_listed([shown(name, 100) for name in names])}"
    for side, graph, nodes in (("first", matching.a, region.first), ("second", matching.b, region.second)):
        told = [text for i in nodes if (text := _parameters(graph, i))]
        if told:
            yield f"in the {side}: {_listed(told)}"


def _reads(side: GraphSide, nodes: list[int]) -> list[str]:
    """What a region reads from outside, without parameters."""
    inside = {name for i in nodes for name in side.nodes[i].outputs}
    names = (name for i in nodes for name in (*side.nodes[i].inputs, *side.captures(i)))
    return list(dict.fromkeys(n for n in names if n and n not in inside and parameter_text(side, n) is None))


def _parameters(side: GraphSide, i: int) -> str:
    node = side.nodes[i]
    known = [
        f"{shown(name, 60)} {attribute_text(value)}"
        for name, value in side.view.attributes(node)
        if not isinstance(value, GraphView)
    ]
    read = [text for name in node.inputs if (text := parameter_text(side, name))]
    return f"{shown(node.op, 60)} ({', '.join([*known, *read])})" if known or read else ""


def parameter_text(side: GraphSide, name: str) -> str | None:
    """A weight or constant of few elements as text; None for what is no such thing."""
    record = side.parameters.get(name)
    if record is None:
        return None
    if math.prod(record.dims) > _PARAMETER:
        return None
    with suppress(LayerwiseError):
        return shown(str(side.view.array(record).reshape(-1).tolist())[1:-1], 80)
    return ""


def _listed(texts: list[str]) -> str:
    more = f", … {len(texts)} in all" if len(texts) > _LISTED else ""
    return ", ".join(texts[:_LISTED]) + more
