"""Which tensor of a dump is which tensor of a graph: a dump has no graph, and names that may say nothing.

Nothing but values tells here. So a pair is certain only where nothing else has these values; where tensors with other
values come as near, there is no pair.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from layerwise._tool.debugtools.align.alignment import AlignedPair, Alignment, Confidence, Reason, Unpaired
from layerwise._tool.debugtools.align.distance import FAR, Apart, distance, distances, tolerance
from layerwise._tool.debugtools.align.fingerprint import Fingerprint
from layerwise._tool.debugtools.align.graph import AlignGraph, AlignNode
from layerwise._tool.debugtools.align.groups import Group, GroupGraph
from layerwise._tool.debugtools.align.layouts import layout_of_prints
from layerwise._tool.debugtools.align.side_data import SideData

_LEAD = 3.0  # times nearer than all others
_NEAR = 0.3  # a tensor that is wrong by so much is still the same one, if nothing else is nearly as near
_EQUAL = 1e-6
_FLOOR = 1e-3  # of the tolerance: nearer does not count
_TRUSTED = 0.7
_TELLING = 4  # elements at most that tell nothing


class _Near(NamedTuple):
    """A group near a tensor of the dump. apart: how far, in order and in any order; within: the tolerance."""

    group: int
    apart: Apart
    within: float

    @property
    def agrees(self) -> bool:
        return self.apart.in_order <= self.within

    @property
    def turned(self) -> bool:
        """Whether the values agree in another order alone."""
        return not self.agrees and self.apart.any_order <= min(self.within, 0.1)


def dump_graph(names: Sequence[str]) -> AlignGraph:
    """What a dump has in place of a graph: tensors, each by itself."""
    return AlignGraph(tuple(AlignNode("", (), (name,)) for name in names), (), ())


def align_values(
    first: SideData, dump: SideData, names: Mapping[str, str], hand: Sequence[AlignedPair] = ()
) -> Alignment:
    """Pair a dump's tensors with those of a graph. names: of the graph -> of the dump, where they say the same.

    hand: pairs that a person gave. Several tensors of the graph that are views of one may have one counterpart.
    """
    return _ByValue(first, dump, names, hand).alignment()


class _ByValue:
    def __init__(self, first: SideData, dump: SideData, names: Mapping[str, str], hand: Sequence[AlignedPair]) -> None:
        self._first, self._dump = GroupGraph(first), dump
        self._digests = first.digest, dump.digest
        self._hand = [pair for pair in hand if pair.tensor in self._first.of and pair.other in dump.prints]
        self._near = {own: sorted(found, key=_order) for own, found in self._measured().items()}
        self._of_group: dict[int, list[str]] = defaultdict(list)
        for own, found in self._near.items():
            for near in found:
                if near.agrees:
                    self._of_group[near.group].append(own)
        self._named = self._trusted({own: name for name, own in names.items() if own in dump.prints})
        self._pairs: dict[str, AlignedPair] = {pair.tensor: pair for pair in self._hand}
        self._taken = {pair.other for pair in self._hand}
        self._groups = {self._first.of[pair.tensor] for pair in self._hand}

    def alignment(self) -> Alignment:
        for own, name in self._named.items():
            if own not in self._taken and name not in self._pairs:
                self._take(own, self._first.of[name], "certain" if self._agree(own, name) else "likely", "name", name)
        waiting = [own for own in self._dump.prints if own not in self._taken]
        for own in sorted(waiting, key=lambda own: _nearness(self._near[own][0]) if self._near.get(own) else FAR):
            self._by_value(own)
        for own in self._dump.prints:
            if own not in self._taken:
                self._as_view(own)
        order = {name: place for place, name in enumerate(self._first.of)}
        pairs = sorted(self._pairs.values(), key=lambda pair: order[pair.tensor])
        return Alignment(pairs, [*self._alone()], self._digests)

    # Values

    def _measured(self) -> dict[str, list[_Near]]:
        """For each tensor of the dump, the groups with as many elements, each by its nearest member."""
        rows: dict[int, list[tuple[int, Fingerprint]]] = defaultdict(list)
        others: dict[object, list[int]] = defaultdict(list)
        for group in self._first.groups:
            for known in self._first.prints_of[group.number]:
                if known.kind == "float" and known.sketch:
                    rows[known.size].append((group.number, known))
                elif known.kind != "float":
                    others[known.kind, known.values, known.order, known.size].append(group.number)
        found: dict[str, list[_Near]] = {}
        by_size: dict[int, list[str]] = defaultdict(list)
        for own, known in self._dump.prints.items():
            if known.kind == "float" and known.sketch:
                by_size[known.size].append(own)
            elif known.kind != "float":
                same = others.get((known.kind, known.values, known.order, known.size), [])
                found[own] = [_Near(number, Apart(0.0, 0.0), 0.0) for number in dict.fromkeys(same)]
        for size, names in by_size.items():
            for own in names:
                found[own] = list(self._floats(self._dump.prints[own], rows.get(size, [])))
        return found

    def _floats(self, known: Fingerprint, rows: list[tuple[int, Fingerprint]]) -> Iterator[_Near]:
        if not rows:
            return
        in_order, any_order = (table[0] for table in distances([known], [other for _, other in rows]))
        best: dict[int, _Near] = {}
        for at in np.flatnonzero(np.minimum(in_order, any_order) <= _NEAR * _LEAD):
            number, other = rows[at]
            within = tolerance(known, other, self._first.quantised)
            near = _Near(number, Apart(float(in_order[at]), float(any_order[at])), within)
            if number not in best or _order(near) < _order(best[number]):
                best[number] = near
        yield from best.values()

    def _agree(self, own: str, name: str) -> bool:
        mine, theirs = self._first.prints.get(name), self._dump.prints[own]
        if mine is None:
            return False
        apart = distance(mine, theirs)
        return apart.nearest <= tolerance(mine, theirs, self._first.quantised)

    def _trusted(self, named: Mapping[str, str]) -> dict[str, str]:
        """The names, unless values say that most of them stand for other tensors."""
        named = {own: name for own, name in named.items() if name in self._first.of}
        votes = []
        for own, name in named.items():
            telling = [near.group for near in self._near.get(own, []) if near.agrees]
            if telling and not self._tells_nothing(own):
                votes.append(self._first.of[name] in telling)
        return dict(named) if not votes or sum(votes) >= _TRUSTED * len(votes) else {}

    def _tells_nothing(self, own: str) -> bool:
        known = self._dump.prints[own]
        return known.constant or known.size <= _TELLING or (known.kind != "float" and len(self._near[own]) > 1)

    def _by_value(self, own: str) -> None:
        near = [each for each in self._near.get(own, []) if each.group not in self._groups]
        if not near or self._tells_nothing(own):
            return
        agreeing = [each for each in near if each.agrees]
        turned = [each for each in near if each.turned]
        chosen = agreeing or turned or near[:1]
        best = chosen[0]
        floor = _FLOOR * best.within
        rivals = [
            each for each in near if each.group != best.group and _nearness(each) < _LEAD * max(_nearness(best), floor)
        ]
        if not agreeing and not turned and best.apart.in_order > _NEAR:
            return
        if any(not self._equal(best.group, each.group) for each in rivals):
            return  # ambiguous: their values differ
        alone = all(self._equal(best.group, each.group) for each in agreeing) and not rivals
        sure = bool(agreeing) and alone and not self._rivals_in_dump(own, best)
        self._take(own, best.group, "certain" if sure else "likely", "value")

    def _rivals_in_dump(self, own: str, best: _Near) -> bool:
        """Whether another tensor of the dump with other values comes as near to the group."""
        mine = self._dump.prints[own]
        others = (other for other in self._of_group[best.group] if other != own)
        return any(distance(mine, self._dump.prints[other]).in_order > _EQUAL for other in others)

    def _equal(self, a: int, b: int) -> bool:
        """Whether two groups hold the same values: then it makes no difference which of them it is."""
        one, other = self._first.prints_of[a], self._first.prints_of[b]
        return any(min(distance(p, q)) <= _EQUAL for p in one for q in other)

    # Pairs

    def _take(self, own: str, number: int, confidence: Confidence, reason: Reason, name: str = "") -> None:
        group = self._first.groups[number]
        self._taken.add(own)
        self._groups.add(number)
        for member in self._members(group, own, name):
            reasons: tuple[Reason, ...] = (reason,)
            if reason == "name" and self._agree(own, member):
                reasons = ("name", "value")
            self._pairs.setdefault(member, self._pair(member, own, confidence, reasons))

    def _as_view(self, own: str) -> None:
        """Pair a tensor that holds a view of what another tensor of the dump is paired with."""
        there = self._dump.prints[own]
        for near in self._near.get(own, []):
            for member, known in self._first.seen(self._first.groups[near.group]) if near.agrees else ():
                pair = self._pairs.get(member)
                if pair is None or pair.other == own or "hand" in pair.reasons or known.shape != there.shape:
                    continue
                now, before = (distance(known, self._dump.prints[name]) for name in (own, pair.other))
                fits = self._dump.prints[pair.other].shape == known.shape and before.in_order <= now.in_order
                if not fits and now.in_order <= near.within:
                    self._pairs[member] = self._pair(member, own, pair.confidence, ("value",))
                    self._taken.add(own)
                    return

    def _members(self, group: Group, own: str, name: str) -> Iterator[str]:
        """The members of a group that a tensor of the dump is: the named one, else that of its shape; then views."""
        there = self._dump.prints[own]
        seen = [(member, known) for member, known in self._first.seen(group) if known.size == there.size]
        if name:
            yield name
        seen.sort(key=lambda each: (each[1].shape != there.shape, each[1].dtype != there.dtype))
        yield from (member for member, known in seen if known.kind == there.kind)

    def _pair(self, member: str, own: str, confidence: Confidence, reasons: tuple[Reason, ...]) -> AlignedPair:
        mine, theirs = self._first.prints.get(member), self._dump.prints[own]
        if mine is None:
            return AlignedPair(member, own, confidence, reasons)
        apart = distance(mine, theirs)
        layout = layout_of_prints(mine, theirs, apart)
        far = apart.any_order if layout is not None and layout.permutation else apart.in_order
        return AlignedPair(member, own, confidence, reasons, layout, None if far >= FAR else far)

    def _alone(self) -> Iterator[Unpaired]:
        for name in self._first.of:
            if name not in self._pairs:
                yield Unpaired(name, 0)
        for own in self._dump.prints:
            if own not in self._taken:
                near = self._near.get(own, [])[:1]
                root = self._first.groups[near[0].group].root if near else ""
                yield Unpaired(own, 1, root, _nearness(near[0]) if near else None)


def _nearness(near: _Near) -> float:
    return near.apart.nearest


def _order(near: _Near) -> tuple[float, float]:
    return near.apart.nearest, near.apart.in_order
