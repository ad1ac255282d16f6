"""What speaks for a pair of groups: values, names, metadata, operators, what is paired before and behind."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from layerwise._tool.debugtools.align.candidates import Values
from layerwise._tool.debugtools.align.distance import FAR
from layerwise._tool.debugtools.align.groups import Group, Side
from layerwise._tool.debugtools.align.names import Names

_SEARCHED = 40  # groups that are looked through for the next paired one
_KIN = 0.5  # in-order distance below which two tensors have much in common


class Evidence(NamedTuple):
    """Parts of a score.

    value: from -1 (nothing in common) to 4. agrees: within tolerance. in_order: nearly equal in flat order. sources: the
    share of what the two are computed from, and sinks: of what is computed from them, that is paired with one another;
    None where nothing is paired. weights: for paired weights among the sources. open: one of them is computed from more
    that is not paired. named: 1 the same name, 2 the same metadata, 3 both.
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
    name_score: float

    @property
    def score(self) -> float:
        """All of it; above 2 it is rather sure, below 1 a guess."""
        before = 0.0 if self.sources is None else 2 * self.sources if self.sources else -1.0
        behind = 0.0 if self.sinks is None else 1.5 * self.sinks if self.sinks else -0.5
        return self.value + self.operator + before + behind + self.weights + self.name_score - 0.25 * self.open


class Judge:
    """Weighs pairs of groups, given those that are paired (first -> second, and back)."""

    def __init__(self, first: Side, second: Side, values: Values, names: Names) -> None:
        self.first, self.second, self.values, self.names = first, second, values, names
        self.forth: dict[int, int] = {}
        self.back: dict[int, int] = {}

    def possible(self, a: int, b: int) -> bool:
        """Whether the two may be paired: equally many elements of one kind, as far as both were seen."""
        one, other = self.first.prints_of[a], self.second.prints_of[b]
        if not one or not other:
            return self.first.groups[a].weight == self.second.groups[b].weight
        return self.values.apart(a, b)[0].any_order < FAR or any(
            p.kind == q.kind and p.size == q.size for p in one for q in other
        )

    def weigh(self, a: int, b: int) -> Evidence:
        """Return what speaks for a pair of groups."""
        one, other = self.first.groups[a], self.second.groups[b]
        value, agrees, in_order = self._value(a, b)
        sources, weights, is_open = self._sources(one, other)
        named, name_score = self.names.weigh(a, b)
        return Evidence(
            value, agrees, in_order, self._operator(one, other), sources, self._sinks(one, other), weights, is_open,
            named, name_score,
        )  # fmt: skip

    def _value(self, a: int, b: int) -> tuple[float, bool, bool]:
        if not self.first.prints_of[a] or not self.second.prints_of[b]:
            return 0.0, False, False
        apart, within = self.values.apart(a, b)
        little = all(p.constant for p in self.first.prints_of[a])
        if apart.in_order <= within:
            return (1.0 if little else 4.0 - 0.5 * (apart.in_order / within if within else 0.0)), True, True
        if apart.any_order <= min(within, 0.1):
            return (0.5 if little else 2.5), True, False
        if apart.in_order < _KIN:
            return 2.5 * (1 - apart.in_order / _KIN) ** 2, False, True
        return (0.0 if apart.any_order < 0.1 else -1.0), False, False

    @staticmethod
    def _operator(one: Group, other: Group) -> float:
        if one.node is None or other.node is None:
            return 0.5 if (one.node is None) == (other.node is None) and one.weight == other.weight else -0.5
        if one.operator != other.operator:
            return -0.5
        return 1.0 if one.slot == other.slot else -1.0

    # Neighbours

    def _sources(self, one: Group, other: Group) -> tuple[float | None, float, bool]:
        mine, mine_open = reached(self.first, one.number, self.forth, _before)
        theirs, theirs_open = reached(self.second, other.number, self.back, _before)
        mapped = {self.forth[i] for i in mine}
        both = mapped & theirs
        weights = sum(self._telling(j) for j in both)
        if self._aligned(one, other):
            weights += 0.25
        if not mapped or not theirs:
            return (None if not mapped and not theirs else 0.0 if not (mine_open and theirs_open) else None), 0.0, False
        return len(both) / len(mapped | theirs), min(weights, 1.75), mine_open != theirs_open

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

    def _sinks(self, one: Group, other: Group) -> float | None:
        mine, _ = reached(self.first, one.number, self.forth, _behind)
        theirs, _ = reached(self.second, other.number, self.back, _behind)
        mapped = {self.forth[i] for i in mine}
        if not mapped or not theirs:
            return None
        return len(mapped & theirs) / len(mapped | theirs)


def _before(side: Side, number: int) -> list[int]:
    return side.groups[number].inputs


def _behind(side: Side, number: int) -> list[int]:
    return side.groups[number].readers


def reached(
    side: Side, start: int, paired: Mapping[int, int], step: Callable[[Side, int], list[int]]
) -> tuple[set[int], bool]:
    """The paired groups next to one in a direction, looking through others; and whether it ends at one without a pair."""
    found: set[int] = set()
    visited = {start}
    waiting = [start]
    unknown = False
    while waiting and len(visited) <= _SEARCHED:
        for number in step(side, waiting.pop()):
            if number in visited:
                continue
            visited.add(number)
            if number < 0:
                unknown = True
            elif number in paired:
                if not side.trivial[number]:
                    found.add(number)
            elif not side.trivial[number]:
                if step is _before and side.groups[number].node is None:
                    unknown = True
                else:
                    waiting.append(number)
    return found, unknown or bool(waiting)
