"""The nodes as rows for the virtual list."""

from tui.presenters.graph_rows import Columns, columns, node_row
from tui.presenters.text import Line
from tui.state.graph import NodeRows
from tui.state.shared import AppState


class NodeModel:
    """Rows of the list, styled."""

    def __init__(self, state: AppState, rows: NodeRows) -> None:
        self._state = state
        self._rows = rows
        self._columns: tuple[int, bool, Columns] | None = None

    def __len__(self) -> int:
        return len(self._rows)

    def columns(self, cells: int) -> Columns:
        with_errors = bool(self._state.session.errors)
        if self._columns is None or self._columns[:2] != (cells, with_errors):
            n_nodes = self._rows.index.n_nodes if self._rows.index else 0
            self._columns = (cells, with_errors, columns(cells, n_nodes, with_errors))
        return self._columns[2]

    def row(self, i: int, cells: int) -> Line:
        session, index = self._state.session, self._rows.index
        if index is None:
            return []
        node = self._rows.node_at(i)
        at = self.columns(cells)
        return node_row(index, node, at, session, self._state.glyphs)
