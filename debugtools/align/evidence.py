"""What speaks for a pair of groups: values, names, metadata, operators, what is paired before and behind."""

import math
from collections.abc import Mapping
from typing import NamedTuple

from layerwise._tool.debugtools.align.candidates import Values
from layerwise._tool.debugtools.align.distance import comparable
from layerwise._tool.debugtools.align.groups import Group, GroupGraph
from layerwise._tool.debugtools.align.names import METADATA, NAME, Names
from layerwise._tool.debugtools.align.operators import (
    ELEMENTWISE,
    activates,
    folds,
    fuses,
    is_fused,
    may_end,
    takes_bias,
)
from layerwise._tool.debugtools.align.pairing import Around, Pairing

_LEAD = 0.5  # powers of ten by which values may be further apart than the nearest ones and still agree
_ANY_ORDER, _SAME_SHAPE = 0.1, 0.02  # within which values agree in another order: sums of many terms are much alike
_WITH_BIAS = 3  # inputs of a product
_UNIQUE_VALUE, _SAME_OPERATOR = 3.5, 0.5  # of two that belong together if nothing else agrees with either
_KIN = 0.5  # in-order distance below which two tensors have much in common


class Evidence(NamedTuple):
    """Parts of a score.

    value: from -1 (nothing in common) to 4. agrees: within tolerance. in_order: nearly equal in flat order. sources:
    the share of what the two are computed from, and sinks: of what is computed from them, that is paired with one
    another; None where nothing is paired. weights: for paired weights among the sources. open: one of them is computed
    from more that is not paired. named: 1 the same name, 2 the same metadata, 3 both.
    score: all of it; above 2 it is rather sure, below 1 a guess.
    """

    value: float
    agrees: bool
    in_order: bool
    operator: float
    sources: float | None
    sinks: float | None
    weights: float
    open: bool
    named: int
    score: float

    @property
    def bound(self) -> float:
        """What the score may grow to, once pairs around it are known."""
        return self.score + 2.0 * (self.sources is None) + 1.5 * (self.sinks is None)


class _Own(NamedTuple):
    """What two groups have in common by themselves, whatever is paired; as in Evidence. name_score: what their names
    add to the score.
    """

    value: float
    agrees: bool
    in_order: bool
    operator: float
    named: int
    name_score: float


class PairScorer:
    """Weighs pairs of groups, given those that are paired. `names` must have learned before."""

    def __init__(self, first: GroupGraph, second: GroupGraph, values: Values, names: Names) -> None:
        self.first, self.second, self.values, self.names = first, second, values, names
        self.pairing = Pairing(first, second)
        self.forth, self.back = self.pairing.forth, self.pairing.back
        self._own: dict[tuple[int, int], _Own] = {}
        self._weighed: dict[tuple[int, int], tuple[Around, Evidence]] = {}

    def possible(self, a: int, b: int) -> bool:
        """Whether the two may be paired: equally many elements of one kind, as far as both were seen."""
        one, other = self.first.prints_of[a], self.second.prints_of[b]
        if not one or not other:
            return self.first.groups[a].weight == self.second.groups[b].weight
        return any(comparable(p, q) for p in one for q in other)

    def weigh(self, a: int, b: int) -> Evidence:
        """Return what speaks for a pair of groups."""
        around, known = self.pairing.around(a, b), self._weighed.get((a, b))
        if known is None or not around.same(known[0]):
            own = self._own_of(a, b)
            sources, weights, is_open = self._sources(a, b, around)
            sinks = _sinks(around)
            before = 0.0 if sources is None else 2 * sources if sources else -1.0
            behind = 0.0 if sinks is None else 1.5 * sinks if sinks else -0.5
            score = own.value + own.operator + before + behind + weights + own.name_score - 0.25 * is_open
            found = Evidence(
                own.value, own.agrees, own.in_order, own.operator, sources, sinks, weights, is_open, own.named, score
            )
            known = self._weighed[a, b] = around, found
        return known[1]

    def _own_of(self, a: int, b: int) -> _Own:
        own = self._own.get((a, b))
        if own is None:
            own = self._own[a, b] = self._by_themselves(a, b)
        return own

    def _by_themselves(self, a: int, b: int) -> _Own:
        one, other = self.first.groups[a], self.second.groups[b]
        folded = self._folds_apart(one, other)
        named, name_score = self.names.weigh(a, b, NAME if folded else NAME | METADATA)
        return _Own(*self._value(a, b), -1.0 if folded else self._operator(one, other), named, name_score)

    def alone(self, a: int, b: int) -> bool:
        """Whether two groups with values that nothing else has belong together: the same operation makes both."""
        if self.first.trivial[a] or self.second.trivial[b]:
            return False
        own = self._own_of(a, b)
        return own.value >= _UNIQUE_VALUE and own.agrees and own.in_order and own.operator >= _SAME_OPERATOR

    def same_operation(self, a: int, b: int) -> bool:
        """Whether two paired groups are made by one operator of inputs that are all paired with one another.

        And of the same parameters.
        """
        one, other = self.first.groups[a], self.second.groups[b]
        if one.node is None or other.node is None:
            return one.node is other.node
        if one.operator != other.operator:
            return False
        mine, theirs = self.first.before[a], self.second.before[b]
        if len(mine) != len(theirs) or {self.forth.get(i) for i in mine} != set(theirs):
            return False
        return len(one.inputs) == len(other.inputs) and all(
            self.values.agree(i, j)
            for i, j in zip(one.inputs, other.inputs, strict=True)
            if i >= 0 and j >= 0 and self.first.trivial[i] and self.second.trivial[j]
        )

    def _value(self, a: int, b: int) -> tuple[float, bool, bool]:
        if not self.first.prints_of[a] or not self.second.prints_of[b]:
            return 0.0, False, False
        apart, within = self.values.apart(a, b)
        floor = 0.02 * within
        lead = math.log10(max(apart.nearest, floor, 1e-9) / max(self.values.best(a, b), floor, 1e-9))
        if apart.in_order <= within:
            return (1.0 if self._little(a) else 4.0) - min(lead, 2.0), lead <= _LEAD, True
        if apart.any_order <= min(within, _SAME_SHAPE if self._same_shape(a, b) else _ANY_ORDER):
            weight = self.first.groups[a].weight and self.second.groups[b].weight
            return (0.5 if self._little(a) else 3.5 if weight else 2.5) - min(lead, 2.0), lead <= _LEAD, False
        if apart.in_order < _KIN:
            return 2.5 * (1 - apart.in_order / _KIN) ** 2 - min(lead, 2.0), False, True
        return (0.0 if apart.any_order < 0.1 else -1.0), False, False

    def _little(self, a: int) -> bool:
        """Whether the values of a group tell little."""
        return all(known.constant for known in self.first.prints_of[a])

    def _same_shape(self, a: int, b: int) -> bool:
        """Whether two groups have members of one shape, whose elements would be in one order if these were equal."""
        shapes = {p.shape for p in self.first.prints_of[a]}
        return any(q.shape in shapes for q in self.second.prints_of[b])

    def _operator(self, one: Group, other: Group) -> float:
        if one.node is None or other.node is None:
            return 0.5 if (one.node is None) == (other.node is None) and one.weight == other.weight else -0.5
        fused = is_fused(one.node.op) != is_fused(other.node.op)  # its end is its counterpart
        if one.operator != other.operator:
            if not may_end(one.operator, other.operator, fused):
                return -0.5
            if fused or self._is_folded(one, other) or self._is_biased(one, other):
                return 0.6
            return 0.0 if self._is_before_bias(one, other) else 0.25
        if fused:
            return -1.0 if self._goes_on(one, other) else 0.35
        if one.slot != other.slot:
            return -1.0
        if self._lacks_bias(self.first, one, other) or self._lacks_bias(self.second, other, one):
            return -0.5
        alike = one.operator not in ELEMENTWISE or len(self.first.before[one.number]) == len(
            self.second.before[other.number]
        )
        return 0.75 if alike else 0.35

    def _folds_apart(self, one: Group, other: Group) -> bool:
        """Whether one of two products is normalised by batch statistics and the other has that in its weights."""
        return one.operator == other.operator and _normalised(self.first, one) != _normalised(self.second, other)

    def _is_folded(self, one: Group, other: Group) -> bool:
        """Whether one of two groups normalises what an operator makes, and the other is such an operator, which has the
        normalisation in its weights."""
        sides = (self.first, one), (self.second, other)
        (side, norm), (there, product) = sides if one.operator == "batchnorm" else sides[::-1]
        before = {side.groups[i].operator for i in side.before[norm.number] if i >= 0}
        return norm.operator == "batchnorm" and product.operator in before and not _normalised(there, product)

    def _is_biased(self, one: Group, other: Group) -> bool:
        """Whether one of two groups adds a weight to a product, and the other is a product that has done so."""
        sides = (self.first, one, other), (self.second, other, one)
        return any(_has_bias(product) and _adds_weight(side, end) for side, end, product in sides)

    def _is_before_bias(self, one: Group, other: Group) -> bool:
        """Whether one of two groups goes on to the bias alone that the other, a product or a norm, has taken in."""
        sides = (self.first, one, other), (self.second, other, one)
        return any(
            _has_bias(product) and len(end.readers) == 1 and _adds_weight(side, side.groups[end.readers[0]])
            for side, end, product in sides
        )

    @staticmethod
    def _lacks_bias(side: GroupGraph, product: Group, other: Group) -> bool:
        """Whether a product's only reader adds a weight to it, which another one has taken in. side: the first's."""
        if product.operator != other.operator or not _has_bias(other) or len(product.inputs) != _WITH_BIAS - 1:
            return False
        return len(product.readers) == 1 and _adds_weight(side, side.groups[product.readers[0]])

    def _goes_on(self, one: Group, other: Group) -> bool:
        """Whether one of two products goes on to what the other, a fused one, has done already: scaling, activation."""
        assert other.node is not None
        sides = (self.first, one), (self.second, other)
        (plain, group), (fused, end) = sides if is_fused(other.node.op) else sides[::-1]
        assert end.node is not None
        readers = [plain.groups[i] for i in group.readers]
        taken = {fused.groups[i].operator for i in end.readers}
        if len(readers) != 1 or readers[0].operator in taken:
            return False
        return fuses(group.operator, readers[0].operator) or activates(end.node.op)

    # Neighbours

    def _sources(self, a: int, b: int, around: Around) -> tuple[float | None, float, bool]:
        (mapped, mine_open), (theirs, theirs_open) = around.mine_before, around.theirs_before
        if not mapped or not theirs:
            return (None if not mapped and not theirs else 0.0 if not (mine_open and theirs_open) else None), 0.0, False
        weights = sum(self._telling(j) for j in mapped.keys() & theirs.keys())
        if self._aligned(self.first.groups[a], self.second.groups[b]):
            weights += 0.25
        return _share(mapped, theirs), min(weights, 1.75), mine_open != theirs_open

    def _telling(self, b: int) -> float:
        group = self.second.groups[b]
        return (
            0.75
            if group.weight and len(group.readers) <= 2 and len(self.first.groups[self.back[b]].readers) <= 2
            else 0.0
        )

    def _aligned(self, one: Group, other: Group) -> bool:
        """Whether a paired input stands at the same place on both sides."""
        return any(i >= 0 and self.forth.get(i) == j for i, j in zip(one.inputs, other.inputs, strict=False))


def _sinks(around: Around) -> float | None:
    mapped, theirs = around.mine_behind[0], around.theirs_behind[0]
    return _share(mapped, theirs) if mapped and theirs else None


def _has_bias(product: Group) -> bool:
    return takes_bias(product.operator) and len(product.inputs) == _WITH_BIAS


def _adds_weight(side: GroupGraph, end: Group) -> bool:
    return end.operator == "add" and any(i >= 0 and side.groups[i].weight for i in end.inputs)


def _normalised(side: GroupGraph, group: Group) -> bool:
    """Whether all that reads a product normalises it by batch statistics."""
    return not side.normalised.isdisjoint(group.members) and folds(group.operator)


def _share(mapped: Mapping[int, int], theirs: Mapping[int, int]) -> float:
    """The share that two sets of groups have in common; less where one is further away than the other."""
    if mapped == theirs:
        return 1.0
    both = mapped.keys() & theirs.keys()
    further = sum(min(abs(mapped[j] - theirs[j]), 4) for j in both)
    return (len(both) - 0.06 * further) / (len(mapped) + len(theirs) - len(both))
