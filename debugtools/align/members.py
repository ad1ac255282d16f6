"""Pairs the tensors of two groups that are paired: each with the one that it resembles in layout, type and maker."""

import math
from typing import NamedTuple

from layerwise._tool.backends.tensors import to_numpy
from layerwise._tool.debugtools.align.alignment import Layout
from layerwise._tool.debugtools.align.distance import FAR, Apart, comparable, distance
from layerwise._tool.debugtools.align.groups import Group, GroupGraph
from layerwise._tool.debugtools.align.layouts import layout_of_prints
from layerwise._tool.debugtools.align.operators import plain, restores, rounds

_NEAR = 0.5
_ROUNDING = {"float16": 1e-3, "bfloat16": 8e-3}
"""Two units roundoff: nearer says nothing."""


class Member(NamedTuple):
    """A tensor, its counterpart, their distance (None: one was not seen) and layout."""

    tensor: str
    other: str
    apart: Apart | None
    layout: Layout | None


def how_far(member: Member, same_shape: bool) -> float:
    """The distance of a pair: in its layout, where that is known to keep the flat order; else whatever the order."""
    assert member.apart is not None
    in_order = same_shape if member.layout is None else not member.layout.permutation
    return member.apart.in_order if in_order else member.apart.any_order


def pair_members(
    first: GroupGraph, second: GroupGraph, one: Group, other: Group, names: bool, *, shared: bool = False
) -> list[Member]:
    """Pair the members of two groups. Several of the first may have one counterpart: all are views of one tensor.

    names: whether the same name means the same tensor. shared: the second group is the counterpart of several: which of
    them its root stands for, values tell.
    """
    weights = one.weight and other.weight
    if len(one.members) == len(other.members) == 1:
        mine, theirs = first.prints.get(one.root), second.prints.get(other.root)
        fits = mine is None or theirs is None or comparable(mine, theirs)
        return [_member(first, second, one.root, other.root, weights)] if fits else []
    passed = detours(first, one), detours(second, other)
    sources, restored = _taken_back(first, one), _taken_back(second, other)
    costs = sorted(
        (cost - 0.3 * (shared and (i == 0) != (j == 0)), i, j)
        for i in range(len(one.members))
        for j in range(len(other.members))
        if one.members[i] not in passed[0]
        and other.members[j] not in passed[1]
        and (i not in sources or j in restored)
        and (cost := _cost(first, second, (one, i), (other, j), names)) is not None
    )
    found: dict[int, Member] = {}
    taken: set[int] = set()
    for again in (False, True):
        for _, i, j in costs:
            if i not in found and (again or j not in taken):
                member = _member(first, second, one.members[i], other.members[j], again or weights)
                if not again or _holds(member):
                    found[i] = member
                    taken.add(j)
    for i, source in sources.items():
        if source in found and (i not in found or _reordered(found[i])):
            found[i] = _as_its_source(first, second, one.members[i], found[source])
    return [found[i] for i in sorted(found)]


def _taken_back(side: GroupGraph, group: Group) -> dict[int, int]:
    """Members that are quantised and dequantised at once, with what they are made from."""
    places, found = {name: i for i, name in enumerate(group.members)}, {}
    for i, name in enumerate(group.members):
        maker = side.makers.get(name)
        if maker is not None and restores(maker.op):
            before = side.makers.get(next(iter(maker.inputs), ""))
            if before is not None and rounds(before.op) and before.inputs[0] in places:
                found[i] = places[before.inputs[0]]
    return found


def _as_its_source(first: GroupGraph, second: GroupGraph, name: str, source: Member) -> Member:
    mine, theirs = first.prints.get(name), second.prints.get(source.other)
    apart = distance(mine, theirs) if mine is not None and theirs is not None else None
    return Member(name, source.other, apart, source.layout)


def _reordered(member: Member) -> bool:
    """Whether the two have the same values in another order: a view may make that right, or a fault."""
    return not _near(member) and member.apart is not None and member.apart.any_order <= _NEAR


def _near(member: Member) -> bool:
    return member.apart is None or member.apart.in_order <= _NEAR


def detours(side: GroupGraph, group: Group) -> set[str]:
    """Members that round a tensor to a narrower type which the next one takes back: what that loses is looked for in
    the whole way, and the tensor in between is nobody's counterpart.
    """
    found = set()
    for name in group.members:
        maker = side.makers.get(name)
        before = next(iter(maker.inputs), "") if maker is not None else ""
        if before in group.members and _narrower(side, name, before):
            readers = [each for each in group.members if (by := side.makers.get(each)) and name in by.inputs[:1]]
            if any(_narrower(side, name, reader) for reader in readers):
                found.add(name)
    return found


def _narrower(side: GroupGraph, name: str, other: str) -> bool:
    mine, theirs = side.prints.get(name), side.prints.get(other)
    if mine is None or theirs is None or mine.kind != "float" or theirs.kind != "float":
        return False
    return to_numpy(mine.dtype).itemsize < to_numpy(theirs.dtype).itemsize


def _holds(member: Member) -> bool:
    """Whether one more view of a tensor may be compared with a view that has a counterpart already."""
    return _near(member) or member.layout is not None


def _cost(
    first: GroupGraph, second: GroupGraph, one: tuple[Group, int], other: tuple[Group, int], names: bool
) -> float | None:
    (group, i), (counterpart, j) = one, other
    x, y = group.members[i], counterpart.members[j]
    mine, theirs = first.prints.get(x), second.prints.get(y)
    cost = 0.3 * ((i == 0) != (j == 0)) - 0.5 * (names and x == y)
    cost -= 0.6 * (x in first.graph.outputs and y in second.graph.outputs)
    maker, there = first.makers.get(x), second.makers.get(y)
    cost += 0.1 * ((maker and plain(maker.op)) != (there and plain(there.op)))
    if mine is None or theirs is None:
        return 1.0 + cost
    if not comparable(mine, theirs):
        return None
    apart = max(distance(mine, theirs).in_order, 1e-6, *(_ROUNDING.get(each.dtype, 0.0) for each in (mine, theirs)))
    cost += min(1.5 + 0.25 * math.log10(apart), 1.5)  # orders of magnitude: a name does not outweigh them
    return cost + 0.2 * (mine.shape != theirs.shape) + 0.05 * (mine.dtype != theirs.dtype)


def _member(first: GroupGraph, second: GroupGraph, x: str, y: str, free: bool) -> Member:
    mine, theirs = first.prints.get(x), second.prints.get(y)
    if mine is None or theirs is None:
        return Member(x, y, None, None)
    apart = distance(mine, theirs)
    if apart.any_order >= FAR and mine.kind != "float":
        return Member(x, y, apart, None)
    return Member(x, y, apart, layout_of_prints(mine, theirs, apart, free))
