"""The Perf screen: the slowest layers of a bench of the open model, and benches started from here."""

from textual import on
from textual.app import ComposeResult

from layerwise._tool.debugtools.bench.rows import ProfileRow
from layerwise._tool.tui.commands import command
from layerwise._tool.tui.controllers.jobs import JobActions
from layerwise._tool.tui.controllers.perf import BenchStarter, line_of_node, node_of_layer, yank_targets
from layerwise._tool.tui.controllers.shared import Controllers
from layerwise._tool.tui.presenters.numbers import sig
from layerwise._tool.tui.presenters.perf import TITLES, detail_lines, head_lines, heading, row_line
from layerwise._tool.tui.presenters.text import Line
from layerwise._tool.tui.presenters.verdicts import error_word
from layerwise._tool.tui.screens.job_table import JobTable
from layerwise._tool.tui.screens.page import Page
from layerwise._tool.tui.state.jobs import not_of_open_model
from layerwise._tool.tui.state.shared import AppState
from layerwise._tool.tui.widgets.following import Soon, follow, run_work
from layerwise._tool.tui.widgets.line_input import LineInput
from layerwise._tool.tui.widgets.virtual_list import VirtualList

SELECT_WAIT = 0.25


class LayerRows(JobTable, scope="perf"):
    """The layers of a bench."""

    FILTERS = "words, or op:MatMul share>1 ms>0.1"
    TITLES = TITLES

    def __init__(self, state: AppState) -> None:
        super().__init__(state, state.perf)
        self._perf = state.perf

    def row_line(self, i: int, cells: int) -> Line:
        return row_line(self._perf, i, cells, self.names, self._glyphs)

    def head(self, cells: int) -> list[Line]:
        return head_lines(self._perf, cells, self._glyphs)

    def heading(self, cells: int) -> Line:
        return heading(cells, self._perf.sort, self._perf.reverse, self._glyphs)

    def detail(self, place: int, cells: int) -> list[Line]:
        row = self._perf.rows[place]
        return detail_lines(row, self._error_of(row), cells)

    def _error_of(self, row: ProfileRow) -> str:
        session = self._state.session
        if self._perf.other:
            return ""
        error = session.errors.get(node_of_layer(session.index, row))
        if error is None:
            return ""
        return f"max-abs {sig(error.max_abs)} in the comparison on view: {error_word(error)[0]}"


class PerfScreen(Page, scope="perf"):
    """Figures above, layers in the middle, the layer under the cursor in full below."""

    DEFAULT_CSS = """
    PerfScreen #perf-list { height: 1fr; }
    PerfScreen #perf-detail { height: 3; }
    PerfScreen .tall #perf-detail { height: 5; }
    """

    def __init__(self, state: AppState, controllers: Controllers) -> None:
        super().__init__(state, controllers)
        self.perf = state.perf
        self.table = LayerRows(state)
        self.main_list = self.table.list
        self.groups = (self.table,)
        self._starter = BenchStarter(state)
        self._actions = JobActions(state)
        self._select_soon = Soon(self, self._select, SELECT_WAIT, state.owed)

    def compose(self) -> ComposeResult:
        yield self.table

    def on_mount(self) -> None:
        follow(self, self.session.on_index, self.table.changed)

    def paint(self) -> None:
        self.table.changed()

    def shown_again(self) -> None:
        """Come to the node that is selected, where a layer stands for it."""
        index = self.session.index
        if index is not None and not self.perf.other and node_of_layer(index, self._row) != self.session.node:
            line = line_of_node(index, self.perf, self.session.node)
            if line >= 0:
                self.table.come_to(self.perf.place(line))

    @property
    def _row(self) -> ProfileRow | None:
        """The row under the cursor."""
        return self.perf.row_at(self.table.list.cursor)

    @on(VirtualList.Highlighted)
    def _select_with_cursor(self) -> None:
        self._select_soon.touch()

    def _select(self) -> None:
        """The node of the layer under the cursor is the one selected on all screens."""
        node = node_of_layer(self.session.index, self._row)
        if self.display and node >= 0 and not self.perf.other:
            self.session.select_node(node)

    @command("perf.clear", "show all layers again", keys="escape", means="back")
    def clear_filter(self) -> None:
        self.table.clear_filter()

    @on(LineInput.Cancelled)
    def _filter_left(self) -> None:
        self.table.leave_filter()

    @command("perf.runner", "layers of the next runner", keys="semicolon", line="runner")
    def next_runner(self) -> None:
        self.perf.next_runner()
        self.table.reordered()

    # ── benches, and the way to the node ──

    @command("perf.bench", "time the model again, layer by layer", keys="r", means="start", footer="bench")
    def start(self) -> None:
        run_work(self, "bench-start", lambda: self._start(""))

    @command("perf.bench_line", "time the model with options of `layerwise bench`", line="bench OPTIONS")
    def start_with(self, words: str = "") -> None:
        run_work(self, "bench-start", lambda: self._start(words))

    async def _start(self, words: str) -> None:
        if self.perf.facts.live:
            self.state.say(f"job {self.perf.job} is not over: K stops it")
            return
        with self.state.telling():
            job = await self._starter.start(words)
            self.state.say(f"job {job}: timing the model", job=job)

    @command("perf.cancel", "stop the bench", keys="K", line="cancel")
    def cancel(self) -> None:
        if self.perf.facts.live:
            run_work(self, "bench-start", lambda: self._actions.cancel(self.perf.job))
        else:
            self.state.say("no bench is running")

    @on(VirtualList.Selected)
    @command("perf.node", "the layer's operator in the Graph screen", keys="o", footer="graph", line="node")
    def show_node(self) -> None:
        if self.perf.other:
            self.state.say(not_of_open_model(self.perf.job, self.perf.other), "warn")
            return
        node = node_of_layer(self.session.index, self._row)
        if node < 0:
            self.state.say("this layer is none of the open model's: the backend made it", "warn")
            return
        self.session.select_node(node)
        self.open("graph")

    @command("perf.yank", "copy the layer's name, its node or the command line", keys="y", footer="yank")
    def yank(self) -> None:
        self.offer_copies(yank_targets(self.perf.spec, self._row))
