"""The worst error of each node, for the Graph screen, from the rows of the comparison on view."""

import time
from typing import TYPE_CHECKING

from layerwise._tool.tui.state.error_table import FAILED, PASSED, ErrorTable
from layerwise._tool.tui.state.session import NodeError, Session

if TYPE_CHECKING:
    from layerwise._tool.surgery.graph import GraphIndex

PUBLISH_EVERY = 2.0


class NodeErrors:
    """Collects rows as they come; publishes to the session every two seconds and at the end."""

    def __init__(self, session: Session, table: ErrorTable) -> None:
        self._session = session
        self._table = table
        self._new: list[int] = []
        self._worst: dict[int, NodeError] = {}
        self._published = 0.0

    def note(self, place: int) -> None:
        """A row of the table came or changed."""
        self._new.append(place)

    def publish(self, final: bool) -> None:
        """Give the session what is new, if it is time."""
        index = self._session.index
        if index is None or not self._new or (not final and time.monotonic() - self._published < PUBLISH_EVERY):
            return
        for place in self._new:
            node = node_of_row(index, self._table, place)
            if node >= 0:
                self._take(node, place)
        self._new = []
        self._published = time.monotonic()
        self._session.set_errors(dict(self._worst))

    def _take(self, node: int, place: int) -> None:
        verdict = int(self._table.verdicts()[place])
        passed = None if verdict not in (FAILED, PASSED) else verdict == PASSED
        codes, kinds = self._table.labels("finding")
        found = NodeError(float(self._table.numbers("max_abs")[place]), passed, kinds[int(codes[place])], place)
        old = self._worst.get(node)
        if old is None or _rank(found) >= _rank(old):
            self._worst[node] = found


def node_of_row(index: "GraphIndex", table: ErrorTable, place: int) -> int:
    """The node that a row of the table is about, -1 if the graph has none.

    It is the operator that the row names, which need not be the one that writes the tensor: a Cast may stand for it.
    """
    tensor, name = index.find_tensor(table.tensors[place]), table.nodes[place]
    writer = index.producer(tensor) if tensor >= 0 else -1
    if not name or (writer >= 0 and index.node_name(writer) == name):
        return writer
    codes, ops = table.labels("op")
    named = index.find_node(name)
    if named >= 0 and index.node_op(named) == ops[int(codes[place])]:
        return named
    return writer


def _rank(error: NodeError) -> tuple[bool, bool, float]:
    return (error.passed is False, bool(error.finding), error.max_abs)
