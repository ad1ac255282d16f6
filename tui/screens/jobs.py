"""The Jobs screen: all jobs of the workspace, live, and what the one under the cursor says."""

import asyncio
import time
from typing import Any

from textual import on
from textual.app import ComposeResult

from layerwise._tool.backends.jobs.journal.view import JobView
from layerwise._tool.backends.sizes import size_text
from layerwise._tool.backends.text import shown
from layerwise._tool.tui.commands import command
from layerwise._tool.tui.controllers.jobs import PRUNABLE, JobActions, read_tail
from layerwise._tool.tui.controllers.opening import engines_of
from layerwise._tool.tui.controllers.shared import Controllers
from layerwise._tool.tui.presenters.jobs import count_line, empty_line, head_line, heading, pane_of, row_line
from layerwise._tool.tui.presenters.names import Names
from layerwise._tool.tui.presenters.short_titles import short_titles
from layerwise._tool.tui.presenters.text import Line
from layerwise._tool.tui.screens.chooser import Choice
from layerwise._tool.tui.screens.gpus import GpuStrip
from layerwise._tool.tui.screens.job_pane import JobPane
from layerwise._tool.tui.screens.page import Page, turns_pane
from layerwise._tool.tui.screens.searching import Answering
from layerwise._tool.tui.state.job_list import ModelHead
from layerwise._tool.tui.state.jobs import indexed_model
from layerwise._tool.tui.state.shared import AppState
from layerwise._tool.tui.typed.settling import Waits
from layerwise._tool.tui.widgets.following import Soon, follow, run_latest, run_work
from layerwise._tool.tui.widgets.line_input import LineInput
from layerwise._tool.tui.widgets.lines import OneLine
from layerwise._tool.tui.widgets.virtual_list import GUTTER, LiveRows, VirtualList

DETAIL_WAIT = 0.25
DESCRIBES = "inspect_trt"  # its journal is what was asked for, from the first line on


class JobsScreen(Page, scope="jobs"):
    """List above, the job's facts, question, crash card and log below."""

    DEFAULT_CSS = """
    JobsScreen #jobs-list { height: 1fr; min-height: 4; }
    JobsScreen #jobs-detail { height: 60%; }
    """

    def __init__(self, state: AppState, controllers: Controllers) -> None:
        super().__init__(state, controllers)
        self._answering = Answering(self, self._in_view, self._question)
        self.groups = (self._answering,)
        self._now = time.time()  # ages are those of the last change: an idle list writes nothing
        self._titles: dict[str, str] = {}
        self._names, self._list = Names(state.glyphs), state.jobs.list
        rows = LiveRows(lambda: len(self._list.rows), self._line)
        self.main_list = VirtualList(rows, glyphs=state.glyphs, id="jobs-list", names=self._names)
        self.main_list.moved = self._note_job
        self._actions = JobActions(state)
        kept = state.session.forms.get("jobs")
        self._at = kept if isinstance(kept, int) else 0
        self._chosen = bool(self._at)
        self._before, self._in_force = self._at, ""
        self._raw = False
        self._detail_soon = Soon(self, self._read_detail, DETAIL_WAIT, state.owed)

    def compose(self) -> ComposeResult:
        yield LineInput("/ ", id="jobs-filter")
        yield GpuStrip(self.state)
        yield OneLine(id="jobs-heading")
        yield self.main_list
        yield OneLine(id="jobs-title")
        yield JobPane(id="jobs-detail")

    def on_mount(self) -> None:
        follow(self, self.state.jobs.on_change, self.paint)
        text = self.session.filters.get("jobs", "")
        self.filter.set_value(text)
        self.set_filter(text)

    @property
    def filter(self) -> LineInput:
        """The line on which the filter is typed."""
        return self.query_one("#jobs-filter", LineInput)

    def _line(self, i: int, cells: int) -> Line:
        view = self._list.rows[i]
        if isinstance(view, ModelHead):
            return head_line(view, cells, self.state.glyphs)
        spec = self.state.jobs.spec(view)
        title = (spec.title or spec.action) if spec else view.damage or "its spec.json cannot be read"
        title = self._titles.get(title, title)
        return row_line(view, title, self._now, cells, self.state.glyphs, self._names)

    def _in_view(self) -> JobView | None:
        return self._list.view(self.main_list.cursor)

    def _question(self) -> tuple[int, dict[str, Any] | None]:
        view = self._in_view()
        return (0, None) if view is None else (view.id, view.question)

    # ── drawing ──

    def paint(self) -> None:
        if not self.display or not self.size.width:
            return
        self._now = time.time()
        specs = map(self.state.jobs.spec, self._list.jobs())
        self._titles = short_titles({spec.title for spec in specs if spec is not None})
        line, chosen = self.state.jobs.index_of(self._at), self._chosen
        if line >= 0 or self.filter.has_focus:
            self.main_list.move_to(line)
        self.main_list.sync()
        self._chosen = chosen  # a job that has moved down the list is not chosen by that
        if not self._at:
            self._note_job(told=False)
        self._answering.changed()
        names: Line = [("  ", "head"), *heading(self.main_list.size.width - GUTTER)]
        self.query_one("#jobs-heading", OneLine).set_line(names)
        problem = self._list.filter_problem
        self.filter.set_tail([(problem, "bad")] if problem else count_line(self._list))
        self._detail_soon.touch()

    @on(VirtualList.Highlighted, "#jobs-list")
    def _cursor_moved(self) -> None:
        self.session.remember("jobs", form=self._at)
        self._answering.changed()
        self._detail_soon.touch()

    def _note_job(self, told: bool) -> None:
        """The cursor stays on this job, whatever jobs come."""
        view = self._in_view()
        self._at, self._chosen = view.id if view else 0, told or self._chosen

    def shown_again(self) -> None:
        """The newest job of the user is the one to look at, unless another one was chosen."""
        if self.state.jobs.asked:
            self._at, self._chosen, self.state.jobs.asked = self.state.jobs.asked, True, 0
        if not self._chosen:
            run_work(self, "jobs-newest", self._go_to_newest, Waits.ROWS)
        self.paint()

    async def _go_to_newest(self) -> None:
        """That is the one that was asked for just before, too, which the watch has not come to yet."""
        jobs = self.state.jobs
        views = await asyncio.to_thread(self.state.workspace.list_jobs, jobs.views)
        if self._chosen:
            return
        self._at = 0  # else the cursor would stay on the job where it is when they are painted
        jobs.set_views(views)
        self.main_list.move_to(self._list.newest())
        self._chosen = False
        self.paint()

    def _read_detail(self) -> None:
        if self.display and self.is_mounted:
            run_latest(self, "job-detail", self._show_detail)

    async def _show_detail(self) -> None:
        view = self._in_view()
        pane = self.query_one(JobPane)
        if view is None:
            self.query_one("#jobs-title", OneLine).set_line(empty_line(self._list))
            pane.set_lines([])
            return
        spec = self.state.jobs.spec(view)
        describes = spec is not None and spec.action == DESCRIBES
        tail = await read_tail(view, whole=describes)
        cells, glyphs, asked = max(20, self.size.width - 2), self.state.glyphs, self._answering.asked()
        title, lines = pane_of(view, spec, asked, tail, cells, glyphs, raw=self._raw, said_first=describes)
        self.query_one("#jobs-title", OneLine).set_line(title)
        pane.put(view.id, lines)

    # ── commands ──

    @on(VirtualList.Selected, "#jobs-list")
    @command("jobs.open", "show its table, its search or its model, else what it said", keys="enter", footer="open",
             line="open-job")  # fmt: skip
    def open_job(self) -> None:
        view = self._in_view()
        if view is None:
            return
        page, model = self._actions.show(view), indexed_model(self.state.jobs.spec(view))
        if page or (model is not None and model == self.session.model):
            self.open(page or "graph")
        elif model is not None:
            self.post_message(self.OpenModel(model))
        else:
            self.query_one(JobPane).focus()
            self.state.say(f"job {view.id} has no screen of its own: below is what it said; tab goes back to the list")

    # ── which jobs ──

    @command("jobs.filter", "filter: words, or model:bert state:failed size>50MB", keys="slash", footer="filter")
    def focus_filter(self) -> None:
        self._before, self._in_force = self._at, self._list.filter_text
        self.filter.focus()

    @command("jobs.filter_line", "filter by an expression", line="filter EXPRESSION")
    def set_filter(self, text: str = "") -> None:
        self.filter.set_value(text)
        self._apply(text)

    @on(LineInput.Changed, "#jobs-filter")
    def _filter_typed(self, event: LineInput.Changed) -> None:
        self._apply(event.value)

    def _apply(self, text: str) -> None:
        typing = self.filter.has_focus  # what is typed on the way moves no cursor, and leaves no filter behind
        self._list.set_filter(text, self._in_force if typing else None)
        self.session.remember("jobs", filter=self._list.filter_text)
        if typing:
            self._at = self._before
        self.state.jobs.lay()

    @on(LineInput.Submitted, "#jobs-filter")
    def _filter_done(self) -> None:
        self._note_job(told=True)
        self.main_list.focus()

    @on(LineInput.Cancelled, "#jobs-filter")
    def _filter_left(self, event: LineInput.Cancelled) -> None:
        event.stop()
        self.main_list.focus()
        self.set_filter("")

    @command("jobs.clear", "show all jobs again", keys="escape", means="back")
    def clear_filter(self) -> None:
        if self._list.filter_text or self._list.filter_problem:
            self.set_filter("")

    @command("jobs.sort", "newest first, largest first, or below their models", keys="s", footer="sort")
    def sort(self) -> None:
        self._list.cycle_sort()
        self.state.jobs.lay()

    @command("jobs.cancel", "cancel the job (asks first)", keys="K", footer="cancel")
    def cancel(self) -> None:
        self._answering.offer_cancel()

    @command("jobs.retry", "start it again; finished rows are kept", keys="r", means="start", footer="retry")
    def retry(self) -> None:
        self._answering.retry_in_view()

    @command("jobs.answer", "answer the job's question (its own keys do, too)", keys="A", line="answer TEXT",
             complete="answers")  # fmt: skip
    def answer(self, text: str = "") -> None:
        self._answering.answer(text)

    def answers(self, prefix: str) -> list[str]:
        return self._answering.answers(prefix)

    @command("jobs.engine", "what is in the TensorRT engine that the job built or ran", keys="i", line="engine")
    async def inspect_engine(self) -> None:
        view = self._in_view()
        engines = await asyncio.to_thread(engines_of, view) if view else []
        if view is None or not engines:
            self.state.say("this job has no engine on file")
        elif len(engines) == 1:
            await self._inspect((view, engines[0][1]))
        else:
            choices = [Choice([(f"{shown(name, 40)}  ", "key"), (shown(path, 200), "")], (view, path))
                       for name, path in engines]  # fmt: skip
            self.choose("Which engine?", choices, self._engine_picked)

    def _engine_picked(self, picked: tuple[JobView, str]) -> None:
        run_latest(self, "job-action", lambda: self._inspect(picked), Waits.DEED)

    async def _inspect(self, picked: tuple[JobView, str]) -> None:
        """The description comes as the journal of a job of its own, which comes into view."""
        with self.state.telling():
            self._at = await self._actions.inspect(*picked)

    @command("jobs.prune", "remove ended jobs and their files", keys="P", footer="prune", line="prune")
    def prune(self) -> None:
        choices: list[Choice] = []
        for what, text, key in PRUNABLE[0 if self._list.filter_text else 1 :]:
            jobs = self._actions.prunable(what)
            size = size_text(sum(view.bytes_on_disk for view in self.state.jobs.views if view.id in jobs))
            choices.append(Choice([(f"{key}  ", "key"), (f"{text}: {len(jobs)}, {size}", "")], jobs, key))
        choices.append(Choice([("n  ", "key"), ("nothing", "")], None, "n"))
        self.choose("Remove which jobs?", choices, self._prune)

    def _prune(self, jobs: list[int]) -> None:
        if jobs:
            run_work(self, "job-action", lambda: self._actions.prune(jobs))

    @command("jobs.log", "journal or raw output", keys="J", footer="log")
    def toggle_log(self) -> None:
        self._raw = not self._raw
        self.query_one(JobPane).begin_anew()
        self._detail_soon.touch()

    toggle_pane = turns_pane("jobs.pane", "scroll the log, or back to the list")

    @command("jobs.yank", "copy the command, folder or crash card", keys="y", footer="yank")
    def yank(self) -> None:
        view = self._in_view()
        if view is not None:
            self.offer_copies(self._actions.copies(view))
