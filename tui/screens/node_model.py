"""The nodes of a graph as text, with what stands below them."""

from layerwise._tool.tui.presenters.graph_rows import Columns, columns, fold_row, node_row, status_line
from layerwise._tool.tui.presenters.module_rows import graph_module_row
from layerwise._tool.tui.presenters.names import Names
from layerwise._tool.tui.presenters.text import Line
from layerwise._tool.tui.state.graph import NodeRows
from layerwise._tool.tui.state.mark_cost import MarkCost
from layerwise._tool.tui.state.module_tree import ModuleHead
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
        self.names = Names(state.glyphs)
        self.rows.fold_again(session.forms.get("graph"))
        self.cost = MarkCost()
        self._columns: tuple[tuple[int, bool, int, bool], Columns] | None = None

    def keep_folds(self, row: int) -> None:
        """Keep for the next session how rows are folded. row: where the cursor is."""
        told = self.rows.kept(row)
        if told != self.session.forms.get("graph"):
            self.session.remember("graph", form=told)

    def __len__(self) -> int:
        return len(self.rows)

    def columns(self, cells: int) -> Columns:
        index = self.rows.index
        noted = index is not None and bool(index.meta.get("noted")) and index.modules() is not None
        key = (cells, bool(self.session.errors), index.n_nodes if index else 0, noted)
        if self._columns is None or self._columns[0] != key:
            self._columns = key, columns(cells, key[2], key[1], noted)
        return self._columns[1]

    def row(self, i: int, cells: int) -> Line:
        index = self.rows.index
        if index is None:
            return []
        at, head, glyphs = self.columns(cells), self.rows.head_at(i), self.state.glyphs
        if isinstance(head, ModuleHead):
            return self._module_row(head, i, cells)
        if head is not None:
            return fold_row(index, self.rows.nodes_at(i), head, at, self.session, self.names, glyphs)
        return node_row(index, self.rows.node_at(i), at, self.session, self.names, glyphs, self.rows.depth_at(i))

    def _module_row(self, head: ModuleHead, i: int, cells: int) -> Line:
        at, nodes, errors = self.columns(cells), self.rows.nodes_at(i), self.session.errors
        found = [errors[node] for node in nodes if node in errors] if errors else []
        return graph_module_row(head, nodes[0], found, at, cells, self.names, self.state.glyphs)

    def status(self, in_range: int | None, cells: int) -> Line:
        """The line below the list, empty without a model. in_range: rows in the range, None without one."""
        if self.session.model is None:
            return []
        marks = len(self.session.marks)
        instead = compared_text(load_form(self.state.session.forms.get("run", {})), marks)
        return status_line(marks, self.cost, in_range, self.session.opening, instead, cells)

    def notes(self, node: int) -> list[Line]:
        """What else is to be said of a node, above its detail."""
        return []
