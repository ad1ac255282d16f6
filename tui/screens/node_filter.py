"""The filter above a list of nodes, as it is written on, taken, and left."""

from textual import on
from textual.containers import Container

from layerwise._tool.tui.screens.node_model import NodeModel
from layerwise._tool.tui.state.graph import KeptView
from layerwise._tool.tui.widgets.following import Soon
from layerwise._tool.tui.widgets.line_input import LineInput
from layerwise._tool.tui.widgets.virtual_list import VirtualList

FILTER_WAIT = 0.05


class FilteredNodes(Container):
    """Rows of nodes that a line narrows. range_from: the row where a range of rows starts."""

    list: VirtualList

    def __init__(self, model: NodeModel) -> None:
        super().__init__()
        self.model, self.session, self.rows = model, model.session, model.rows
        self.kept = KeptView.of(self.session)
        # the one that was kept is not chosen anew: what it is folded into stays folded
        self._seen = self.session.node if self.session.node == self.session.kept_node else -1
        self._before: tuple[str, str, bool, int] = ("", "", False, 0)
        self._filter_soon = Soon(self, self.apply_filter, FILTER_WAIT, model.state.owed, afresh=True)

    @property
    def range_from(self) -> int | None:
        return self.kept.range_from

    @range_from.setter
    def range_from(self, row: int | None) -> None:
        if row != self.kept.range_from:
            self.kept.range_from = row
            self.kept.keep(self.session)

    def chosen_rows(self) -> range:
        """The rows of the range that are there, without one the cursor's; the list must not be empty."""
        cursor, start = self.list.cursor, self.range_from
        start = cursor if start is None else min(start, len(self.rows) - 1)
        return range(min(cursor, start), max(cursor, start) + 1)

    def show_rows(self, row: int) -> None:
        """Show rows that are others than before, with the cursor on `row`."""
        raise NotImplementedError

    def update_head(self) -> None:
        """Show the names of the columns, and how many rows there are."""
        raise NotImplementedError

    def update_status(self) -> None:
        """Show what stands below the list."""
        raise NotImplementedError

    @property
    def filter(self) -> LineInput:
        """The line on which the filter is typed."""
        return self.query_one("#filter", LineInput)

    def write_filter(self) -> None:
        """Write on the filter; one that shows no rows of its own begins anew."""
        rows = self.rows
        self._before = (self.filter.value, rows.query, rows.narrowed, self.session.node)
        if not rows.narrowed:
            self.filter.set_value("")
        self.filter.focus()

    @on(LineInput.Changed, "#filter")
    def _filter_typed(self, event: LineInput.Changed) -> None:
        self._filter_soon.touch()

    def apply_filter(self) -> None:
        """Show the nodes that the filter, as it is typed, lets through."""
        self._filter_soon.cancel()
        if self.session.index is None or not self.is_mounted:
            return
        self.range_from = None
        self.rows.search(self.filter.value)
        # from where the cursor was when it was begun, whatever was typed on the way
        start = self._before[3] if self.filter.has_focus else self.session.node
        if not len(self.rows):
            self._seen = start
            self.session.select_node(start)
        self.show_rows(self.rows.row_of(start))
        self.update_head()
        self.update_status()
        self.session.remember("graph", filter=self.rows.query)

    async def _filter_done(self, value: str) -> None:
        self.apply_filter()
        self.list.focus()

    @on(LineInput.Cancelled, "#filter")
    def _filter_cancelled(self, event: LineInput.Cancelled) -> None:
        """All is as it was before the filter was written on: its rows, and the node under the cursor."""
        event.stop()
        self.list.focus()
        text, query, narrowed, node = self._before
        self.filter.set_value(query)
        self.apply_filter()
        self.filter.set_value(text)
        self.rows.narrowed = narrowed and self.rows.matches is not None
        self._seen = node
        self.session.select_node(node)
        self.show_rows(self.rows.row_of(node))
        self.update_head()

    def clear_filter(self) -> None:
        self.filter.set_value("")
        self.apply_filter()
