"""A list of nodes with a filter above it, and the node under the cursor in full beside it."""

from typing import TYPE_CHECKING

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.events import DescendantFocus, Resize

from layerwise._tool.tui.commands import Commands, command
from layerwise._tool.tui.controllers.graph import GraphController
from layerwise._tool.tui.lifetime import stays
from layerwise._tool.tui.presenters.around import around_lines
from layerwise._tool.tui.presenters.graph_rows import count_line, header, problem_lines
from layerwise._tool.tui.presenters.node_detail import NodeDetail
from layerwise._tool.tui.presenters.text import Line
from layerwise._tool.tui.screens.node_filter import FilteredNodes
from layerwise._tool.tui.screens.node_model import NodeModel
from layerwise._tool.tui.widgets.following import Soon, follow
from layerwise._tool.tui.widgets.line_input import LineInput
from layerwise._tool.tui.widgets.lines import DetailPane, LineWidget, LiveLine, Separator
from layerwise._tool.tui.widgets.virtual_list import GUTTER, VirtualList

if TYPE_CHECKING:
    from layerwise._tool.surgery.graph import GraphIndex

DETAIL_WAIT = 0.06
TWO_PANES, THREE_PANES = 100, 180


class NodeView(Commands, FilteredNodes, scope="graph"):
    """The detail pane follows the list, beside it where there are 100 columns, else behind tab.

    From 180 columns on a third pane shows what is around the node, and its errors. range_from: the row where a range
    of rows starts.
    """

    DEFAULT_CSS = """
    NodeView #graph-left { width: 1fr; }
    NodeView #detail { width: 46%; height: 1fr; }
    NodeView .third { display: none; }
    NodeView.wide .third { display: block; }
    NodeView.wide #detail { width: 30%; }
    NodeView #around { width: 32%; height: 1fr; }
    NodeView.zoomed #graph-separator, NodeView.zoomed #detail, NodeView.zoomed .third { display: none; }
    NodeView.narrow #graph-separator { display: none; }
    NodeView.narrow #detail { display: none; width: 1fr; }
    NodeView.narrow.on-detail #detail { display: block; }
    NodeView.narrow.on-detail #graph-left { display: none; }
    """

    def __init__(self, model: NodeModel, control: GraphController, kind: type[VirtualList]) -> None:
        super().__init__(model)
        self.list = kind(model, glyphs=model.state.glyphs, id="nodes", names=model.names)
        self.list.moved = self._note_node
        self._control = control
        self._detail_soon = Soon(self, self.show_detail, DETAIL_WAIT, model.state.owed, afresh=True)
        self._detail_node = -1

    def compose(self) -> ComposeResult:
        separator = self.model.state.glyphs.separator
        yield LineInput("/ ", id="filter")
        with Horizontal():
            with Vertical(id="graph-left"):
                yield LiveLine(self._header, id="graph-header")
                yield self.list
            yield Separator(separator, id="graph-separator")
            yield DetailPane(id="detail")
            yield Separator(separator, classes="third")
            yield DetailPane(id="around", classes="third")
        yield LiveLine(self._status, id="graph-status")

    def on_mount(self) -> None:
        self.filter.submit = self._filter_done
        self.set_class(self.kept.zoomed, "zoomed")
        session = self.session
        follow(self, session.on_index, self._index_opened)
        follow(self, session.on_marks, self._marks_changed)
        follow(self, session.on_errors, self._errors_changed)
        follow(self, session.on_node, self.node_changed)
        follow(self, self.model.state.session.on_modules, self._modules_read)
        follow(self, session.on_opening, self._opening_changed)
        if session.index is not None:
            self._index_opened()

    # ── where one is ──

    def node(self) -> int:
        """The node of the row under the cursor, of several the one that was selected; the list must not be empty."""
        row, node = self.list.cursor, self.session.node
        return node if self.rows.stands_for(row, node) else self.rows.node_at(row)

    def _note_node(self, told: bool) -> None:
        """The cursor is on another row: that one's node is selected, unless the row has come to the node."""
        row = self.list.cursor
        if self.session.index is None or row >= len(self.rows):
            return
        if told or not self.rows.stands_for(row, self.session.node):
            self._seen = self.rows.node_at(row)
            self.session.select_node(self._seen)
        if self.rows.folded:
            self.model.keep_folds(row)

    def show_rows(self, row: int) -> None:
        """Show rows that are others than before, with the cursor on `row`."""
        self.list.set_model(self.model, row)

    def turn_fold(self) -> None:
        """Open or fold what the row under the cursor stands for, or fold what it lies in."""
        self.show_rows(self.rows.turn(self.list.cursor))
        self.model.keep_folds(self.list.cursor)

    # ── drawing ──

    def on_resize(self, event: Resize) -> None:
        self.set_class(self.app.size.width < TWO_PANES, "narrow")
        self.set_class(self.app.size.width >= THREE_PANES, "wide")
        self.call_after_refresh(self._after_resize)

    def _after_resize(self) -> None:
        self.update_head()
        self._opening_changed()

    def on_lines_view_resized(self) -> None:
        self.show_detail()

    def update_head(self) -> None:
        self.query_one("#graph-header").refresh()
        self.filter.set_tail(count_line(self.rows))

    def _header(self, cells: int) -> Line:
        before = GUTTER + self.model.sign
        return [(" " * before, "head"), *header(self.model.columns(cells - before), self.rows.by_module)]

    def update_status(self) -> None:
        self.query_one("#graph-status").refresh()

    def _status(self, cells: int) -> Line:
        in_range = None if self.range_from is None or not len(self.rows) else len(self.chosen_rows())
        return self.model.status(in_range, cells)

    def show_detail(self) -> None:
        """Show the selected node in full."""
        self._detail_soon.cancel()
        if not stays(self):
            return
        pane, index, node = self.query_one("#detail", DetailPane), self.session.index, self.session.node
        if index is None or not index.n_nodes or not pane.size.width:
            return
        glyphs = self.model.state.glyphs
        detail = NodeDetail(index, pane.size.width - 1, glyphs, self.session.marks, self._control.statistics)
        lines = detail.lines(node, self.session.errors.get(node), neighbours=not self.has_class("wide"))
        lines = [*self.model.notes(node), *lines]
        same = node == self._detail_node
        pane.set_lines([[(" ", ""), *line] for line in lines], pane.top if same else 0)
        self._show_around(index, node, same)
        self._detail_node = node

    def _show_around(self, index: "GraphIndex", node: int, same: bool) -> None:
        pane = self.query_one("#around", DetailPane)
        if pane.size.width:
            cells, errors = pane.size.width - 1, self.session.errors
            lines = around_lines(index, node, self.model.state.errors, errors, cells, self.model.state.glyphs)
            pane.set_lines([[(" ", ""), *line] for line in lines], pane.top if same else 0)

    # ── going from pane to pane ──

    @command("graph.detail", "to the detail pane, or back to the list", keys="tab", means="pane", footer="detail")
    def toggle_detail(self) -> None:
        panes: list[LineWidget] = [self.list, self.query_one("#detail", DetailPane)]
        if self.has_class("wide"):
            panes.append(self.query_one("#around", DetailPane))
        if self.has_class("zoomed"):
            self.model.state.say("the detail pane is hidden: + shows it")
            return
        at = next((place for place, pane in enumerate(panes) if pane is self.screen.focused), 0)
        to = (at + 1) % len(panes)
        self.set_class(to > 0 and self.has_class("narrow"), "on-detail")
        panes[to].focus()
        self.call_after_refresh(self.show_detail)

    @command("graph.zoom", "hide or show the detail pane beside the list", keys="plus")
    def zoom(self) -> None:
        if not self.has_class("narrow"):
            self.toggle_class("zoomed")
            self.kept.zoomed = self.has_class("zoomed")
            self.kept.keep(self.session)
            self.list.focus()
            self.call_after_refresh(self._after_resize)

    def leave_pane(self) -> bool:
        """Go back from a pane to the list; false where one is there."""
        pane = self.screen.focused
        if not isinstance(pane, DetailPane) or self not in pane.ancestors:
            return False
        self.remove_class("on-detail")
        self.list.focus()
        self.call_after_refresh(self.show_detail)
        return True

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """What has the focus is seen, by whatever way it came there."""
        if event.widget is self.list:
            self.remove_class("on-detail")

    # ── state changed ──

    def _index_opened(self) -> None:
        session, rows = self.session, self.rows
        if session.index is None:
            return
        heir = rows.heir(session.node, session.index)
        rows.take(session.index)
        if heir != session.node:
            self._seen = heir
            session.select_node(heir)
        query = session.filters.get("graph", "")
        if query != rows.query:
            rows.search(query)
            self.filter.set_value(query)
        self.show_rows(self._row_again() if rows.knows(session.node) else self.list.cursor)
        if not rows.knows(session.node) and len(rows):
            session.select_node(self.node())
        self.model.cost.follow(session.index, session.marks)
        self.update_status()
        self.update_head()
        self.show_detail()

    def _row_again(self) -> int:
        return self.rows.row_again(self.session.node, self.session.forms.get("graph"))

    def _modules_read(self) -> None:
        """It is known by now which modules the nodes come from."""
        rows = self.rows
        if rows.by_module:
            rows.fold_modules(True)
        if self.session.index is not None and "module:" in rows.query.lower():
            rows.search(rows.query)
        self.show_rows(self._row_again() if len(rows) else 0)
        self.update_head()
        self.show_detail()

    def _opening_changed(self) -> None:
        """A model that cannot be shown says why in the place of its nodes."""
        self.list.set_instead(problem_lines(self.session.no_graph, self.list.size.width - GUTTER))
        self.update_status()

    def _marks_changed(self) -> None:
        if self.session.index is not None:
            self.model.cost.follow(self.session.index, self.session.marks)
        self.list.sync()
        self.update_status()
        self.show_detail()

    def _errors_changed(self) -> None:
        self.list.sync()
        self.update_head()
        self.show_detail()

    def node_changed(self) -> None:
        """Another screen chose a node."""
        node, seen = self.session.node, self._seen
        self._seen = node
        if self.session.index is None or not len(self.rows):
            return
        if self.rows.stands_for(self.list.cursor, node) and (node == seen or self.rows.holds(node)):
            return
        if not self.rows.holds(node):
            self.rows.widen()
            self.rows.reveal(node)
            self.show_rows(self.rows.row_of(node))
            self.model.keep_folds(self.list.cursor)
            self.update_head()
        else:
            self.list.move_to(self.rows.row_of(node))

    @on(VirtualList.Highlighted, "#nodes")
    def _cursor_moved(self) -> None:
        if self.session.index is None:
            return
        if self.range_from is not None:
            self.update_status()
        self._detail_soon.touch()

    @on(VirtualList.Selected, "#nodes")
    def _opened(self) -> None:
        if self.rows.head_at(self.list.cursor) is None:
            self.toggle_detail()
        else:
            self.turn_fold()
