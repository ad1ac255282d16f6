"""What the Graph screen shows: which nodes, in which rows, equal blocks folded, and where the user has been."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from layerwise._tool.surgery.graph import GraphIndex
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


class NodeRows:
    """Rows of the list: all nodes, with equal blocks folded if wanted, or only the matches of the filter.

    matches: the nodes that the query finds, in the order of rows; None without a query. narrowed: rows are the matches
    only.
    """

    def __init__(self, index: "GraphIndex | None" = None) -> None:
        self.query = ""
        self.matches: Numbers | None = None
        self.narrowed = False
        self._folding = Folding()
        self.index: GraphIndex | None = None
        self._order: Numbers = np.zeros(0, np.int32)
        self._place: Numbers = np.zeros(0, np.int32)
        if index is not None:
            self.take(index)

    def take(self, index: "GraphIndex") -> None:
        """Show another graph, searched and folded as before."""
        self.index = index
        self._order = index.order
        self._place = np.full(index.n_nodes, -1, np.int32)
        self._place[self._order] = np.arange(len(self._order), dtype=np.int32)
        narrowed = self.narrowed
        self.search(self.query)
        self.narrowed = self.narrowed and narrowed
        self._folding.lay(self._order, index.repeats() if self._folding.on else [])

    def __len__(self) -> int:
        if self.index is None:
            return 0
        if self.narrowed and self.matches is not None:
            return len(self.matches)
        return len(self._folding) if self.folded else len(self._order)

    # ── folding ──

    @property
    def folded(self) -> bool:
        """Whether equal blocks are folded in the rows shown now."""
        return self._folding.on and not self.narrowed

    @property
    def folding(self) -> bool:
        """Whether equal blocks are folded where all nodes are shown."""
        return self._folding.on

    def fold(self, on: bool) -> int:
        """Fold equal blocks, or show every node; returns how many repeats there are."""
        self._folding.on = on
        repeats = self.index.repeats() if on and self.index is not None else []
        if self.index is not None:
            self._folding.lay(self._order, repeats)
        return len(repeats)

    def head_at(self, row: int) -> Head | None:
        """What a row stands for that is not a node's own."""
        return self._folding.head_at(row) if self.folded else None

    def turn(self, row: int) -> int:
        """Open or fold the blocks at `row`; returns the row to go to."""
        return self._folding.turn(row) if self.folded else row

    def reveal(self, node: int) -> None:
        """Open what the node is folded into."""
        if self.folded and self.knows(node):
            self._folding.reveal(int(self._place[node]))

    # ── the filter ──

    def search(self, query: str) -> None:
        """Narrow the rows to the nodes that match; an empty query shows all."""
        self.query = query.strip()
        self.matches = self.index.search(self.query) if self.index is not None and self.query else None
        self.narrowed = self.matches is not None

    def widen(self) -> None:
        """Show all nodes again; the matches stay for `next_match`."""
        self.narrowed = False

    # ── rows and nodes ──

    def node_at(self, row: int) -> int:
        """The row's node, or the first of those that it stands for."""
        if self.narrowed and self.matches is not None:
            return int(self.matches[row])
        return int(self._order[self._folding.place_at(row) if self._folding.on else row])

    def nodes_at(self, row: int) -> list[int]:
        """All nodes that a row stands for."""
        head = self.head_at(row)
        if head is None:
            return [self.node_at(row)]
        nodes: list[int] = self._order[head.first : head.first + head.size * head.count].tolist()
        return nodes

    def row_of(self, node: int) -> int:
        """The node's row, or that of the next one when the filter hides it."""
        if self.narrowed and self.matches is not None:
            places = self._place[self.matches]
            return min(int(np.searchsorted(places, self._place_of(node))), max(0, len(self.matches) - 1))
        place = min(self._place_of(node), max(0, len(self._order) - 1))
        return self._folding.row_of(place) if self._folding.on and len(self._order) else place

    def holds(self, node: int) -> bool:
        """Whether the node has a row of its own."""
        row = self.row_of(node)
        return row < len(self) and self.node_at(row) == node and self.head_at(row) is None

    def next_match(self, node: int, step: int) -> int | None:
        """The match after (step 1) or before (step -1) `node`, going round; None without matches."""
        if self.matches is None or not len(self.matches):
            return None
        places = self._place[self.matches]
        at = int(np.searchsorted(places, self._place_of(node), "right" if step > 0 else "left"))
        return int(self.matches[(at if step > 0 else at - 1) % len(self.matches)])

    def knows(self, node: int) -> bool:
        """Whether the graph has the node, shown or not."""
        return 0 <= node < len(self._place) and self._place[node] >= 0

    def _place_of(self, node: int) -> int:
        """The node's place in the order; of one that is not there, that of the next by number."""
        if self.knows(node):
            return int(self._place[node])
        later = self._place[min(node, len(self._place)) :]
        there = later[later >= 0]
        return int(there[0]) if there.size else max(0, len(self._order) - 1)


class JumpHistory:
    """Nodes that the user jumped between, like a browser's pages."""

    LIMIT = 200

    def __init__(self) -> None:
        self._nodes: list[int] = []
        self._at = 0

    def jump(self, origin: int, target: int) -> None:
        """Note a jump; what lay ahead is forgotten."""
        del self._nodes[self._at :]
        self._nodes = [*self._nodes, origin][-self.LIMIT :]
        self._at = len(self._nodes)
        self._nodes.append(target)

    def back(self, current: int) -> int | None:
        if self._at == 0:
            return None
        if self._at < len(self._nodes):
            self._nodes[self._at] = current
        else:
            self._nodes.append(current)
        self._at -= 1
        return self._nodes[self._at]

    def forward(self, current: int) -> int | None:
        if self._at + 1 >= len(self._nodes):
            return None
        self._nodes[self._at] = current
        self._at += 1
        return self._nodes[self._at]
