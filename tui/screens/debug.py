"""The Debug screen: a search for the culprit as it goes, the question it waits with, and what it has found."""

import time
from collections.abc import Callable
from pathlib import Path

from textual import on
from textual.app import ComposeResult

from layerwise._tool.backends.jobs.journal.view import JobView
from layerwise._tool.debugtools.search.lens.rows import EffectRow
from layerwise._tool.tui.commands import Command, Commands, command, in_scopes
from layerwise._tool.tui.controllers.debugging import SEARCH_WORDS
from layerwise._tool.tui.controllers.shared import Controllers
from layerwise._tool.tui.presenters.compare_text import side_names
from layerwise._tool.tui.presenters.debug import body_lines, empty_lines
from layerwise._tool.tui.presenters.debug_list import head_lines, heading, row_detail, row_line
from layerwise._tool.tui.presenters.names import Names
from layerwise._tool.tui.presenters.text import Line
from layerwise._tool.tui.screens.lens_keys import LensKeys
from layerwise._tool.tui.screens.page import Page, turns_pane
from layerwise._tool.tui.screens.searching import Answering, DebugFound, Searching
from layerwise._tool.tui.state.debug_rows import Shown
from layerwise._tool.tui.state.kept_place import KeptCursor
from layerwise._tool.tui.state.questions import Question
from layerwise._tool.tui.state.shared import AppState
from layerwise._tool.tui.widgets.following import Soon, follow
from layerwise._tool.tui.widgets.lines import DetailPane, LinesView, OneLine
from layerwise._tool.tui.widgets.virtual_list import GUTTER, LiveRows, VirtualList

TALL = 32
LEAST_ROWS = 3
DETAIL_WAIT = 0.06
ASKING = ("debug.open", "debug.yank", "debug.cancel", "debug.pane")
RUNNING = ("debug.node", "debug.cancel", "debug.open")
ENDED = ("debug.node", "debug.open", "debug.bundle", "debug.yank", "debug.retry")
LENS = ("debug.keep", "debug.prove")
STARTS = ("debug.locate", "debug.reduce", "debug.bisect", "debug.by_hand", "debug.precision", "debug.triage",
          "debug.invariants")  # fmt: skip


def _starts(
    search: str, title: str, key: str, word: str = "", *, by_hand: bool = False
) -> Callable[["DebugStarts"], None]:
    """The command that starts a search. word: what it is called on the screen."""
    word = word or search

    def start(self: "DebugStarts") -> None:
        self._searching.start(search, by_hand=by_hand)

    id, line = f"debug.{word.replace(' ', '_')}", word.replace(" ", "")
    return command(id, title, keys=key, footer=word, line=line)(start)


class DebugStarts(Commands, scope="debug"):
    """Searches to start."""

    def __init__(self, state: AppState, searching: Searching) -> None:
        self._state, self._searching = state, searching

    locate = _starts("locate", "locate: which node is wrong by itself", "L")
    reduce = _starts("reduce", "reduce to the smallest part that fails", "d")

    @command("debug.bisect", "bisect: the first node at which it goes wrong", keys="b", footer="bisect", line="bisect")
    def bisect(self) -> None:
        """The key also answers: pressed before its question is there, it must not start another search."""
        if self._state.debug.live:
            self._state.say(f"job {self._state.debug.job} is not over: K stops it")
        else:
            self._searching.start("bisect")

    by_hand = _starts("bisect", "bisect by hand: you answer good or bad", "I", "by hand", by_hand=True)
    precision = _starts("precision", "which nodes must stay FP32", "F")
    triage = _starts("triage", "triage: the accuracy flowchart, step by step", "t")
    invariants = _starts("invariants", "invariants: relations between runs of this model; no reference is needed", "Q")
    builds = _starts("build", "builds: how often a build of the engine fails, and by which tactic", "V", "builds")

    @command("debug.start", "start a search by its name", line="search NAME", complete="searches")
    def start(self, name: str = "") -> None:
        if name in SEARCH_WORDS:
            self._searching.start(name)
        else:
            self._state.say(f"searches: {', '.join(SEARCH_WORDS)}", "bad")

    def searches(self, prefix: str) -> list[str]:
        """Completions of a search's name."""
        return [name for name in SEARCH_WORDS if name.startswith(prefix)]


class DebugScreen(Page, scope="debug"):
    """The band above, the question, the result and the row under the cursor in the middle, the history below."""

    DEFAULT_CSS = """
    DebugScreen #debug-head { height: auto; max-height: 5; min-height: 1; }
    DebugScreen #debug-body { height: 1fr; min-height: 4; }
    DebugScreen #debug-rows { height: 45%; min-height: 3; }
    DebugScreen.empty #debug-rows, DebugScreen.empty #debug-heading { display: none; }
    """

    def __init__(self, state: AppState, controllers: Controllers) -> None:
        super().__init__(state, controllers)
        self.debug = state.debug
        self._searching = Searching(self)
        self._answering = Answering(self, self._job_in_view, lambda: (self.debug.job, self.debug.question))
        self._found = DebugFound(self, self._searching, self._answering, self._row)
        self.groups = (self._found, DebugStarts(state, self._searching), self._answering, LensKeys(self, self._row))
        self._names = Names(state.glyphs)
        rows = LiveRows(lambda: len(state.debug.rows), self._line)
        self.main_list = VirtualList(rows, glyphs=state.glyphs, id="debug-rows", names=self._names)
        self.main_list.moved = self._note_row
        self._kept = KeptCursor(state.session, self.SCOPE)
        self._shown: tuple[object, ...] = ()
        self._offers: tuple[str, ...] = ()
        self._body_soon = Soon(self, self._show_body, DETAIL_WAIT, state.owed)

    def compose(self) -> ComposeResult:
        yield LinesView(id="debug-head")
        yield DetailPane(id="debug-body")
        yield OneLine(id="debug-heading")
        yield self.main_list

    def on_mount(self) -> None:
        follow(self, self.debug.on_change, self.paint)
        follow(self, self.state.jobs.on_change, self.paint)
        self.paint()

    def main_widget(self) -> VirtualList | DetailPane:
        return self.query_one("#debug-body", DetailPane) if self.has_class("empty") else self.main_list

    def _line(self, i: int, cells: int) -> Line:
        row = self.debug.row_at(i)
        if not isinstance(row, EffectRow):
            return row_line(row, cells, self._names, self.state.glyphs)
        kept, gain = row.i in self.debug.in_fp32, self.debug.gain(row)
        return row_line(row, cells, self._names, self.state.glyphs, kept=kept, gain=gain)

    def _row(self) -> Shown | None:
        return self.debug.row_at(self.main_list.cursor)

    def _note_row(self, told: bool) -> None:
        """The cursor stays on this row, whatever rows come before it; on the first line it stays with the newest."""
        line = self.main_list.cursor
        self._kept.keep(*((self.debug.job, self.debug.place(line)) if line else ()))

    def _follow_row(self) -> None:
        job, place = self._kept.left or (0, 0)
        if job and job == self.debug.job and 0 <= place < len(self.debug.rows):
            self.main_list.move_to(self.debug.place(place))

    def _job_in_view(self) -> JobView | None:
        return self.state.jobs.view(self.debug.job)

    @on(VirtualList.Selected, "#debug-rows")
    def _opened(self) -> None:
        self._found.show_node()

    # ── drawing ──

    def paint(self) -> None:
        if not self.display or not self.size.width:
            return
        if self.debug.job and self.has_class("empty") and self.query_one("#debug-body").has_focus:
            self.call_after_refresh(self.main_list.focus)
        self.set_class(not self.debug.job, "empty")
        self._follow_row()
        self._show_head()
        self._show_body()
        names: Line = [("  ", "head"), *heading(self.debug.search, self.main_list.size.width - GUTTER)]
        self.query_one("#debug-heading", OneLine).set_line(names)
        self.main_list.sync()
        self._show_footer()

    def _show_head(self) -> None:
        head, compare = self.query_one("#debug-head", LinesView), self.debug.compare
        sides = side_names(compare.runners) if compare is not None and len(compare.runners) > 1 else []
        tall = self.app.size.height >= TALL
        lines: list[Line] = []
        if self.debug.job:
            lines = head_lines(self.debug, sides, self.size.width - 2, self.state.glyphs, time.time(), tall=tall,
                               here=getattr(self._row(), "i", None))  # fmt: skip
        head.styles.height = max(1, len(lines))
        head.set_lines([[(" ", ""), *line] for line in lines])

    @on(VirtualList.Highlighted, "#debug-rows")
    def _cursor_moved(self) -> None:
        self._body_soon.touch()

    def _show_body(self) -> None:
        if not self.is_mounted:
            return
        if self.debug.search == "lens":  # the band shows where the row at the cursor is
            self._show_head()
        body, question, cells = self.query_one("#debug-body", DetailPane), self._answering.asked(), self.size.width - 2
        row = self._row()
        if self.debug.job:
            lines = self._body(question, row, cells)
        else:
            lines = empty_lines(self._searching.starter.ready(), cells, builds=self._searching.starter.on_builds())
        about = (self.debug.job, question.id if question else "", getattr(row, "n", None), self.main_list.cursor)
        last = max(0, len(lines) - body.size.height)
        top, self._shown = min(last, body.top) if about == self._shown else 0, about
        self._share_height(len(lines) + 1 if question else 0)
        body.set_lines([[(" ", ""), *line] for line in lines], top)

    def _share_height(self, needed: int) -> None:
        """A question is seen whole, the history gets what is left; else each has its share, suspects no more than
        there are.
        """
        rest = self.size.height - len(self.query_one("#debug-head", LinesView).lines) - 1
        share = self.size.height * 45 // 100
        if needed:
            share = rest - needed
        elif self.debug.search in ("locate", "invariants"):
            share = min(share, len(self.debug.rows))
        self.main_list.styles.height = max(LEAST_ROWS, share)

    def _body(self, question: Question | None, row: Shown | None, cells: int) -> list[Line]:
        """Where nothing waits for an answer, the row under the cursor in full, too."""
        paths = question.beside.artifact.values() if question else ()
        sizes = {path: Path(path).stat().st_size for path in paths if Path(path).is_file()}
        lines = body_lines(self.debug, question, cells, self.state.glyphs, sizes)
        detail = row_detail(row, cells) if question is None else []
        return [*lines, [], *detail] if lines and detail else lines or detail

    # ── keys that matter now ──

    def _show_footer(self) -> None:
        self._answering.changed()
        offers = self._offered_now()
        if offers != self._offers:
            self._offers = offers
            self.post_message(self.FooterChanged())

    def footer_commands(self) -> list[Command]:
        own = {found.id: found for found in in_scopes((self.SCOPE,))}
        return [*self.footer_keys(), *(own[name] for name in self._offered_now())]

    def _offered_now(self) -> tuple[str, ...]:
        if self._answering.asked() is not None:
            return tuple(name for name in ASKING if name != "debug.open" or self._found.model_in_view())
        if self.debug.live:
            return tuple(name for name in RUNNING if name != "debug.open" or self._found.model_in_view())
        useless = set() if self._found.model_in_view() else {"debug.open"}
        useless |= set() if self._found.sets_in_view() else {"debug.bundle"}
        useless |= set() if self.debug.state in ("failed", "cancelled", "lost", "damaged") else {"debug.retry"}
        useless |= set() if self.debug.rows else {"debug.node"}
        if self.debug.search == "lens":
            return (*LENS, *(name for name in ENDED if name not in useless))
        starts = (*STARTS, "debug.builds") if self._searching.starter.on_builds() else STARTS
        return tuple(name for name in (ENDED if self.debug.job else ()) if name not in useless) + starts

    # ── the search on view ──

    @command("debug.answer", "answer the question", keys="A", line="answer TEXT", complete="answers")
    def answer(self, text: str = "") -> None:
        self._answering.answer(text)

    def answers(self, prefix: str) -> list[str]:
        return self._answering.answers(prefix)

    @command("debug.cancel", "stop the search (asks first); what it has found stays", keys="K", footer="cancel")
    def cancel(self) -> None:
        self._answering.offer_cancel()

    @command("debug.retry", "go on with a search that has ended", keys="r", means="start", footer="go on", line="retry")
    def retry(self) -> None:
        self._answering.retry_in_view()

    toggle_pane = turns_pane("debug.pane", "scroll the text, or back to the list", "text")
