"""Nodes before a suspect that only rearrange: where tensors were aligned, the layout that was found hides what they do.

A wrong transposition holds the same numbers, so it still is the counterpart of the right one, in another layout or of
what it reads. It shows at the first node that needs the order.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import onnx

from layerwise._tool.surgery.cut.segments import GraphCut

_MOST, _MOST_TURNED = 16, 256  # nodes, tensors
_ORDER = frozenset(
    {"Concat", "DepthToSpace", "Expand", "Flatten", "Gather", "Identity", "Reshape", "Slice", "SpaceToDepth", "Split",
     "Squeeze", "Tile", "Transpose", "Unsqueeze"}
)  # fmt: skip
_TORCH = frozenset(
    {"cat", "chunk", "clone", "contiguous", "expand", "flatten", "movedim", "narrow", "permute", "reshape", "select",
     "slice", "split", "split_with_sizes", "squeeze", "stack", "swapaxes", "t", "transpose", "unbind", "unflatten",
     "unsqueeze", "view"}
)  # fmt: skip
_CASTS = frozenset({"Cast", "DequantizeLinear", "Identity", "QuantizeLinear"})
_ALL_DATA = frozenset({"Concat", "aten.cat"})


@dataclass(frozen=True)
class View:
    """A side's graph as it is held against the other one's (theirs; None if that side has none).

    here: the name in this graph of a tensor of the other one; there: the other way. hidden: whether a tensor has no
    counterpart, or one in another layout; turned: whether that has its axes in another order.
    """

    cut: GraphCut
    theirs: GraphCut | None
    here: Callable[[str], str]
    there: Callable[[str], str]
    hidden: Callable[[str], bool]
    turned: Callable[[str], bool]


def before_region(view: View, tensor: str, region: Sequence[int], others: Sequence[int]) -> list[int]:
    """Positions of the nodes before a region whose order nothing has told. tensor: what the region makes.

    others: the other side's region.
    """
    cut, theirs = view.cut, view.theirs
    reads, instead, parts = read_outside(cut, region), list[str](), list[int]()
    if theirs is not None:
        made = (name for i in others for name in theirs.nodes[i].output)
        instead = [view.here(name) for name in (*read_outside(theirs, others), *made)]
        parts = crossed(view, region, theirs)
    found = rearranging(view, reads)
    other, left = [name for name in reads if name not in instead], [name for name in instead if name not in reads]
    apart = [*exchanged(cut, other, left), *reordered(view, other, left)]
    return [i for i in sorted({*found, *apart, *parts, *turning(view, tensor, region)}) if i not in region]


def rearranging(view: View, feeds: Iterable[str]) -> list[int]:
    """Positions of the nodes that rearrange what a region reads (feeds) since it last was surely as in the reference.

    With them come the nodes that compute the shapes and indices that they take.
    """
    cut, theirs = view.cut, view.theirs

    def other(name: str) -> str:
        return before_casts(theirs, view.there(name)) if theirs is not None else view.there(name)

    found: dict[int, None] = {}
    data, numbers = list(feeds), list[str]()
    while data and len(found) < _MOST:
        name = data.pop(0)
        i = cut.maker.get(name)
        if i is None or i in found or not _rearranges(cut.nodes[i]):
            continue
        moved = _data(cut, i)
        if view.hidden(name) or any(other(read) == other(name) for read in moved):
            found[i] = None
            data += moved
            numbers += [read for read in cut.nodes[i].input if read not in moved]
    while numbers and len(found) < _MOST:
        i = cut.maker.get(numbers.pop(0))
        if i is not None and i not in found and view.hidden(cut.nodes[i].output[0]):
            found[i] = None
            numbers += cut.nodes[i].input
    return sorted(found)


def exchanged(cut: GraphCut, read: Iterable[str], instead: Iterable[str]) -> list[int]:
    """Positions of the nodes that take one tensor apart into what a region reads and what it should read instead.

    Where their results come in another order, each is found again as the other one, and whoever reads it seems wrong.
    With them come the nodes from there to the region.
    """
    ends = {way[-1] for name in instead if (way := _way_back(cut, name))}
    ways = [way for name in read if (way := _way_back(cut, name)) and way[-1] in ends]
    return sorted({i for way in ways for i in way})


def reordered(view: View, read: Iterable[str], instead: Iterable[str]) -> list[int]:
    """Positions of the nodes that rearrange one tensor into what a region reads and what it should read instead.

    Where a tensor on the way has another order, each is found again as a later one or an earlier one, and whoever reads
    it seems wrong. With them come the nodes back to what is surely as in the reference.
    """
    known = {*read, *instead}
    ways = {name: list(_back(view, name, known)) for name in known}
    sources = {name: way[-1][1] for name, way in ways.items() if way}
    expected = {sources.get(name, name) for name in instead}
    return sorted({i for name in read if sources.get(name) in expected for i, _ in ways[name]})


def _back(view: View, name: str, known: Collection[str]) -> Iterator[tuple[int, str]]:
    """The nodes that rearrange a tensor since it last was surely as in the reference, each with what it reads. known:
    tensors of which that is not sure.
    """
    cut = view.cut
    for _ in range(_MOST):
        i = cut.maker.get(name)
        if i is None or not _rearranges(cut.nodes[i]) or not (name in known or view.hidden(name)):
            return
        name = next(iter(cut.nodes[i].input), "")
        yield i, name


def crossed(view: View, region: Iterable[int], theirs: GraphCut) -> list[int]:
    """Positions of the nodes that take a tensor apart in another order, where a region rearranges its parts as the
    other side does, but another one each: parts have their counterparts by value, so that the region seems wrong.

    With them come the nodes from there to the region.
    """
    cut, found = view.cut, set[int]()
    for node in [cut.nodes[i] for i in region]:
        way = _way_back(cut, node.output[0]) if len(node.output) == 1 else []
        if not way:
            continue
        end = way[-1:]
        mine = [
            each for each in cut.nodes if each.op_type == node.op_type and _way_back(cut, each.output[0])[-1:] == end
        ]
        alike = [
            (each, view.here(each.input[0])) for each in theirs.nodes if each.op_type == node.op_type and each.input
        ]
        others = [(each, read) for each, read in alike if _way_back(cut, read)[-1:] == end]
        if sorted(map(_does, mine)) == sorted(_does(each) for each, _ in others):
            reads = {read for each, read in others if _does(each) == _does(node)}
            found.update(way if node.input[0] not in reads else ())
    return sorted(found)


def turning(view: View, tensor: str, region: Iterable[int]) -> list[int]:
    """Positions of the nodes that exchange axes of what a region's tensor is made of, though the tensor itself has its
    axes as on the other side: what lies between computes the same in either order, so that it shows here first.
    """
    cut, turned = view.cut, view.turned
    if turned(tensor):
        return []
    waiting = [name for i in region for name in (*cut.reads[i], *cut.nodes[i].output) if turned(name)]
    seen, found = set(waiting), set[int]()
    while waiting and len(seen) < _MOST_TURNED:
        name = waiting.pop()
        i = cut.maker.get(name)
        if i is None:
            continue
        before = [read for read in _data(cut, i) if view.hidden(read)]
        if not any(map(turned, before)) and _rearranges(cut.nodes[i]):
            found.add(i)
        before = list(filter(turned, before)) or before
        waiting += [read for read in before if read not in seen]
        seen.update(before)
    return sorted(found)


def counterparts(nodes: Iterable[int], cut: GraphCut, theirs: GraphCut, there: Callable[[str], str]) -> list[int]:
    """Positions in the other graph of the nodes that rearrange what the results of some nodes of this one are paired
    with. there: a tensor's name in the other graph.
    """
    made = (theirs.maker.get(there(name)) for i in nodes for name in cut.nodes[i].output if name)
    return [i for i in made if i is not None and _rearranges(theirs.nodes[i])]


def rearranges(cut: GraphCut, tensor: str) -> bool:
    """Whether the node that makes a tensor only rearranges what it reads."""
    i = cut.maker.get(tensor)
    return i is not None and _rearranges(cut.nodes[i])


def leads_to(cut: GraphCut, first: int, region: Iterable[int]) -> bool:
    """Whether a node's results are read by the nodes at these positions, or by what they read."""
    waiting = [i for i in region if i > first]
    seen = set(waiting)
    while waiting:
        makers = [cut.maker.get(name, -1) for name in cut.reads[waiting.pop()]]
        if first in makers:
            return True
        more = [i for i in makers if i > first and i not in seen]
        seen.update(more)
        waiting += more
    return False


def read_outside(cut: GraphCut, region: Iterable[int]) -> list[str]:
    """What the nodes of a region read from outside of it."""
    made = {name for i in region for name in cut.nodes[i].output}
    return [name for name in dict.fromkeys(name for i in region for name in cut.reads[i]) if name not in made]


def before_casts(cut: GraphCut, name: str) -> str:
    """What a tensor is made of, in the same order and shape: of another type, or quantised and taken back."""
    while (i := cut.maker.get(name)) is not None and cut.nodes[i].op_type in _CASTS and cut.nodes[i].input:
        name = cut.nodes[i].input[0]
    return name


def _data(cut: GraphCut, i: int) -> list[str]:
    """What a node computes with: of one that rearranges what it reads not the shapes and indices that say how."""
    node = cut.nodes[i]
    if not _rearranges(node):
        return list(cut.reads[i])
    return list(filter(None, node.input[: None if node.op_type in _ALL_DATA else 1]))


def _does(node: onnx.NodeProto) -> list[bytes]:
    return sorted(attribute.SerializeToString(deterministic=True) for attribute in node.attribute)


def _way_back(cut: GraphCut, name: str) -> list[int]:
    """The nodes that rearrange a tensor, from its maker back to one of several results; none if there is none."""
    way: list[int] = []
    while (i := cut.maker.get(name)) is not None and len(way) < _MOST and _rearranges(cut.nodes[i]):
        way.append(i)
        if len(cut.nodes[i].output) > 1:
            return way
        name = next(iter(cut.nodes[i].input), "")
    return []


def _rearranges(node: onnx.NodeProto) -> bool:
    """Whether a node gives the numbers that it reads, in another order or shape."""
    return node.op_type in _ORDER or node.op_type.removeprefix("aten.").split(".")[0] in _TORCH
