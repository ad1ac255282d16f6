"""Two graphs side by side: which node stands beside which, with long equal stretches left out until they are opened."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from layerwise._tool.surgery.graph import GraphIndex

CONTEXT = 2


@dataclass(frozen=True)
class Pair:
    """A node of each side, -1 for none. sign: `-` only left, `+` only right, `~` they differ, else a space."""

    left: int
    right: int
    sign: str


@dataclass(frozen=True)
class Sides:
    """Two graphs and their nodes in one order. names: what the sides are called."""

    names: tuple[str, str]
    left: "GraphIndex"
    right: "GraphIndex"
    pairs: list[Pair]

    def count(self, sign: str) -> int:
        """How many rows have that sign."""
        return sum(pair.sign == sign for pair in self.pairs)


@dataclass(frozen=True)
class Gap:
    """Equal pairs that are left out: `count` from place `start` on."""

    start: int
    count: int


class SideRows:
    """The rows of two sides: what differs, a little around it, and gaps."""

    def __init__(self, sides: Sides) -> None:
        self.sides = sides
        self._opened: set[int] = set()
        self.rows: list[Pair | Gap] = []
        self._lay()

    def open(self, row: int) -> bool:
        """Show what a gap leaves out; false where the row is none."""
        gap = self.rows[row] if row < len(self.rows) else None
        if not isinstance(gap, Gap):
            return False
        self._opened.add(gap.start)
        self._lay()
        return True

    def next(self, row: int, step: int) -> int | None:
        """The next row that begins a difference, after or before `row`; None if there is none."""
        signs = [isinstance(item, Pair) and item.sign != " " for item in self.rows]
        starts = [at for at, differs in enumerate(signs) if differs and not (at and signs[at - 1])]
        ahead = [at for at in starts if (at - row) * step > 0]
        return (min(ahead) if step > 0 else max(ahead)) if ahead else None

    def _lay(self) -> None:
        pairs, near = self.sides.pairs, -1
        shown = [False] * len(pairs)
        for at, pair in enumerate(pairs):
            if pair.sign != " ":
                first = max(at - CONTEXT, near + 1)
                near = min(at + CONTEXT, len(pairs) - 1)
                shown[first : near + 1] = [True] * (near + 1 - first)
        self.rows, at = [], 0
        while at < len(pairs):
            end = at
            while end < len(pairs) and not shown[end]:
                end += 1
            if end - at > 1 and at not in self._opened:
                self.rows.append(Gap(at, end - at))
                at = end
            else:
                end = max(end, at + 1)
                self.rows += pairs[at:end]
                at = end
