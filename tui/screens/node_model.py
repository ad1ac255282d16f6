"""The nodes of a graph as text, with what stands below them."""

from layerwise._tool.tui.presenters.graph_rows import Columns, columns, fold_row, node_row, status_line
from layerwise._tool.tui.presenters.text import Line
from layerwise._tool.tui.state.graph import NodeRows
from layerwise._tool.tui.state.mark_cost import MarkCost
from layerwise._tool.tui.state.run_form import compared_text, load_form
from layerwise._tool.tui.state.session import Session
from layerwise._tool.tui.state.shared import AppState


class NodeModel:
    """What is shown of a session's graph, as text. sign: cells before a row that tell how its node differs."""

    sign = 0

    def __init__(self, state: AppState, session: Session) -> None:
        self.state = state
        self.session = session
        self.rows = NodeRows()
        self.rows.fold(bool((session.forms.get("graph") or {}).get("fold")))
        self.cost = MarkCost()
        self._columns: tuple[tuple[int, bool, int], Columns] | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def columns(self, cells: int) -> Columns:
        key = (cells, bool(self.session.errors), self.rows.index.n_nodes if self.rows.index else 0)
        if self._columns is None or self._columns[0] != key:
            self._columns = key, columns(cells, key[2], key[1])
        return self._columns[1]

    def row(self, i: int, cells: int) -> Line:
        index = self.rows.index
        if index is None:
            return []
        at, head, glyphs = self.columns(cells), self.rows.head_at(i), self.state.glyphs
        if head is not None:
            return fold_row(index, self.rows.nodes_at(i), head, at, self.session, glyphs)
        return node_row(index, self.rows.node_at(i), at, self.session, glyphs)

    def status(self, in_range: int | None, cells: int) -> Line:
        """The line below the list. in_range: how many rows are in the range, None without one."""
        marks = len(self.session.marks)
        instead = compared_text(load_form(self.state.session.forms.get("run", {})), marks)
        return status_line(marks, self.cost, in_range, self.session.opening, instead, cells)

    def notes(self, node: int) -> list[Line]:
        """What else is to be said of a node, above its detail."""
        return []
