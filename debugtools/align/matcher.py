"""Pairs groups of two sides, best evidence first; each pair is evidence for those next to it."""

import heapq
from collections.abc import Iterable

from layerwise._tool.debugtools.align.candidates import Values
from layerwise._tool.debugtools.align.evidence import Evidence, PairScorer
from layerwise._tool.debugtools.align.groups import GroupGraph
from layerwise._tool.debugtools.align.names import Names
from layerwise._tool.debugtools.align.parameters import pair_parameters
from layerwise._tool.debugtools.align.revision import withdraw

_STRONG, _SURE, _GUESS = 3.0, 2.0, 0.9
_ROUNDS = 8
_MARGIN = 0.2
_TELLING = 2.0  # a value that may yet outweigh what is known around another pair
_PAIRS = 4096  # neighbours of one pair that are looked at
_AHEAD = 24
_UNPROPOSED = -99.0  # the score of what was not proposed
_STALE = 2.5  # by how much a score may have grown unnoticed


class Matcher:
    """ties: groups of the first side whose counterpart was chosen among equals by the order alone.
    placed: those that were paired by where they are read."""

    def __init__(self, first: GroupGraph, second: GroupGraph) -> None:
        self.first, self.second = first, second
        self.values = Values(first, second)
        self.names = Names(first, second)
        self.judge = PairScorer(first, second, self.values, self.names)
        self.forth, self.back = self.judge.forth, self.judge.back
        self.ties: set[int] = set()
        self.placed: set[int] = set()
        self._heap: list[tuple[float, int, int]] = []
        self._of_first: dict[int, dict[int, float]] = {}
        self._of_second: dict[int, dict[int, float]] = {}
        self._seen: set[tuple[float, int, int]] = set()

    def run(self, given: Iterable[tuple[str, str]] = ()) -> None:
        """Find all pairs. given: tensors whose pairs are known; names that are not there are passed over."""
        self._learn()
        for x, y in given:
            a, b = self.first.of.get(x), self.second.of.get(y)
            if a is not None and b is not None and a not in self.forth and b not in self.back:
                self._pair(a, b)
        self._pair_alone()
        weights = [pair for pair in self.values.near if self._are_weights(*pair)]
        self._propose_all(weights)
        self._settle(_STRONG, spread=False)
        self._propose_all([*self.values.near, *self.names.near, *self._ends()])
        for a, b in list(self.forth.items()):
            self._spread(a, b)
        self._settle(_SURE)
        for _ in range(_ROUNDS):
            before = len(self.forth)
            self._look_ahead()
            self._settle(_GUESS)
            if len(self.forth) == before:
                break
        withdraw(self.judge)
        self.placed = pair_parameters(self.first, self.second, self.values, self.judge.pairing)

    def _pair_alone(self) -> None:
        """Pair what agrees in value with nothing else in either graph and is made by the same operation."""
        agreeing: tuple[dict[int, int], dict[int, int]] = ({}, {})
        pairs = self.values.agreeing
        for pair in pairs:
            for known, number in zip(agreeing, pair, strict=True):
                known[number] = known.get(number, 0) + 1
        for a, b in pairs:
            free = a not in self.forth and b not in self.back
            if free and agreeing[0][a] == agreeing[1][b] == 1 and self.judge.alone(a, b):
                self._pair(a, b)

    def _are_weights(self, a: int, b: int) -> bool:
        return self.first.groups[a].weight and self.second.groups[b].weight

    def _learn(self) -> None:
        """Names whose groups' values agree elsewhere instead are not to be trusted."""
        strong: dict[int, set[int]] = {}
        named = {a for a, _ in self.names.near}
        for a, b in self.values.near:
            if a in named and not self.first.prints_of[a][0].constant:
                apart, within = self.values.apart(a, b)
                if apart.in_order <= within:
                    strong.setdefault(a, set()).add(b)
        verdicts = {(a, b): b in strong[a] for a, b in self.names.near if a in strong}
        self.names.learn(verdicts)

    def _ends(self) -> list[tuple[int, int]]:
        """Inputs and outputs at the same places."""
        found = []
        one, other = self.first, self.second
        for mine, theirs in ((one.graph.inputs, other.graph.inputs), (one.graph.outputs, other.graph.outputs)):
            if len(mine) == len(theirs):
                places = zip(mine, theirs, strict=True)
                found += [(one.of[x], other.of[y]) for x, y in places if x in one.of and y in other.of]
        return found

    # Proposals

    def _propose_all(self, pairs: Iterable[tuple[int, int]]) -> None:
        for a, b in dict.fromkeys(pairs):
            self._propose(a, b)

    def _propose(self, a: int, b: int) -> None:
        if a in self.forth or b in self.back or self.first.trivial[a] or self.second.trivial[b]:
            return
        known = self._of_first.get(a, {}).get(b, _UNPROPOSED)
        if known == _UNPROPOSED and not self.judge.possible(a, b):
            return
        score = self.judge.weigh(a, b).score
        if score > known + 1e-9:
            self._of_first.setdefault(a, {})[b] = score
            self._of_second.setdefault(b, {})[a] = score
            heapq.heappush(self._heap, (-score, a, b))

    def _settle(self, least: float, spread: bool = True) -> None:
        """Accept proposals of at least that score, the best first; of equals those that the order decides come last.

        spread: each pair proposes its neighbours; else those that have rivals are left.
        """
        if least < _SURE:
            self._refresh()
        waiting: list[tuple[float, float, int, int]] = []
        while self._heap or waiting:
            if self._heap:
                negative, a, b = heapq.heappop(self._heap)
            else:
                negative, _, a, b = heapq.heappop(waiting)
            if a in self.forth or b in self.back:
                continue
            mine = self._current(negative, a, b)
            if mine is None or mine.score < least:
                continue
            equal, later, better = self._rivals(a, b, mine)
            if better:
                heapq.heappush(self._heap, (negative, a, b))
            elif equal and not spread:
                continue
            elif (equal or later or self._blind(a, b, mine)) and (self._heap or (negative, a, b) not in self._seen):
                self._seen.add((negative, a, b))
                heapq.heappush(waiting, (negative, self._strain(a, b), a, b))
            else:
                if equal:
                    self.ties.add(a)
                self._pair(a, b)
                if spread:
                    self._spread(a, b)

    def _current(self, negative: float, a: int, b: int) -> Evidence | None:
        """What speaks for a proposal, None if its score has changed: then it is proposed anew."""
        mine = self.judge.weigh(a, b)
        now = mine.score
        if abs(now - self._of_first[a][b]) <= 1e-9 and now == -negative:
            return mine
        if now != self._of_first[a][b] or now > -negative:
            self._note(a, b, now)
            heapq.heappush(self._heap, (-now, a, b))
        return None

    def _refresh(self) -> None:
        """Propose again whatever is free."""
        for a, found in list(self._of_first.items()):
            for b in [] if a in self.forth else list(found):
                if b not in self.back:
                    score = self.judge.weigh(a, b).score
                    self._note(a, b, score)
                    heapq.heappush(self._heap, (-score, a, b))

    def _note(self, a: int, b: int, score: float) -> None:
        self._of_first[a][b] = self._of_second[b][a] = score

    def _rivals(self, a: int, b: int, mine: Evidence) -> tuple[bool, bool, bool]:
        """Whether other free groups fit one of the two about as well; may come to do so; fit better by now."""
        equal = later = better = False
        others = [(a, other) for other in self._of_first[a] if other != b and other not in self.back]
        others += [(other, b) for other in self._of_second[b] if other != a and other not in self.forth]
        for pair in others:
            known = self._of_first[pair[0]][pair[1]]
            if known <= mine.score - _STALE:
                continue
            now = self.judge.weigh(*pair)
            if abs(now.score - known) > 1e-9:
                self._note(*pair, now.score)
                heapq.heappush(self._heap, (-now.score, *pair))
                better |= now.score > mine.score
            equal |= now.score > mine.score - _MARGIN
            later |= now.value >= max(mine.value, _TELLING) and now.bound > mine.score
        return equal, later, better

    def _blind(self, a: int, b: int, mine: Evidence) -> bool:
        """Whether neither values nor operators speak for two groups: nobody ran the models."""
        return mine.operator < 0 and not (self.first.prints_of[a] and self.second.prints_of[b])

    def _strain(self, a: int, b: int) -> float:
        """How far apart two groups lie in the order of their graphs."""
        return abs(a / len(self.first.groups) - b / len(self.second.groups))

    def _pair(self, a: int, b: int) -> None:
        self.judge.pairing.add(a, b)

    def _spread(self, a: int, b: int) -> None:
        """Propose the neighbours of a pair."""
        one, other = self.first.groups[a], self.second.groups[b]
        for mine, theirs in ((one.readers, other.readers), (one.inputs, other.inputs)):
            free = [(i, x) for i, x in enumerate(mine) if x >= 0 and x not in self.forth]
            there = [(j, y) for j, y in enumerate(theirs) if y >= 0 and y not in self.back]
            if len(free) * len(there) <= _PAIRS:
                for i, x in free:
                    for j, y in there:
                        if i == j or len(mine) != len(theirs) or not self._unseen_weights(x, y):
                            self._propose(x, y)
        for near in (one.inputs, one.readers):
            for x in near:
                for y in list(self._of_first.get(x, ())) if x >= 0 and x not in self.forth else ():
                    self._propose(x, y)

    def _unseen_weights(self, a: int, b: int) -> bool:
        """Whether nothing but where they are read tells of two weights."""
        return self._are_weights(a, b) and not (self.first.prints_of[a] or self.second.prints_of[b])

    def _look_ahead(self) -> None:
        """Propose pairs that lie some unpaired operations behind, or before, the same pair."""
        for a, b in list(self.forth.items()):
            for ahead in (True, False):
                mine = self._cone(self.first, a, self.forth, ahead)
                theirs = self._cone(self.second, b, self.back, ahead) if mine else []
                for x in mine:
                    for y in theirs:
                        if y not in self._of_first.get(x, ()):
                            self._propose(x, y)

    @staticmethod
    def _cone(side: GroupGraph, start: int, paired: dict[int, int], ahead: bool) -> list[int]:
        found: list[int] = []
        waiting, visited = [start], {start}
        while waiting and len(found) < _AHEAD:
            group = side.groups[waiting.pop(0)]
            for number in group.readers if ahead else group.inputs:
                if number >= 0 and number not in visited and number not in paired and not side.trivial[number]:
                    visited.add(number)
                    found.append(number)
                    waiting.append(number)
        return found
