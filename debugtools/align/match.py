"""Finds which tensor of one side is which tensor of the other: values propose, structure decides."""

import math
from collections.abc import Iterator, Sequence

from layerwise._tool.debugtools.align.alignment import AlignedPair, Alignment, Unpaired
from layerwise._tool.debugtools.align.distance import FAR, distance
from layerwise._tool.debugtools.align.groups import GroupGraph
from layerwise._tool.debugtools.align.matcher import Matcher
from layerwise._tool.debugtools.align.members import Member, how_far, pair_members
from layerwise._tool.debugtools.align.revision import stand_ins
from layerwise._tool.debugtools.align.side_data import SideData
from layerwise._tool.debugtools.align.verdicts import Verdicts

_EQUAL = 1e-6  # by how much a distance in a table may be off


def align(first: SideData, second: SideData, hand: Sequence[AlignedPair] = ()) -> Alignment:
    """Return the pairs of tensors, in the first side's topological order, and what has no counterpart.

    first: the comparison's side. The same feed must have made both sides' fingerprints; tensors without one are paired
    by names and structure. hand: pairs that a person gave: they are kept, and others follow from them.
    """
    matcher = Matcher(GroupGraph(first), GroupGraph(second))
    order = {name: place for place, name in enumerate(matcher.first.of)}
    kept = {pair.tensor: pair for pair in hand if pair.tensor in order and pair.other in matcher.second.of}
    matcher.run((pair.tensor, pair.other) for pair in kept.values())
    pairs = [*kept.values(), *(pair for pair in _pairs(matcher) if pair.tensor not in kept)]
    pairs.sort(key=lambda pair: order[pair.tensor])
    return Alignment(pairs, [*_alone(matcher, pairs)], (first.digest, second.digest))


def _pairs(matcher: Matcher) -> Iterator[AlignedPair]:
    verdicts, trusted = Verdicts(matcher), matcher.names.trusted
    copies = list(verdicts.copies())
    copied, shared = {a for a, _ in copies}, {b for _, b in copies}
    for a, b in [*sorted(matcher.forth.items()), *copies]:
        groups = matcher.first.groups[a], matcher.second.groups[b]
        for member in pair_members(matcher.first, matcher.second, *groups, trusted, shared=b in shared):
            yield _pair(verdicts, a, b, member)
    yield from (pair for pair in _stand_ins(matcher) if matcher.first.of[pair.tensor] not in copied)


def _stand_ins(matcher: Matcher) -> Iterator[AlignedPair]:
    """What the second side leaves out, with what stands there instead."""
    for a, name in stand_ins(matcher.judge):
        root = matcher.first.groups[a].root
        mine, theirs = matcher.first.prints.get(root), matcher.second.prints.get(name)
        far = distance(mine, theirs).in_order if mine and theirs else None
        yield AlignedPair(root, name, "likely", ("structure",), None, far)


def _pair(verdicts: Verdicts, a: int, b: int, member: Member) -> AlignedPair:
    confidence, reasons = verdicts.of(a, b, member)
    matcher = verdicts.matcher
    one, other = matcher.first.prints.get(member.tensor), matcher.second.prints.get(member.other)
    far = how_far(member, one.shape == other.shape) if one and other and member.apart else None
    return AlignedPair(member.tensor, member.other, confidence, reasons, member.layout, far)


def _alone(matcher: Matcher, pairs: list[AlignedPair]) -> Iterator[Unpaired]:
    sides = (matcher.first, matcher.second)
    paired = ({pair.tensor for pair in pairs}, {pair.other for pair in pairs})
    for place, side in enumerate(sides):
        near: dict[int, list[tuple[float, int]]] = {}
        for pair, far in matcher.values.near.items():
            near.setdefault(pair[place], []).append((far, pair[1 - place]))
        other = sides[1 - place]
        for name, number in side.of.items():
            if name not in paired[place]:
                yield _unpaired(side, other, place, name, near.get(number, []))


def _unpaired(side: GroupGraph, other: GroupGraph, place: int, name: str, near: list[tuple[float, int]]) -> Unpaired:
    mine = side.prints.get(name)
    if mine is None:
        return Unpaired(name, place)
    views = len(side.prints_of[side.of[name]]) > 1  # of which `near` holds the nearest one's distance
    bound = math.inf if views else min(near, default=(FAR, -1))[0] + _EQUAL
    members = (each for far, number in near if far <= bound for each in other.seen(other.groups[number]))
    best = min(((distance(mine, known).nearest, there) for there, known in members), default=None)
    if best is None or best[0] >= FAR:
        return Unpaired(name, place)
    return Unpaired(name, place, best[1], best[0])
