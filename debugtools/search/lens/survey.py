"""Effects of many candidates from few runs, as far as a choice needs them.

Squares add, so a group of candidates that are low together tells the sum of theirs, and what a group has beyond one of
its halves is the other's. A group is split as long as the cheapest set to keep would hold any of it, were all that it
does the work of its cheapest member. So no set that is cheaper is overlooked, and what does next to nothing is never
looked at one by one.
"""

import math
from collections.abc import Callable, Sequence

from msgspec import Struct

from layerwise._tool.debugtools.search.lens.choose import Item, cheapest

Squares = tuple[float, ...]
_CLEAR = 0.25  # of its group's square, below which a difference of two measurements tells nothing


class Group(Struct, frozen=True):
    """Candidates (positions) with the sum of their squares for each output. told: by a difference, not measured."""

    members: tuple[int, ...]
    squares: Squares
    told: bool = False


class Survey:
    """costs: of keeping each candidate. measure: the squares of candidates that are low together, over the bound's."""

    def __init__(self, costs: Sequence[float], measure: Callable[[Sequence[int]], Squares]) -> None:
        self._costs, self._measure = costs, measure
        self.runs = 0

    def groups(self) -> list[Group]:
        """All candidates in groups: alone what may have to be kept."""
        every = tuple(sorted(range(len(self._costs)), key=lambda k: (self._costs[k], k)))
        found = [self._run(every)]
        while True:
            wanted = cheapest([Item(each.squares, min(map(self._costs.__getitem__, each.members))) for each in found])
            large = [found[k] for k in wanted if len(found[k].members) > 1]
            if not large:
                return found
            worst = max(large, key=lambda each: max(each.squares))
            found.remove(worst)
            found += self._split(worst)

    def _split(self, group: Group) -> list[Group]:
        middle = len(group.members) // 2
        first = self._run(group.members[:middle])
        parts = list(zip(group.squares, first.squares, strict=True))
        left = tuple(whole - part for whole, part in parts)
        clear = all(math.isfinite(whole) and whole - part > _CLEAR * whole for whole, part in parts if whole)
        rest = group.members[middle:]
        return [first, Group(rest, left, told=True) if clear else self._run(rest)]

    def _run(self, members: tuple[int, ...]) -> Group:
        self.runs += 1
        return Group(members, self._measure(members))
