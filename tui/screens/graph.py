"""The Graph screen: nodes, filter, detail and neighbourhood, marks, jumps."""

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.events import Resize
from textual.timer import Timer

from backends.errors import LayerwiseError
from tui.commands import command
from tui.controllers.graph import GraphController
from tui.presenters.graph_rows import Columns, columns, header, node_row
from tui.presenters.graph_status import count_line, status_line
from tui.presenters.node_detail import NodeDetail
from tui.presenters.text import Line
from tui.screens.page import Page
from tui.screens.pick import Choice, PickScreen, yank_choices
from tui.state.graph import History, NodeRows
from tui.state.marks import MarkCost
from tui.state.shared import AppState
from tui.widgets.detail_pane import DetailPane
from tui.widgets.line_input import LineInput
from tui.widgets.lines import LinesView, OneLine
from tui.widgets.virtual_list import VirtualList

FILTER_WAIT = 0.05
DETAIL_WAIT = 0.06
TWO_PANES = 100
MOST_CHOICES = 1000


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


class GraphScreen(Page, scope="graph"):
    """One list of nodes; the detail pane follows it, beside it where there are 100 columns, else behind tab."""

    DEFAULT_CSS = """
    GraphScreen #graph-left { width: 1fr; }
    GraphScreen #graph-separator { width: 1; height: 1fr; }
    GraphScreen #detail { width: 46%; height: 1fr; }
    GraphScreen.zoomed #graph-separator, GraphScreen.zoomed #detail { display: none; }
    GraphScreen.narrow #graph-separator { display: none; }
    GraphScreen.narrow #detail { display: none; width: 1fr; }
    GraphScreen.narrow.on-detail #detail { display: block; }
    GraphScreen.narrow.on-detail #graph-left { display: none; }
    """

    def __init__(self, state: AppState) -> None:
        super().__init__(state)
        self._control = GraphController(state)
        self._rows = NodeRows()
        self._history = History()
        self._cost = MarkCost()
        self._range_from: int | None = None
        self._filter_timer: Timer | None = None
        self._detail_timer: Timer | None = None
        self._detail_node = -1
        self._list = VirtualList(NodeModel(state, self._rows), glyphs=state.glyphs, id="nodes")

    def compose(self) -> ComposeResult:
        yield LineInput("/ ", id="filter")
        with Horizontal():
            with Vertical(id="graph-left"):
                yield OneLine(id="graph-header")
                yield self._list
            yield LinesView(id="graph-separator")
            yield DetailPane(id="detail")
        yield OneLine(id="graph-status")

    def on_mount(self) -> None:
        session = self.session
        session.on_index.subscribe(self._index_opened)
        session.on_marks.subscribe(self._marks_changed)
        session.on_errors.subscribe(self._errors_changed)
        session.on_node.subscribe(self._node_changed)
        self.query_one("#filter", LineInput).submit = self._filter_done
        session.on_opening.subscribe(self._update_status)
        if session.index is not None:
            self._index_opened()

    def main_widget(self) -> VirtualList:
        return self._list

    def shown_again(self) -> None:
        if self.session.index is not None:
            self._list.move_to(self._rows.row_of(self.session.node))

    def _index_opened(self) -> None:
        self._rows.index = self.session.index
        query = self.session.filters.get("graph", "")
        self._rows.search(query)
        if query:
            self.query_one("#filter", LineInput).set_value(query)
        self._list.set_model(NodeModel(self.state, self._rows), self._rows.row_of(self.session.node))
        self._marks_changed()
        self._update_head()
        self._show_detail()

    # ── drawing ──

    def on_resize(self, event: Resize) -> None:
        self.set_class(self.app.size.width < TWO_PANES, "narrow")
        self.call_after_refresh(self._after_resize)

    def _after_resize(self) -> None:
        separator = self.query_one("#graph-separator", LinesView)
        separator.set_lines([[(self.state.glyphs.separator, "dim")]] * separator.size.height)
        self._update_head()
        self._update_status()
        self._show_detail(again=True)

    def _update_head(self) -> None:
        model = self._list.model
        if isinstance(model, NodeModel):
            cells = self._list.size.width - 2
            self.query_one("#graph-header", OneLine).set_line([("  ", "head"), *header(model.columns(cells))])
        self.query_one("#filter", LineInput).set_tail(count_line(self._rows))

    def _update_status(self) -> None:
        cells = self.size.width
        in_range = None if self._range_from is None else abs(self._list.cursor - self._range_from) + 1
        line = status_line(len(self.session.marks), self._cost, in_range, self.session.opening, cells)
        self.query_one("#graph-status", OneLine).set_line(line)

    def _show_detail(self, again: bool = False) -> None:
        pane, index, node = self.query_one("#detail", DetailPane), self.session.index, self.session.node
        if index is None or not index.n_nodes or not pane.size.width:
            return
        detail = NodeDetail(index, pane.size.width - 1, self.state.glyphs, self.session.marks, self._control.statistics)
        lines = detail.lines(node, self.session.errors.get(node))
        pane.set_lines([[(" ", ""), *line] for line in lines], pane.top if node == self._detail_node else 0)
        self._detail_node = node

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
        if self.session.index is None:
            return
        if not self._rows.holds(self.session.node):
            self._rows.widen()
            self._list.set_model(self._list.model, self._rows.row_of(self.session.node))
            self._update_head()
        else:
            self._list.move_to(self._rows.row_of(self.session.node))

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

    @on(VirtualList.Selected, "#nodes")
    def _opened(self) -> None:
        self.toggle_detail()

    # ── filter ──

    @command("graph.filter", "filter nodes: text op: dtype: name: !not", keys="slash", footer="filter",
             line="filter TEXT")  # fmt: skip
    def filter(self, text: str = "") -> None:
        field = self.query_one("#filter", LineInput)
        if text:
            field.set_value(text)
            self._apply_filter()
        else:
            field.focus()

    @on(LineInput.Changed, "#filter")
    def _filter_typed(self, event: LineInput.Changed) -> None:
        if self._filter_timer is not None:
            self._filter_timer.stop()
        self._filter_timer = self.set_timer(FILTER_WAIT, self._apply_filter)

    def _apply_filter(self) -> None:
        if self.session.index is None:
            return
        self._range_from = None
        node = self.session.node
        self._rows.search(self.query_one("#filter", LineInput).value)
        self._list.set_model(self._list.model, self._rows.row_of(node))
        self._update_head()
        self.session.remember("graph", filter=self._rows.query)

    async def _filter_done(self, value: str) -> None:
        self._apply_filter()
        self._list.focus()

    @on(LineInput.Cancelled, "#filter")
    def _filter_cancelled(self, event: LineInput.Cancelled) -> None:
        event.stop()
        self._list.focus()
        self._clear_filter()

    def _clear_filter(self) -> None:
        self.query_one("#filter", LineInput).set_value("")
        self._apply_filter()

    @command("graph.escape", "end the range, show all rows, clear the filter", keys="escape")
    def escape(self) -> None:
        if self.has_class("on-detail"):
            self.toggle_detail()
        elif self._range_from is not None:
            self._range_from = None
            self._update_status()
        elif self._rows.narrowed:
            self._rows.widen()
            self._list.set_model(self._list.model, self._rows.row_of(self.session.node))
            self._update_head()
        elif self._rows.matches is not None:
            self._clear_filter()

    @command("graph.next", "next match", keys="n")
    def next_match(self) -> None:
        self._go_match(1)

    @command("graph.previous", "previous match", keys="N")
    def previous_match(self) -> None:
        self._go_match(-1)

    def _go_match(self, step: int) -> None:
        node = self._rows.next_match(self.session.node, step)
        if node is None:
            self.state.say("no matches: / filters")
        else:
            self._list.move_to(self._rows.row_of(node))

    # ── jumps ──

    def _jump(self, node: int) -> None:
        self._history.jump(self.session.node, node)
        self._go(node)

    def _go(self, node: int) -> None:
        self.session.select_node(node)

    @command("graph.goto", "go to a node or tensor by name or number", line="goto NAME", complete="names")
    def goto(self, text: str = "") -> None:
        try:
            self._jump(self._control.find(text))
        except LayerwiseError as error:
            self.state.say(str(error), "bad")

    def names(self, prefix: str) -> list[str]:
        return self._control.names_like(prefix)

    @command("graph.producer", "jump to a producer (parent)", keys="p", footer="producer")
    def producer(self) -> None:
        index = self.session.index
        self._choose_node("Producers", index.parents(self.session.node) if index else [])

    @command("graph.consumer", "jump to a consumer (child)", keys="c", footer="consumer")
    def consumer(self) -> None:
        index = self.session.index
        self._choose_node("Consumers", index.children(self.session.node) if index else [])

    def _choose_node(self, title: str, nodes: list[int]) -> None:
        if not nodes:
            self.state.say(f"no {title.lower()}")
        elif len(nodes) == 1:
            self._jump(nodes[0])
        else:
            choices = [Choice(self._node_choice(node), node) for node in nodes[:MOST_CHOICES]]
            if len(nodes) > MOST_CHOICES:
                title = f"{title}: the first {MOST_CHOICES:,} of {len(nodes):,}"
            self.app.push_screen(PickScreen(title, choices, self.state.glyphs), self._node_chosen)

    def _node_choice(self, node: int) -> Line:
        index = self._control.index
        at = columns(70, index.n_nodes, False)
        return node_row(index, node, at, self.session, self.state.glyphs)

    def _node_chosen(self, node: object) -> None:
        if isinstance(node, int):
            self._jump(node)

    @command("graph.back", "back to where you jumped from", keys="left_square_bracket,backspace")
    def back(self) -> None:
        node = self._history.back(self.session.node)
        if node is not None:
            self._go(node)

    @command("graph.forward", "forward again", keys="right_square_bracket")
    def forward(self) -> None:
        node = self._history.forward(self.session.node)
        if node is not None:
            self._go(node)

    # ── marks ──

    @command("graph.mark", "mark or unmark the node's outputs", keys="space", footer="mark")
    def mark(self) -> None:
        if self.session.index is None or not len(self._rows):
            return
        first, last = sorted((self._list.cursor if self._range_from is None else self._range_from, self._list.cursor))
        self._range_from = None
        self.state.say(self._control.toggle_marks([self._rows.node_at(row) for row in range(first, last + 1)]))
        self._update_status()

    @command("graph.range", "start a range; space marks it", keys="v")
    def range(self) -> None:
        self._range_from = self._list.cursor if self._range_from is None else None
        self._update_status()

    @command("graph.mark_matches", "mark all matches of the filter", keys="asterisk")
    def mark_matches(self) -> None:
        matches = self._rows.matches
        if matches is None:
            self.state.say("no filter: / first, or :mark GLOB")
            return
        names = self._control.output_names(matches.tolist())
        self.session.mark(names)
        self.state.say(f"marked the {len(names):,} outputs of {len(matches):,} nodes")

    @command("graph.clear_marks", "clear all marks", keys="minus")
    def clear_marks(self) -> None:
        self.state.say(f"cleared {len(self.session.marks):,} marks")
        self.session.unmark(set(self.session.marks))

    @command("graph.mark_glob", "mark tensors by name, glob or all", line="mark GLOB", complete="names")
    def mark_glob(self, pattern: str = "") -> None:
        names = self._control.tensors_like(pattern) if self.session.index is not None else set()
        self.session.mark(names)
        self.state.say(f"{len(names):,} tensors match", "info" if names else "warn")

    @command("graph.unmark_glob", "unmark tensors by name, glob or all", line="unmark GLOB")
    def unmark_glob(self, pattern: str = "") -> None:
        names = self._control.tensors_like(pattern) if self.session.index is not None else set()
        self.session.unmark(names)

    # ── detail, yank ──

    @command("graph.weights", "statistics of the node's weights", keys="w")
    def weights(self) -> None:
        if self.session.index is not None and self.session.index.n_nodes:
            self.run_worker(self._read_weights(self.session.node), group="weights", exclusive=True)

    async def _read_weights(self, node: int) -> None:
        self.state.say("reading weights …")
        try:
            count = await self._control.read_weights(node)
        except LayerwiseError as error:
            self.state.say(str(error), "bad")
            return
        self.state.say(f"{count} weights" if count else "this node reads no weights")
        self._show_detail()

    @command("graph.zoom", "hide or show the detail pane beside the list", keys="plus")
    def zoom(self) -> None:
        if not self.has_class("narrow"):
            self.toggle_class("zoomed")
            self._list.focus()
            self.call_after_refresh(self._after_resize)

    @command("graph.detail", "show the detail pane, or go back to the list", keys="tab", footer="detail")
    def toggle_detail(self) -> None:
        pane = self.query_one("#detail", DetailPane)
        on_detail = not (self.has_class("on-detail") or pane.has_focus)
        self.remove_class("zoomed")
        self.set_class(on_detail and self.has_class("narrow"), "on-detail")
        (pane if on_detail else self._list).focus()
        self.call_after_refresh(self._show_detail)

    @command("graph.yank", "copy a name or the command line", keys="y", footer="yank")
    def yank(self) -> None:
        index = self.session.index
        if index is None or not index.n_nodes:
            return
        self.app.push_screen(PickScreen("Copy", yank_choices(self._control.yank_targets()), self.state.glyphs),
                             self._yanked)  # fmt: skip

    def _yanked(self, text: object) -> None:
        if isinstance(text, str):
            self.post_message(self.Yank(text))
