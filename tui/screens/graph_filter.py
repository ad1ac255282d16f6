"""Filter, and walking the matches."""

from textual import on
from textual.timer import Timer

from layerwise._tool.tui.commands import command
from layerwise._tool.tui.screens.graph_panes import GraphPanes
from layerwise._tool.tui.state.shared import AppState
from layerwise._tool.tui.widgets.line_input import LineInput

FILTER_WAIT = 0.05


class GraphFilter(GraphPanes, scope="graph"):
    """`/` narrows the rows as one types; escape shows all again and keeps the matches for n and N."""

    def __init__(self, state: AppState) -> None:
        super().__init__(state)
        self._filter_timer: Timer | None = None

    def on_mount(self) -> None:
        self.query_one("#filter", LineInput).submit = self._filter_done

    @command("graph.filter", "filter nodes: text op: dtype: name: !not", keys="slash", footer="filter",
             line="filter TEXT")  # fmt: skip
    def filter(self, text: str = "") -> None:
        field = self.query_one("#filter", LineInput)
        if text:
            field.set_value(text)
            self._apply_filter()
        else:
            if not self._rows.narrowed:
                field.set_value("")
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
        self._update_status()
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
