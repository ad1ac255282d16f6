"""The worst error of each node, for the Graph screen, from the rows of the comparison on view."""

import time

from tui.state.error_table import FAILED, PASSED, ErrorTable
from tui.state.session import NodeError, Session

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
        if (
            index is None
            or not self._new
            or (not final and time.monotonic() - self._published < PUBLISH_EVERY)
        ):
            return
        for place in self._new:
            tensor = index.find_tensor(self._table.tensors[place])
            node = index.producer(tensor) if tensor >= 0 else -1
            if node >= 0:
                self._take(node, place)
        self._new = []
        self._published = time.monotonic()
        self._session.set_errors(dict(self._worst))

    def _take(self, node: int, place: int) -> None:
        verdict = int(self._table.verdicts()[place])
        passed = None if verdict not in (FAILED, PASSED) else verdict == PASSED
        codes, kinds = self._table.labels("finding")
        found = NodeError(float(self._table.numbers("max_abs")[place]), passed, kinds[int(codes[place])])
        old = self._worst.get(node)
        if old is None or _rank(found) >= _rank(old):
            self._worst[node] = found


def _rank(error: NodeError) -> tuple[bool, bool, float]:
    return (error.passed is False, bool(error.finding), error.max_abs)
