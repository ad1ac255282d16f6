"""The groups that are paired so far, and the paired ones next to any group."""

from collections.abc import Mapping
from typing import NamedTuple

from layerwise._tool.debugtools.align.groups import GroupGraph

_SEARCHED = 32  # groups that are looked through for the next paired one


class Pairing:
    """forth: groups of the first side to those of the second; back: the other way. Change them by `add` and `remove`:
    what was found next to a group is kept until a group on the way there is paired.
    """

    def __init__(self, first: GroupGraph, second: GroupGraph) -> None:
        self.forth: dict[int, int] = {}
        self.back: dict[int, int] = {}
        self._trivial, self._parameters = first.trivial, 0
        self._near = (
            _Near(first, self.forth, False, self.forth),
            _Near(first, self.forth, True, self.forth),
            _Near(second, self.back, False, {}),
            _Near(second, self.back, True, {}),
        )

    def add(self, a: int, b: int) -> None:
        """Pair two groups."""
        self.forth[a], self.back[b] = b, a
        self._parameters += self._trivial[a]
        for near, number in zip(self._near, (a, a, b, b), strict=True):
            near.forget(number)

    def remove(self, a: int) -> None:
        """Take a pair back."""
        del self.back[self.forth.pop(a)]
        for near in self._near:
            near.forget_all()

    def around(self, a: int, b: int) -> "Around":
        """What is paired around a group of each side."""
        mine_before, mine_behind, theirs_before, theirs_behind = self._near
        return Around(mine_before[a], theirs_before[b], mine_behind[a], theirs_behind[b], self._parameters)


Reached = tuple[dict[int, int], bool]
"""Paired groups with the number of steps to each, and whether the search ends elsewhere too."""


class Around(NamedTuple):
    """What `reached` finds from two groups, of the first side by the counterparts. parameters: how many are paired."""

    mine_before: Reached
    theirs_before: Reached
    mine_behind: Reached
    theirs_behind: Reached
    parameters: int

    def same(self, other: "Around") -> bool:
        """Whether nothing has changed since."""
        return (
            self.parameters == other.parameters
            and self.mine_before is other.mine_before
            and self.theirs_before is other.theirs_before
            and self.mine_behind is other.mine_behind
            and self.theirs_behind is other.theirs_behind
        )


class _Near(dict[int, Reached]):
    """What `reached` finds from each group, on one side in one direction, searched when it is asked for.

    told: how a group that is found is called.
    """

    def __init__(self, side: GroupGraph, paired: Mapping[int, int], ahead: bool, told: Mapping[int, int]) -> None:
        super().__init__()
        self._side, self._paired, self._ahead, self._told = side, paired, ahead, told
        self._through: dict[int, list[int]] = {}

    def __missing__(self, start: int) -> Reached:
        found, unknown, passed = _search(self._side, start, self._paired, self._ahead)
        known = self[start] = {self._told.get(i, i): hops for i, hops in found.items()}, unknown
        for number in passed:
            self._through.setdefault(number, []).append(start)
        return known

    def forget(self, number: int) -> None:
        """What was found by looking through a group."""
        for start in self._through.pop(number, ()):
            self.pop(start, None)

    def forget_all(self) -> None:
        self.clear()
        self._through.clear()


def reached(side: GroupGraph, start: int, paired: Mapping[int, int], *, ahead: bool) -> Reached:
    """The paired groups next to one in a direction, looking through others, each with the number of steps to it.

    The second result: whether the search ends elsewhere too.
    """
    found, unknown, _ = _search(side, start, paired, ahead)
    return found, unknown


def _search(
    side: GroupGraph, start: int, paired: Mapping[int, int], ahead: bool
) -> tuple[dict[int, int], bool, list[int]]:
    """The third result: the groups without a pair that were met."""
    table = side.behind if ahead else side.before
    found: dict[int, int] = {}
    passed: list[int] = []
    visited = {start}
    level, hops, unknown = [start], 0, False
    while level and len(visited) <= _SEARCHED:
        hops += 1
        following: list[int] = []
        for at in level:
            for number in table[at]:
                if number in visited:
                    continue
                visited.add(number)
                if number in paired:
                    found[number] = hops
                    continue
                passed.append(number)
                if number < 0 or (not ahead and side.groups[number].node is None):
                    unknown = True
                else:
                    following.append(number)
        level = following
    return found, unknown or bool(level), passed
