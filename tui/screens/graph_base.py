"""The Graph screen's parts and how they follow the state."""

from typing import TYPE_CHECKING

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.events import Resize
from textual.timer import Timer

from layerwise._tool.tui.controllers.graph import GraphController
from layerwise._tool.tui.presenters.around import around_lines
from layerwise._tool.tui.presenters.graph_rows import header
from layerwise._tool.tui.presenters.graph_status import count_line, problem_lines, status_line
from layerwise._tool.tui.presenters.node_detail import NodeDetail
from layerwise._tool.tui.presenters.text import Line
from layerwise._tool.tui.screens.graph_list import NodeModel
from layerwise._tool.tui.screens.page import Page
from layerwise._tool.tui.state.graph import NodeRows
from layerwise._tool.tui.state.marks import MarkCost
from layerwise._tool.tui.state.run_form import compared_text, load_form
from layerwise._tool.tui.state.shared import AppState
from layerwise._tool.tui.widgets.detail_pane import DetailPane
from layerwise._tool.tui.widgets.line_input import LineInput
from layerwise._tool.tui.widgets.lines import LiveLine, Separator
from layerwise._tool.tui.widgets.virtual_list import GUTTER, VirtualList

if TYPE_CHECKING:
    from layerwise._tool.surgery.graph import GraphIndex

DETAIL_WAIT = 0.06
TWO_PANES, THREE_PANES = 100, 180


class GraphBase(Page, scope="graph"):
    """One list of nodes; the detail pane follows it, beside it where there are 100 columns, else behind tab.

    From 180 columns on a third pane shows what is around the node, and its errors.
    """

    DEFAULT_CSS = """
    GraphBase #graph-left { width: 1fr; }
    GraphBase #detail { width: 46%; height: 1fr; }
    GraphBase .third { display: none; }
    GraphBase.wide .third { display: block; }
    GraphBase.wide #detail { width: 30%; }
    GraphBase #around { width: 32%; height: 1fr; }
    GraphBase.zoomed #graph-separator, GraphBase.zoomed #detail, GraphBase.zoomed .third { display: none; }
    GraphBase.narrow #graph-separator { display: none; }
    GraphBase.narrow #detail { display: none; width: 1fr; }
    GraphBase.narrow.on-detail #detail { display: block; }
    GraphBase.narrow.on-detail #graph-left { display: none; }
    """

    LIST = VirtualList

    def __init__(self, state: AppState) -> None:
        super().__init__(state)
        self._control = GraphController(state, self.session)
        self._rows = NodeRows()
        self._rows.fold(bool((self.session.forms.get("graph") or {}).get("fold")))
        self._cost = MarkCost()
        self._range_from: int | None = None
        self._detail_timer: Timer | None = None
        self._detail_node = -1
        self._list = self.LIST(self._model(), glyphs=state.glyphs, id="nodes")

    def _model(self) -> NodeModel:
        """The rows of the list as they are drawn."""
        return NodeModel(self.state, self.session, self._rows)

    def compose(self) -> ComposeResult:
        yield LineInput("/ ", id="filter")
        with Horizontal():
            with Vertical(id="graph-left"):
                yield LiveLine(self._header, id="graph-header")
                yield self._list
            yield Separator(self.state.glyphs.separator, id="graph-separator")
            yield DetailPane(id="detail")
            yield Separator(self.state.glyphs.separator, classes="third")
            yield DetailPane(id="around", classes="third")
        yield LiveLine(self._status, id="graph-status")

    def on_mount(self) -> None:
        session = self.session
        self.follow(session.on_index, self._index_opened)
        self.follow(session.on_marks, self._marks_changed)
        self.follow(session.on_errors, self._errors_changed)
        self.follow(session.on_node, self._node_changed)
        self.follow(session.on_opening, self._opening_changed)
        if session.index is not None:
            self._index_opened()

    def main_widget(self) -> VirtualList:
        return self._list

    def shown_again(self) -> None:
        self._node_changed()
        self._update_status()

    def laid_out(self) -> None:
        self._show_detail()

    def _index_opened(self) -> None:
        if self.session.index is None:
            return
        self._rows.take(self.session.index)
        query = self.session.filters.get("graph", "")
        if query != self._rows.query:
            self._rows.search(query)
            self.query_one("#filter", LineInput).set_value(query)
        node = self.session.node
        self._list.set_model(self._model(), self._rows.row_of(node) if self._rows.knows(node) else self._list.cursor)
        if not self._rows.knows(node) and len(self._rows):
            self.session.select_node(self._rows.node_at(self._list.cursor))
        self._cost.follow(self.session.index, self.session.marks)
        self._update_status()
        self._update_head()
        self._show_detail()

    # ── drawing ──

    def on_resize(self, event: Resize) -> None:
        self.set_class(self.app.size.width < TWO_PANES, "narrow")
        self.set_class(self.app.size.width >= THREE_PANES, "wide")
        self.call_after_refresh(self._after_resize)

    def _after_resize(self) -> None:
        self._update_head()
        self._opening_changed()

    def _opening_changed(self) -> None:
        """A model that cannot be shown says why in the place of its nodes."""
        self._list.set_instead(problem_lines(self.session.problem, self._list.size.width - GUTTER))
        self._update_status()

    def on_detail_pane_resized(self) -> None:
        self._show_detail()

    def _update_head(self) -> None:
        self.query_one("#graph-header").refresh()
        self.query_one("#filter", LineInput).set_tail(count_line(self._rows))

    def _header(self, cells: int) -> Line:
        model = self._list.model
        if not isinstance(model, NodeModel):
            return []
        return [(" " * GUTTER, "head"), *header(model.columns(cells - GUTTER))]

    def _update_status(self) -> None:
        self.query_one("#graph-status").refresh()

    def _status(self, cells: int) -> Line:
        in_range = None if self._range_from is None else abs(self._list.cursor - self._range_from) + 1
        marks = len(self.session.marks)
        instead = compared_text(load_form(self.state.session.forms.get("run", {})), marks)
        return status_line(marks, self._cost, in_range, self.session.opening, instead, cells)

    def _show_detail(self) -> None:
        pane, index, node = self.query_one("#detail", DetailPane), self.session.index, self.session.node
        if index is None or not index.n_nodes or not pane.size.width:
            return
        detail = NodeDetail(index, pane.size.width - 1, self.state.glyphs, self.session.marks, self._control.statistics)
        lines = detail.lines(node, self.session.errors.get(node), neighbours=not self.has_class("wide"))
        lines = [*self._notes(node), *lines]
        same = node == self._detail_node
        pane.set_lines([[(" ", ""), *line] for line in lines], pane.top if same else 0)
        self._show_around(index, node, same)
        self._detail_node = node

    def _notes(self, node: int) -> list[Line]:
        """What else is to be said of a node, above its detail."""
        return []

    def _show_around(self, index: "GraphIndex", node: int, same: bool) -> None:
        pane = self.query_one("#around", DetailPane)
        if pane.size.width:
            cells, errors = pane.size.width - 1, self.session.errors
            lines = around_lines(index, node, self.state.errors, errors, cells, self.state.glyphs)
            pane.set_lines([[(" ", ""), *line] for line in lines], pane.top if same else 0)

    # ── state changed ──

    def _marks_changed(self) -> None:
        if self.session.index is not None:
            self._cost.follow(self.session.index, self.session.marks)
        self._list.sync()
        self._update_status()
        self._show_detail()

    def _errors_changed(self) -> None:
        self._list.sync()
        self._update_head()
        self._show_detail()

    def _node_changed(self) -> None:
        """Another screen chose a node."""
        node = self.session.node
        if self.session.index is None or not len(self._rows) or self._rows.node_at(self._list.cursor) == node:
            return
        if not self._rows.holds(node):
            self._rows.widen()
            self._rows.reveal(node)
            self._list.set_model(self._list.model, self._rows.row_of(node))
            self._update_head()
        else:
            self._list.move_to(self._rows.row_of(node))

    @on(VirtualList.Highlighted, "#nodes")
    def _cursor_moved(self, event: VirtualList.Highlighted) -> None:
        if self.session.index is None or not len(self._rows):
            return
        self.session.select_node(self._rows.node_at(self._list.cursor))
        if self._range_from is not None:
            self._update_status()
        if self._detail_timer is not None:
            self._detail_timer.stop()
        self._detail_timer = self.set_timer(DETAIL_WAIT, self._show_detail)
