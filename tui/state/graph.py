"""What the Graph screen shows: which nodes, in which rows, and where the user has been."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from surgery.graph import GraphIndex

Numbers = NDArray[np.int32]


class NodeRows:
    """Rows of the list: all nodes, or only the matches of the filter.

    matches: the nodes that the query finds, ascending; None without a query. narrowed: rows are the matches only.
    """

    def __init__(self, index: "GraphIndex | None" = None) -> None:
        self.index = index
        self.query = ""
        self.matches: Numbers | None = None
        self.narrowed = False

    def __len__(self) -> int:
        if self.index is None:
            return 0
        return len(self.matches) if self.narrowed and self.matches is not None else self.index.n_nodes

    def search(self, query: str) -> None:
        """Narrow the rows to the nodes that match; an empty query shows all."""
        self.query = query.strip()
        self.matches = self.index.search(self.query) if self.index is not None and self.query else None
        self.narrowed = self.matches is not None

    def widen(self) -> None:
        """Show all nodes again; the matches stay for `next_match`."""
        self.narrowed = False

    def node_at(self, row: int) -> int:
        return int(self.matches[row]) if self.narrowed and self.matches is not None else row

    def row_of(self, node: int) -> int:
        """The node's row, or that of the next one when the filter hides it."""
        if not self.narrowed or self.matches is None:
            return node
        return min(int(np.searchsorted(self.matches, node)), max(0, len(self.matches) - 1))

    def holds(self, node: int) -> bool:
        """Whether the node has a row."""
        row = self.row_of(node)
        return row < len(self) and self.node_at(row) == node

    def next_match(self, node: int, step: int) -> int | None:
        """The match after (step 1) or before (step -1) `node`, going round; None without matches."""
        if self.matches is None or not len(self.matches):
            return None
        at = int(np.searchsorted(self.matches, node, "right" if step > 0 else "left"))
        return int(self.matches[(at if step > 0 else at - 1) % len(self.matches)])


class History:
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
