"""Pairs groups of two sides, best evidence first; each pair is evidence for those next to it."""

import heapq
from collections.abc import Iterable

from layerwise._tool.debugtools.align.candidates import Values
from layerwise._tool.debugtools.align.evidence import Judge
from layerwise._tool.debugtools.align.groups import Side
from layerwise._tool.debugtools.align.names import Names

_SURE, _GUESS = 2.0, 0.9
_MARGIN = 0.2
_PAIRS = 4096  # neighbours of one pair that are looked at
_AHEAD = 24


class Matcher:
    """ties: groups of the first side whose counterpart was chosen among equals by the order alone."""

    def __init__(self, first: Side, second: Side) -> None:
        self.first, self.second = first, second
        self.values = Values(first, second)
        self.names = Names(first, second)
        self.judge = Judge(first, second, self.values, self.names)
        self.forth, self.back = self.judge.forth, self.judge.back
        self.ties: set[int] = set()
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
                self._accept(a, b)
        near = [*self.values.near, *self.names.near, *self._ends()]
        for a, b in dict.fromkeys(near):
            self._propose(a, b)
        self._settle(_SURE)
        for _ in range(8):
            before = len(self.forth)
            self._look_ahead()
            self._settle(_GUESS)
            if len(self.forth) == before:
                break

    def _learn(self) -> None:
        """Names whose groups' values agree elsewhere instead are not to be trusted."""
        strong: dict[int, set[int]] = {}
        for a, b in self.values.near:
            if not self.first.prints_of[a][0].constant:
                apart, within = self.values.apart(a, b)
                if apart.in_order <= within:
                    strong.setdefault(a, set()).add(b)
        verdicts = {(a, b): b in strong[a] for a, b in self.names.near if a in strong}
        self.names.learn(verdicts)

    def _ends(self) -> list[tuple[int, int]]:
        """Inputs and outputs at the same places."""
        found = []
        for mine, theirs in (
            (self.first.graph.inputs, self.second.graph.inputs),
            (self.first.graph.outputs, self.second.graph.outputs),
        ):
            if len(mine) == len(theirs):
                found += [
                    (self.first.of[x], self.second.of[y])
                    for x, y in zip(mine, theirs, strict=True)
                    if x in self.first.of and y in self.second.of
                ]
        return found

    # Proposals

    def _propose(self, a: int, b: int) -> None:
        if a in self.forth or b in self.back or not self.judge.possible(a, b):
            return
        score = self.judge.weigh(a, b).score
        if score > self._of_first.get(a, {}).get(b, -99.0) + 1e-9:
            self._of_first.setdefault(a, {})[b] = score
            self._of_second.setdefault(b, {})[a] = score
            heapq.heappush(self._heap, (-score, a, b))

    def _settle(self, least: float) -> None:
        """Accept proposals of at least that score, the best first; of equals those that the order decides come last."""
        if least < _SURE:
            for a, found in list(self._of_first.items()):
                if a not in self.forth:
                    for b in list(found):
                        if b not in self.back:
                            self._refresh(a, b)
        waiting: list[tuple[float, float, int, int]] = []
        while self._heap or waiting:
            if self._heap:
                negative, a, b = heapq.heappop(self._heap)
            else:
                negative, _, a, b = heapq.heappop(waiting)
            if a in self.forth or b in self.back:
                continue
            now = self.judge.weigh(a, b).score
            if abs(now - self._of_first[a][b]) > 1e-9 or now != -negative:
                if now != self._of_first[a][b] or now > -negative:
                    self._note(a, b, now)
                    heapq.heappush(self._heap, (-now, a, b))
                continue
            if now < least:
                continue
            rival = self._rival(a, b, now)
            if rival and (self._heap or (negative, a, b) not in self._seen):
                self._seen.add((negative, a, b))
                heapq.heappush(waiting, (negative, self._strain(a, b), a, b))
                continue
            if rival:
                self.ties.add(a)
            self._accept(a, b)

    def _note(self, a: int, b: int, score: float) -> None:
        self._of_first[a][b] = self._of_second[b][a] = score

    def _refresh(self, a: int, b: int) -> None:
        score = self.judge.weigh(a, b).score
        self._note(a, b, score)
        heapq.heappush(self._heap, (-score, a, b))

    def _rival(self, a: int, b: int, score: float) -> bool:
        """Whether another free group fits one of the two about as well."""
        for other, known in self._of_first[a].items():
            if (
                other != b
                and other not in self.back
                and known > score - _MARGIN
                and self._again(a, other) > score - _MARGIN
            ):
                return True
        for other, known in self._of_second[b].items():
            if (
                other != a
                and other not in self.forth
                and known > score - _MARGIN
                and self._again(other, b) > score - _MARGIN
            ):
                return True
        return False

    def _again(self, a: int, b: int) -> float:
        score = self.judge.weigh(a, b).score
        return score

    def _strain(self, a: int, b: int) -> float:
        """How far a pair lies from where the paired groups around it would have it, relative to the graph."""
        return abs(a / len(self.first.groups) - b / len(self.second.groups))

    def _accept(self, a: int, b: int) -> None:
        self.forth[a], self.back[b] = b, a
        if self.first.trivial[a]:
            return
        one, other = self.first.groups[a], self.second.groups[b]
        for mine, theirs in ((one.readers, other.readers), (one.inputs, other.inputs)):
            free = [x for x in mine if x >= 0 and x not in self.forth]
            there = [y for y in theirs if y >= 0 and y not in self.back]
            if len(free) * len(there) <= _PAIRS:
                for x in free:
                    for y in there:
                        self._propose(x, y)
        for near in (one.inputs, one.readers):
            for x in near:
                for y in list(self._of_first.get(x, ())) if x >= 0 and x not in self.forth else ():
                    self._propose(x, y)

    def _look_ahead(self) -> None:
        """Propose pairs that lie some unpaired operations behind, or before, the same pair."""
        for a, b in list(self.forth.items()):
            if self.first.trivial[a]:
                continue
            for ahead in (True, False):
                mine = self._cone(self.first, a, self.forth, ahead)
                theirs = self._cone(self.second, b, self.back, ahead) if mine else []
                for x in mine:
                    for y in theirs:
                        if y not in self._of_first.get(x, ()):
                            self._propose(x, y)

    @staticmethod
    def _cone(side: Side, start: int, paired: dict[int, int], ahead: bool) -> list[int]:
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
