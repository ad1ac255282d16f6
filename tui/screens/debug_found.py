"""What the user does with the search on view: look at a row's node, open its model, bundle it, copy from it."""

from collections.abc import Callable
from pathlib import Path

from layerwise._tool.backends.text import shown
from layerwise._tool.tui.commands import Commands, command
from layerwise._tool.tui.controllers.debugging import DebugResults, node_of, suspect_sets
from layerwise._tool.tui.controllers.jobs import JobActions
from layerwise._tool.tui.screens.page import Choice, Page
from layerwise._tool.tui.screens.searching import Answering, Searching
from layerwise._tool.tui.state.debugging import Shown, StepRow, SuspectRow
from layerwise._tool.tui.widgets.following import run_work


class DebugFound(Commands, scope="debug"):
    """row: the one under the cursor, None if there is none."""

    def __init__(self, page: Page, searching: Searching, answering: Answering, row: Callable[[], Shown | None]) -> None:
        self._page, self._state, self._debug = page, page.state, page.state.debug
        self._searching, self._answering, self._row = searching, answering, row
        self._results = DebugResults(page.state)

    @command("debug.node", "the row's node in the Graph screen, or the job of a step", keys="enter", footer="show",
             line="node")  # fmt: skip
    def show_node(self) -> None:
        if self._debug.search == "triage":
            self._show_job()
            return
        node = node_of(self._page.session.index, self._row())
        if node < 0:
            self._state.say("this row names no node of the open model")
            return
        self._page.session.select_node(node)
        self._page.open("graph")

    def _show_job(self) -> None:
        row = self._row()
        last = row.jobs[-1] if isinstance(row, StepRow) and row.jobs else None
        view = self._state.jobs.view(last)
        page = JobActions(self._state).show(view) if view else ""
        if page:
            self._state.say(f"job {last}, a step of the triage; the triage itself is job {self._debug.job}")
            self._page.open(page)
        else:
            self._state.say("this step has no job with a screen of its own")

    @command("debug.table", "the layer table of a locate job in the Errors screen", keys="E", line="table")
    def show_table(self) -> None:
        if self._debug.search != "locate":
            self._state.say("only a locate job has a layer table")
            return
        self._page.session.set_compare_job(str(self._debug.job))
        self._page.open("errors")

    @command("debug.open", "open the candidate, or the model that was found", keys="o", footer="open model",
             line="open-found")  # fmt: skip
    def open_found(self) -> None:
        path = self.model_in_view()
        if not path or not Path(path).is_file():
            self._state.say("there is no model yet")
        else:
            self._page.post_message(Page.OpenModel(Path(path)))

    def model_in_view(self) -> str | None:
        """The model of the question, else the one found so far."""
        question = self._answering.asked()
        return (question.beside.artifact.get("model") if question else None) or self._debug.model_path()

    @command("debug.bundle", "write a repro bundle of what was found", keys="B", footer="bundle", line="bundle FOLDER")
    def bundle(self, folder: str = "") -> None:
        sets = self.sets_in_view()
        if len(sets) > 1:
            choices = [Choice([(shown(name, 90), "")], (nodes, folder)) for name, nodes in sets]
            self._page.choose("A bundle of which?", choices, self._bundle_picked)
        elif sets:
            self._bundle_picked((sets[0][1], folder))
        else:
            self._state.say("nothing was found that a bundle could show")

    def sets_in_view(self) -> list[tuple[str, list[int]]]:
        return suspect_sets(self._debug, self._row())

    def _bundle_picked(self, picked: object) -> None:
        if isinstance(picked, tuple):
            run_work(self._page, "debug-start", lambda: self._bundle(*picked))

    async def _bundle(self, nodes: list[int], folder: str) -> None:
        row = self._row()
        with self._state.telling():
            number = row.iteration if isinstance(row, SuspectRow) else 0
            self._state.say(await self._results.bundle(self._debug, nodes, number, folder), "good")

    @command("debug.yank", "copy the command line, a path or the answer", keys="y", footer="yank", line="yank")
    def yank(self) -> None:
        self._page.offer_copies(self._results.yank_targets(self._debug, self._answering.asked()))
