"""The Debug screen: a search for the culprit as it goes, the question it waits with, and what it has found."""

from pathlib import Path

from textual import on
from textual.app import ComposeResult
from textual.events import Resize

from backends.errors import LayerwiseError
from backends.jobs.view import JobView
from tui.commands import command
from tui.controllers.debug_start import SEARCH_WORDS
from tui.presenters.compare_text import side_names
from tui.presenters.debug import body_lines, empty_lines, head_lines
from tui.presenters.debug_rows import heading, row_line
from tui.presenters.text import Line
from tui.screens.answering import Answering
from tui.screens.pick import PickScreen, yank_choices
from tui.screens.searching import Searching
from tui.state.shared import AppState
from tui.widgets.detail_pane import DetailPane
from tui.widgets.lines import LinesView, OneLine
from tui.widgets.virtual_list import GUTTER, VirtualList

HEAD_LINES = 4


class DebugRows:
    """Rows of the list, styled; the newest verdict first."""

    def __init__(self, app: AppState) -> None:
        self._app = app

    def __len__(self) -> int:
        return len(self._app.debug.rows)

    def row(self, i: int, cells: int) -> Line:
        debug = self._app.debug
        return row_line(debug.search, debug.rows[debug.place(i)], cells, self._app.glyphs)


class DebugScreen(Answering, Searching, scope="debug"):
    """The band above, the question and the result in the middle, the history below."""

    DEFAULT_CSS = """
    DebugScreen #debug-head { height: auto; max-height: 4; min-height: 1; }
    DebugScreen #debug-body { height: 1fr; min-height: 4; }
    DebugScreen #debug-rows { height: 40%; min-height: 3; }
    DebugScreen.empty #debug-rows, DebugScreen.empty #debug-heading { display: none; }
    """

    def __init__(self, state: AppState) -> None:
        super().__init__(state)
        self.debug = state.debug
        self._list = VirtualList(DebugRows(state), glyphs=state.glyphs, id="debug-rows")

    def compose(self) -> ComposeResult:
        yield LinesView(id="debug-head")
        yield DetailPane(id="debug-body")
        yield OneLine(id="debug-heading")
        yield self._list

    def on_mount(self) -> None:
        self.debug.on_change.subscribe(self._changed)
        self.state.jobs.on_change.subscribe(self._changed)
        self._changed()

    def main_widget(self) -> VirtualList | DetailPane:
        return self.query_one("#debug-body", DetailPane) if self.has_class("empty") else self._list

    def shown_again(self) -> None:
        self._changed()

    def on_resize(self, event: Resize) -> None:
        self.call_after_refresh(self._changed)

    def job_in_view(self) -> JobView | None:
        return next((view for view in self.state.jobs.views if view.id == self.debug.job), None)

    # ── drawing ──

    def _changed(self) -> None:
        if not self.display or not self.size.width:
            return
        cells, glyphs = self.size.width - 2, self.state.glyphs
        self.set_class(not self.debug.job, "empty")
        head, body = self.query_one("#debug-head", LinesView), self.query_one("#debug-body", DetailPane)
        if not self.debug.job:
            head.set_lines([])
            body.set_lines([[(" ", ""), *line] for line in empty_lines(self.starter.ready())])
            return
        lines = head_lines(self.debug, self._sides(), cells, glyphs)[:HEAD_LINES]
        head.styles.height = len(lines)
        head.set_lines([[(" ", ""), *line] for line in lines])
        body.set_lines([[(" ", ""), *line] for line in body_lines(self.debug, self.asked(), cells, glyphs)])
        names: Line = [("  ", "head"), *heading(self.debug.search, self._list.size.width - GUTTER)]
        self.query_one("#debug-heading", OneLine).set_line(names)
        self._list.sync()
        self.question_changed()

    def _sides(self) -> str:
        compare = self.debug.compare
        return " against ".join(side_names(compare.runners)) if compare is not None else ""

    # ── starting ──

    @command("debug.locate", "locate: which node is wrong by itself", keys="L", footer="locate", line="locate")
    def locate(self) -> None:
        self.start_search("locate")

    @command("debug.reduce", "reduce to the smallest part that fails", keys="d", footer="reduce", line="reduce")
    def reduce(self) -> None:
        self.start_search("reduce")

    @command("debug.bisect", "bisect: the first node at which it goes wrong", keys="b", footer="bisect", line="bisect")
    def bisect(self) -> None:
        self.start_search("bisect")

    @command("debug.by_hand", "bisect by hand: you answer good or bad", keys="i", footer="by hand", line="byhand")
    def by_hand(self) -> None:
        self.start_search("bisect", by_hand=True)

    @command("debug.precision", "which nodes must stay FP32", keys="p", line="precision")
    def precision(self) -> None:
        self.start_search("precision")

    @command("debug.triage", "triage: the accuracy flowchart, step by step", keys="t", footer="triage", line="triage")
    def triage(self) -> None:
        self.start_search("triage")

    @command("debug.start", "start a search by its name", line="search NAME", complete="searches")
    def start(self, name: str = "") -> None:
        if name in SEARCH_WORDS:
            self.start_search(name)
        else:
            self.state.say(f"searches: {', '.join(SEARCH_WORDS)}", "bad")

    def searches(self, prefix: str) -> list[str]:
        """Completions of a search's name."""
        return [name for name in SEARCH_WORDS if name.startswith(prefix)]

    # ── the search in view ──

    @command("debug.answer", "answer the question", keys="a", line="answer TEXT", complete="answers")
    def answer(self, text: str = "") -> None:
        super().answer(text)

    @command("debug.cancel", "stop the search; what it has found stays", keys="K", footer="cancel")
    def cancel(self) -> None:
        view = self.job_in_view()
        if view is None or view.final:
            self.state.say("no search is running")
        else:
            self.run_worker(self.starter.cancel(view.id), group="job-action")

    @command("debug.retry", "go on with a search that has ended", keys="r", line="retry")
    def retry(self) -> None:
        view = self.job_in_view()
        if view is not None:
            self.run_worker(self.starter.retry(view.id), group="job-action")

    @on(VirtualList.Selected, "#debug-rows")
    @command("debug.node", "the row's node in the Graph screen", keys="enter", footer="graph", line="node")
    def show_node(self) -> None:
        node = self.starter.node_of(self._row())
        if node < 0:
            self.state.say("this row names no node of the open model")
            return
        self.session.select_node(node)
        self.post_message(self.Open("graph"))

    def _row(self) -> dict[str, object]:
        cursor = self._list.cursor
        return self.debug.rows[self.debug.place(cursor)] if cursor < len(self.debug.rows) else {}

    @command("debug.open", "open the candidate, or the model that was found", keys="o", footer="open model",
             line="open-found")  # fmt: skip
    def open_found(self) -> None:
        question = self.asked()
        artifact = question.more.get("artifact") if question else None
        path = artifact.get("model") if isinstance(artifact, dict) else self.debug.model_path()
        if not path or not Path(path).is_file():
            self.state.say("there is no model yet")
        else:
            self.post_message(self.OpenModel(Path(path)))

    @command("debug.bundle", "write a repro bundle of what was found", keys="B", footer="bundle", line="bundle FOLDER")
    def bundle(self, folder: str = "") -> None:
        self.run_worker(self._bundle(folder), group="debug-start")

    async def _bundle(self, folder: str) -> None:
        try:
            self.state.say(await self.starter.bundle(self.debug, self._row(), folder), "good")
        except LayerwiseError as error:
            self.state.say(str(error), "bad")

    @command("debug.yank", "copy the command line, a path or the answer", keys="y", footer="yank")
    def yank(self) -> None:
        choices = yank_choices(self.starter.yank_targets(self.debug, self.asked()))
        if choices:
            self.app.push_screen(PickScreen("Copy", choices, self.state.glyphs), self._yanked)

    def _yanked(self, text: object) -> None:
        if isinstance(text, str):
            self.post_message(self.Yank(text))
