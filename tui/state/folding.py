"""Equal blocks of nodes, folded to one row each."""

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from layerwise._tool.surgery.graph.repeats import Repeat

Numbers = NDArray[np.int32]


@dataclass(frozen=True)
class Head:
    """A row that stands for nodes: those of `count` equal blocks of `size` nodes, or of one of them (count 1).

    first: place of its first node in the order. number: which of the blocks it is, -1 for all of them. opened: whether
    they follow below.
    """

    first: int
    size: int
    count: int
    number: int
    opened: bool


class Folding:
    """What is folded, over an order of nodes. A block is known by its first node, so what is open outlives a change."""

    def __init__(self) -> None:
        self.on = False
        self._open: set[tuple[int, bool]] = set()
        self._order: Numbers = np.zeros(0, np.int32)
        self._repeats: list[Repeat] = []
        self._rows: Numbers = self._order
        self._row_of: Numbers = self._order
        self._heads: dict[int, Head] = {}

    def lay(self, order: Numbers, repeats: "list[Repeat]") -> None:
        """Take other nodes."""
        self._order, self._repeats = order, repeats
        self._lay()

    def __len__(self) -> int:
        return len(self._rows)

    def place_at(self, row: int) -> int:
        """The place of the row's node, or of the first of those that it stands for."""
        return int(self._rows[row])

    def head_at(self, row: int) -> Head | None:
        """What the row stands for, None for a node's own row."""
        return self._heads.get(row)

    def row_of(self, place: int) -> int:
        """The row of a node, or of the head that it is folded into."""
        return int(self._row_of[place])

    def places_at(self, row: int) -> Numbers:
        """The places of all nodes that the row stands for."""
        head = self._heads.get(row)
        first = self.place_at(row)
        return np.arange(first, first + (head.size * head.count if head else 1), dtype=np.int32)

    def turn(self, row: int) -> int:
        """Open or fold the blocks of a head, or fold the block that a node is in; returns the row to go to."""
        head = self._heads.get(row) or self._around(row)
        if head is None:
            return row
        key = self._key(head)
        self._open ^= {key}
        self._lay()
        return next(at for at, other in self._heads.items() if self._key(other) == key)

    def reveal(self, place: int) -> None:
        """Open what the node at `place` is folded into."""
        for _ in range(2):
            head = self._heads.get(self.row_of(place))
            if head is not None and not head.opened:
                self._open.add(self._key(head))
                self._lay()

    @property
    def opened(self) -> list[list[int]]:
        """The blocks that were opened, as JSON has them: the first node, and whether all repeats of it are meant."""
        return [[node, whole] for node, whole in sorted(self._open)]

    def open_again(self, opened: object) -> None:
        """Open what `opened` told in an earlier session, before nodes are laid; nothing of anything else."""
        with suppress(msgspec.ValidationError):
            self._open |= {*msgspec.convert(opened, list[tuple[int, bool]])}

    def key_at(self, row: int) -> list[list[int]]:
        """The blocks that a row stands for with their nodes below it; nothing for any other row."""
        head = self._heads.get(row)
        return [[*self._key(head)]] if head is not None and head.opened else []

    def _around(self, row: int) -> Head | None:
        above = [at for at, head in self._heads.items() if at < row and head.opened]
        if not above:
            return None
        head = self._heads[max(above)]
        inside = head.first <= self.place_at(row) < head.first + head.size * head.count
        return head if inside else None

    def _key(self, head: Head) -> tuple[int, bool]:
        return int(self._order[head.first]), head.number < 0

    def _lay(self) -> None:
        parts: list[Numbers] = []
        self._heads, row, at = {}, 0, 0
        for repeat in self._repeats:
            parts.append(np.arange(at, repeat.start, dtype=np.int32))
            row += repeat.start - at
            row = self._lay_repeat(repeat, parts, row)
            at = repeat.end
        parts.append(np.arange(at, len(self._order), dtype=np.int32))
        self._rows = np.concatenate(parts)
        everywhere = np.arange(len(self._order), dtype=np.int32)
        self._row_of = (np.searchsorted(self._rows, everywhere, "right") - 1).astype(np.int32)

    def _lay_repeat(self, repeat: "Repeat", parts: list[Numbers], row: int) -> int:
        row = self._head(Head(repeat.start, repeat.period, repeat.count, -1, False), parts, row)
        if not self._heads[row - 1].opened:
            return row
        for number in range(repeat.count):
            first = repeat.start + number * repeat.period
            row = self._head(Head(first, repeat.period, 1, number, False), parts, row)
            if self._heads[row - 1].opened:
                parts.append(np.arange(first, first + repeat.period, dtype=np.int32))
                row += repeat.period
        return row

    def _head(self, head: Head, parts: list[Numbers], row: int) -> int:
        opened = self._key(head) in self._open
        self._heads[row] = Head(head.first, head.size, head.count, head.number, opened)
        parts.append(np.array([head.first], np.int32))
        return row + 1
