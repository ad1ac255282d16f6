"""Effects of many candidates from few runs, as far as a choice needs them.

Squares add, so a group of candidates that are low together tells the sum of theirs, and what a group has beyond one of
its halves is the other's. A group is split as long as a cheaper set could hold any of it: were all that it does the
work of its cheapest member, against the cheapest set of what is known alone. So no set that is cheaper is overlooked,
and what does next to nothing is never looked at one by one.
"""

import math
from collections.abc import Callable, Sequence

from msgspec import Struct

from layerwise._tool.debugtools.search.lens.knapsack import Item, cheapest

Squares = tuple[float, ...]
_CLEAR = 0.25  # of its group's square, below which a difference of two measurements tells little
_OFF = 0.1  # of its group's square, by which such a difference may be off


class Group(Struct, frozen=True):
    """Candidates (positions) with the sum of their squares for each output. told: by a difference, not measured; most:
    what they are at most, where the difference tells little.
    """

    members: tuple[int, ...]
    squares: Squares
    told: bool = False
    most: Squares = ()


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
            least = [Item(each.most or each.squares, min(self._costs[k] for k in each.members)) for each in found]
            wanted = cheapest(least, rest=[-sum(more) for more in zip(*map(_doubt, found), strict=True)])
            large = [found[k] for k in wanted if len(found[k].members) > 1 or found[k].most]
            if not large or self._alone(found) <= sum(least[k].cost for k in wanted):
                return found
            worst = max(large, key=lambda each: max(each.most or each.squares))
            found.remove(worst)
            found += [self._run(worst.members)] if worst.most else self._split(worst)

    def _alone(self, found: Sequence[Group]) -> float:
        """The cost of the cheapest set of candidates that were measured alone; inf if there is none."""
        single = [each for each in found if len(each.members) == 1 and not each.most]
        items = [Item(each.squares, self._costs[each.members[0]]) for each in single]
        rest = [sum(squares) for squares in zip(*(each.squares for each in found if each not in single), strict=True)]
        kept = cheapest(items, rest=rest)
        low = [item.squares for k, item in enumerate(items) if k not in kept]
        holds = all(sum(squares) <= 1 for squares in zip(rest, *low, strict=True))
        return sum(items[k].cost for k in kept) if holds else math.inf

    def _split(self, group: Group) -> list[Group]:
        middle = len(group.members) // 2
        first = self._run(group.members[:middle])
        parts = list(zip(group.squares, first.squares, strict=True))
        rest = group.members[middle:]
        if not all(math.isfinite(whole) for whole, _ in parts):
            return [first, self._run(rest)]
        left = tuple(max(whole - part, 0.0) for whole, part in parts)
        clear = all(whole - part > _CLEAR * whole for whole, part in parts if whole)
        most = () if clear else tuple(more + _OFF * whole for more, (whole, _) in zip(left, parts, strict=True))
        return [first, Group(rest, left, told=True, most=most)]

    def _run(self, members: tuple[int, ...]) -> Group:
        self.runs += 1
        return Group(members, self._measure(members))


def _doubt(group: Group) -> list[float]:
    """What a group may do beyond its squares."""
    parts = zip(group.most or group.squares, group.squares, strict=True)
    return [0.0 if more == square else more - square for more, square in parts]
