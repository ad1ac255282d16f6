"""The nodes as rows for the virtual list."""

from layerwise._tool.tui.presenters.fold_rows import fold_row
from layerwise._tool.tui.presenters.graph_rows import Columns, columns, node_row
from layerwise._tool.tui.presenters.text import Line
from layerwise._tool.tui.state.graph import NodeRows
from layerwise._tool.tui.state.session import Session
from layerwise._tool.tui.state.shared import AppState


class NodeModel:
    """Rows of the list, styled."""

    def __init__(self, state: AppState, session: Session, rows: NodeRows) -> None:
        self._state = state
        self._session = session
        self._rows = rows
        self._columns: tuple[int, bool, Columns] | None = None

    def __len__(self) -> int:
        return len(self._rows)

    def columns(self, cells: int) -> Columns:
        with_errors = bool(self._session.errors)
        if self._columns is None or self._columns[:2] != (cells, with_errors):
            n_nodes = self._rows.index.n_nodes if self._rows.index else 0
            self._columns = (cells, with_errors, columns(cells, n_nodes, with_errors))
        return self._columns[2]

    def row(self, i: int, cells: int) -> Line:
        index = self._rows.index
        if index is None:
            return []
        at, head, glyphs = self.columns(cells), self._rows.head_at(i), self._state.glyphs
        if head is not None:
            return fold_row(index, self._rows.nodes_at(i), head, at, self._session, glyphs)
        return node_row(index, self._rows.node_at(i), at, self._session, glyphs)
