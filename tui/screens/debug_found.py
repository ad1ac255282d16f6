"""What the user does with the search on view: look at a row's node, open its model, bundle it, copy from it."""

from pathlib import Path

from textual import on

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.text import shown
from layerwise._tool.tui.commands import command
from layerwise._tool.tui.controllers.debug_results import DebugResults, node_of, suspect_sets
from layerwise._tool.tui.controllers.jobs import JobActions
from layerwise._tool.tui.screens.answering import Answering
from layerwise._tool.tui.screens.pick import Choice, PickScreen
from layerwise._tool.tui.screens.searching import Searching
from layerwise._tool.tui.state.debugging import Shown, StepRow, SuspectRow
from layerwise._tool.tui.state.shared import AppState
from layerwise._tool.tui.widgets.virtual_list import VirtualList


class DebugFound(Answering, Searching, scope="debug"):
    """Base of the Debug screen, which says what row the cursor is on."""

    def __init__(self, state: AppState) -> None:
        super().__init__(state)
        self.debug = state.debug
        self._results = DebugResults(state)

    def row_in_view(self) -> Shown | None:
        """The row under the cursor, None if there is none."""
        raise NotImplementedError

    @on(VirtualList.Selected, "#debug-rows")
    @command("debug.node", "the row's node in the Graph screen, or the job of a step", keys="enter", footer="show",
             line="node")  # fmt: skip
    def show_node(self) -> None:
        if self.debug.search == "triage":
            self._show_job()
            return
        node = node_of(self.session.index, self.row_in_view())
        if node < 0:
            self.state.say("this row names no node of the open model")
            return
        self.session.select_node(node)
        self.post_message(self.Open("graph"))

    def _show_job(self) -> None:
        row = self.row_in_view()
        last = row.jobs[-1] if isinstance(row, StepRow) and row.jobs else None
        view = next((view for view in self.state.jobs.views if view.id == last), None)
        page = JobActions(self.state).show(view) if view else ""
        if page:
            self.state.say(f"job {last}, a step of the triage; the triage itself is job {self.debug.job}")
            self.post_message(self.Open(page))
        else:
            self.state.say("this step has no job with a screen of its own")

    @command("debug.table", "the layer table of a locate job in the Errors screen", keys="E", line="table")
    def show_table(self) -> None:
        if self.debug.search != "locate":
            self.state.say("only a locate job has a layer table")
            return
        self.session.set_compare_job(str(self.debug.job))
        self.post_message(self.Open("errors"))

    @command("debug.open", "open the candidate, or the model that was found", keys="o", footer="open model",
             line="open-found")  # fmt: skip
    def open_found(self) -> None:
        path = self.model_in_view()
        if not path or not Path(path).is_file():
            self.state.say("there is no model yet")
        else:
            self.post_message(self.OpenModel(Path(path)))

    def model_in_view(self) -> str | None:
        """The model of the question, else the one found so far."""
        question = self.asked()
        return (question.beside.artifact.get("model") if question else None) or self.debug.model_path()

    @command("debug.bundle", "write a repro bundle of what was found", keys="B", footer="bundle", line="bundle FOLDER")
    def bundle(self, folder: str = "") -> None:
        sets = self.sets_in_view()
        if len(sets) > 1:
            choices = [Choice([(shown(name, 90), "")], (nodes, folder)) for name, nodes in sets]
            self.app.push_screen(PickScreen("A bundle of which?", choices, self.state.glyphs), self._bundle_picked)
        elif sets:
            self._bundle_picked((sets[0][1], folder))
        else:
            self.state.say("nothing was found that a bundle could show")

    def sets_in_view(self) -> list[tuple[str, list[int]]]:
        return suspect_sets(self.debug, self.row_in_view())

    def _bundle_picked(self, picked: object) -> None:
        if isinstance(picked, tuple):
            self.run_work("debug-start", lambda: self._bundle(*picked))

    async def _bundle(self, nodes: list[int], folder: str) -> None:
        row = self.row_in_view()
        try:
            number = row.iteration if isinstance(row, SuspectRow) else 0
            self.state.say(await self._results.bundle(self.debug, nodes, number, folder), "good")
        except LayerwiseError as error:
            self.state.say(str(error), "bad")

    @command("debug.yank", "copy the command line, a path or the answer", keys="y", footer="yank", line="yank")
    def yank(self) -> None:
        self.offer_copies(self._results.yank_targets(self.debug, self.asked()))
