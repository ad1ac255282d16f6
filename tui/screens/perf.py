"""The Perf screen: the slowest layers of a bench of the open model, and benches started from here."""

from textual import on
from textual.app import ComposeResult
from textual.events import Resize

from backends.errors import LayerwiseError
from tui.commands import command
from tui.controllers.jobs import JobActions
from tui.controllers.perf import BenchStarter, line_of_node, node_of_layer, yank_targets
from tui.presenters.numbers import sig
from tui.presenters.perf import detail_lines, head_lines, heading, row_line
from tui.presenters.text import Line
from tui.screens.page import Page
from tui.screens.pick import PickScreen, yank_choices
from tui.state.coalesce import Coalesce
from tui.state.perf import SORTS
from tui.state.shared import AppState
from tui.widgets.line_input import LineInput
from tui.widgets.lines import LinesView, OneLine
from tui.widgets.virtual_list import GUTTER, VirtualList

TALL = 32
WAIT = 0.06
SELECT_WAIT = 0.25


class LayerRows:
    """Rows of the list, styled."""

    def __init__(self, app: AppState) -> None:
        self._app = app

    def __len__(self) -> int:
        return len(self._app.perf.order)

    def row(self, i: int, cells: int) -> Line:
        return row_line(self._app.perf, i, cells, self._app.glyphs)


class PerfScreen(Page, scope="perf"):
    """Figures above, layers in the middle, the layer under the cursor in full below."""

    DEFAULT_CSS = """
    PerfScreen #perf-head { height: 3; }
    PerfScreen #perf-list { height: 1fr; }
    PerfScreen #perf-detail { height: 3; }
    PerfScreen.tall #perf-detail { height: 5; }
    """

    def __init__(self, state: AppState) -> None:
        super().__init__(state)
        self.perf = state.perf
        self._list = VirtualList(LayerRows(state), glyphs=state.glyphs, id="perf-list")
        self._starter = BenchStarter(state)
        self._actions = JobActions(state)
        self._at = -1
        self._detail_soon = Coalesce(self._show_detail, WAIT)
        self._filter_soon = Coalesce(self._filter_now, WAIT)
        self._select_soon = Coalesce(self._select, SELECT_WAIT)

    def compose(self) -> ComposeResult:
        yield LinesView(id="perf-head")
        yield LineInput("/ ", id="perf-filter")
        yield OneLine(id="perf-heading")
        yield self._list
        yield LinesView(id="perf-detail")

    def on_mount(self) -> None:
        self.perf.on_change.subscribe(self._changed)
        self.session.on_index.subscribe(self._changed)
        text = self.session.filters.get("perf", "")
        self.query_one("#perf-filter", LineInput).set_value(text)
        self.perf.set_filter(text)
        self._changed()

    def main_widget(self) -> VirtualList:
        return self._list

    def shown_again(self) -> None:
        """Come to the node that is selected, where a layer stands for it."""
        index = self.session.index
        if index is not None and node_of_layer(index, self.perf.row_at(self._list.cursor)) != self.session.node:
            line = line_of_node(index, self.perf, self.session.node)
            if line >= 0:
                self._at = self.perf.order[line]
        self._changed()

    def on_resize(self, event: Resize) -> None:
        self.set_class(self.app.size.height >= TALL, "tall")
        self.call_after_refresh(self._changed)

    # ── drawing ──

    def _changed(self) -> None:
        """Rows or facts are others: keep the cursor on its layer, paint what differs."""
        if not self.display or not self.size.width:
            return
        line = self.perf.line_of(self._at)
        if line >= 0:
            self._list.move_to(line)
        self._list.sync()
        head = head_lines(self.perf, self.size.width - 2, self.state.glyphs)
        self.query_one("#perf-head", LinesView).set_lines([[(" ", ""), *found] for found in head])
        cells = self._list.size.width - GUTTER
        names: Line = [("  ", "head"), *heading(cells, self.perf.sort, self.perf.reverse, self.state.glyphs)]
        self.query_one("#perf-heading", OneLine).set_line(names)
        self.query_one("#perf-filter", LineInput).set_tail(self._filter_tail())
        self._detail_soon.touch()

    def _filter_tail(self) -> Line:
        if self.perf.filter_problem:
            return [(self.perf.filter_problem, "bad")]
        if not self.perf.filter_text:
            return [("words, or op:MatMul share>1 ms>0.1", "dim")]
        return [(f"{len(self.perf.order):,} of {len(self.perf.rows):,}", "dim")]

    def _show_detail(self) -> None:
        if not self.is_mounted or not self.size.width:
            return
        row = self.perf.row_at(self._list.cursor)
        lines = detail_lines(row, self._error_of(row), max(20, self.size.width - 2))
        self.query_one("#perf-detail", LinesView).set_lines(lines)

    def _error_of(self, row: dict[str, object]) -> str:
        error = self.session.errors.get(node_of_layer(self.session.index, row))
        if error is None:
            return ""
        verdict = {True: "passed", False: "failed", None: "no verdict"}[error.passed]
        return f"{sig(error.max_abs)} largest difference in the comparison on view: {error.finding or verdict}"

    @on(VirtualList.Highlighted, "#perf-list")
    def _cursor_moved(self) -> None:
        line = self._list.cursor
        self._at = self.perf.order[line] if line < len(self.perf.order) else -1
        self._detail_soon.touch()
        self._select_soon.touch()

    def _select(self) -> None:
        """The node of the layer under the cursor is the one selected on all screens."""
        node = node_of_layer(self.session.index, self.perf.row_at(self._list.cursor))
        if self.display and node >= 0:
            self.session.select_node(node)

    # ── filter and sort ──

    @command("perf.filter", "filter: words, or op:MatMul share>1 ms>0.1", keys="slash", footer="filter")
    def focus_filter(self) -> None:
        self.query_one("#perf-filter", LineInput).focus()

    @command("perf.filter_line", "filter by an expression", line="filter EXPRESSION")
    def filter_line(self, text: str = "") -> None:
        self.query_one("#perf-filter", LineInput).set_value(text)
        self._filter_now()

    @on(LineInput.Changed, "#perf-filter")
    def _filter_changed(self) -> None:
        self._filter_soon.touch()

    def _filter_now(self) -> None:
        text = self.query_one("#perf-filter", LineInput).value
        self.perf.set_filter(text)
        if not self.perf.filter_problem:
            self.session.remember("perf", filter=text)
        self._changed()

    @on(LineInput.Submitted, "#perf-filter")
    def _filter_done(self) -> None:
        self._filter_soon.flush()
        self._list.focus()

    @on(LineInput.Cancelled, "#perf-filter")
    def _filter_left(self) -> None:
        self.clear_filter()
        self._list.focus()

    @command("perf.clear", "show all layers again", keys="escape")
    def clear_filter(self) -> None:
        if self.perf.filter_text or self.perf.filter_problem:
            self.filter_line("")

    @command("perf.sort", "sort by the next column", keys="s", footer="sort")
    def sort(self) -> None:
        self.sort_by(SORTS[(SORTS.index(self.perf.sort) + 1) % len(SORTS)])

    @command("perf.sort_by", "sort by a column", line="sort COLUMN", complete="columns")
    def sort_by(self, name: str = "") -> None:
        if name not in SORTS:
            self.state.say(f"columns to sort by: {', '.join(SORTS)}", "bad")
            return
        self.perf.sort_by(name)
        self._to_top()

    def columns(self, prefix: str) -> list[str]:
        """Completions of a column's name."""
        return [name for name in SORTS if name.startswith(prefix)]

    @command("perf.reverse", "reverse the order", keys="S")
    def reverse(self) -> None:
        self.perf.reverse_sort()
        self._to_top()

    def _to_top(self) -> None:
        self._at = self.perf.order[0] if self.perf.order else -1
        self._changed()

    @command("perf.runner", "layers of the next runner", keys="n", line="runner")
    def next_runner(self) -> None:
        self.perf.next_runner()
        self._to_top()

    # ── benches, and the way to the node ──

    @command("perf.bench", "time the model again, layer by layer", keys="b", footer="bench")
    def start(self) -> None:
        self.run_worker(self._start(""), group="bench-start")

    @command("perf.bench_line", "time the model with options of `layerwise bench`", line="bench OPTIONS")
    def start_with(self, words: str = "") -> None:
        self.run_worker(self._start(words), group="bench-start")

    async def _start(self, words: str) -> None:
        if self.perf.facts.live:
            self.state.say(f"job {self.perf.job} is not over: K stops it")
            return
        try:
            job = await self._starter.start(words)
        except LayerwiseError as error:
            self.state.say(str(error), "bad")
            return
        self.state.say(f"job {job}: timing the model")

    @command("perf.cancel", "stop the bench", keys="K", line="cancel")
    def cancel(self) -> None:
        if self.perf.facts.live:
            self.run_worker(self._actions.cancel(self.perf.job), group="bench-start")
        else:
            self.state.say("no bench is running")

    @on(VirtualList.Selected, "#perf-list")
    @command("perf.node", "the layer's operator in the Graph screen", keys="o", footer="graph", line="node")
    def show_node(self) -> None:
        node = node_of_layer(self.session.index, self.perf.row_at(self._list.cursor))
        if node < 0:
            self.state.say("this layer is none of the open model's: the backend made it", "warn")
            return
        self.session.select_node(node)
        self.post_message(self.Open("graph"))

    @command("perf.yank", "copy the layer's name, its node or the command line", keys="y", footer="yank")
    def yank(self) -> None:
        choices = yank_choices(yank_targets(self.perf.spec, self.perf.row_at(self._list.cursor)))
        if choices:
            self.app.push_screen(PickScreen("Copy", choices, self.state.glyphs), self._yanked)

    def _yanked(self, text: object) -> None:
        if isinstance(text, str):
            self.post_message(self.Yank(text))
