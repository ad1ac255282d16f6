"""The groups that are paired so far, and the paired ones next to any group."""

from collections.abc import Mapping

from layerwise._tool.debugtools.align.groups import GroupGraph

_SEARCHED = 32  # groups that are looked through for the next paired one


class Pairing:
    """forth: groups of the first side to those of the second; back: the other way. Change them by `add` and `remove`:
    what was found next to a group is kept until a group on the way there is paired.
    """

    def __init__(self, first: GroupGraph, second: GroupGraph) -> None:
        self.forth: dict[int, int] = {}
        self.back: dict[int, int] = {}
        self._near = {
            (place, ahead): _Near(side, paired, ahead)
            for place, (side, paired) in enumerate(((first, self.forth), (second, self.back)))
            for ahead in (False, True)
        }

    def add(self, a: int, b: int) -> None:
        """Pair two groups."""
        self.forth[a], self.back[b] = b, a
        for (place, _), near in self._near.items():
            near.forget((a, b)[place])

    def remove(self, a: int) -> None:
        """Take a pair back."""
        del self.back[self.forth.pop(a)]
        for near in self._near.values():
            near.forget_all()

    def of_first(self, a: int, *, ahead: bool) -> tuple[dict[int, int], bool]:
        """As `reached` of a group of the first side, but by the counterparts of what is found."""
        found, unknown = self._near[0, ahead].of(a)
        return {self.forth[i]: hops for i, hops in found.items()}, unknown

    def of_second(self, b: int, *, ahead: bool) -> tuple[dict[int, int], bool]:
        """As `reached` of a group of the second side."""
        return self._near[1, ahead].of(b)


class _Near:
    """What `reached` finds on one side in one direction."""

    def __init__(self, side: GroupGraph, paired: Mapping[int, int], ahead: bool) -> None:
        self._side, self._paired, self._ahead = side, paired, ahead
        self._found: dict[int, tuple[dict[int, int], bool]] = {}
        self._through: dict[int, list[int]] = {}

    def of(self, start: int) -> tuple[dict[int, int], bool]:
        known = self._found.get(start)
        if known is None:
            found, unknown, passed = _search(self._side, start, self._paired, self._ahead)
            known = self._found[start] = found, unknown
            for number in passed:
                self._through.setdefault(number, []).append(start)
        return known

    def forget(self, number: int) -> None:
        """What was found by looking through a group."""
        for start in self._through.pop(number, ()):
            self._found.pop(start, None)

    def forget_all(self) -> None:
        self._found.clear()
        self._through.clear()


def reached(side: GroupGraph, start: int, paired: Mapping[int, int], *, ahead: bool) -> tuple[dict[int, int], bool]:
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
