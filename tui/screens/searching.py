"""Searches and their questions, from a page: starting one, answering the job in view, using what was found."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from textual.events import Key

from layerwise._tool.backends.jobs.journal.view import JobView
from layerwise._tool.backends.text import in_full, shown
from layerwise._tool.tui.commands import Command, Commands, command, in_scopes
from layerwise._tool.tui.controllers.debugging import DebugResults, DebugStarter, node_of, suspect_sets
from layerwise._tool.tui.controllers.jobs import JobActions
from layerwise._tool.tui.screens.chooser import Choice
from layerwise._tool.tui.screens.page import Page
from layerwise._tool.tui.state.debug_rows import Shown, ShownStep, ShownSuspect
from layerwise._tool.tui.state.jobs import not_of_open_model
from layerwise._tool.tui.state.questions import Question, read_question
from layerwise._tool.tui.typed.settling import Waits
from layerwise._tool.tui.widgets.following import run_work


class Searching:
    """Starts searches for a page; what comes of them is shown on the Debug screen."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self.starter = DebugStarter(page.state)

    def start(self, search: str, *, by_hand: bool = False, target: str | None = None, then: str = "") -> None:
        """Submit a search and show it. target: the tensor that goes wrong, None for the outputs. then: what comes of
        it here, where this page is to stay.
        """
        run_work(self._page, "debug-start", lambda: self._start(search, by_hand, target, then))

    async def _start(self, search: str, by_hand: bool, target: str | None, then: str) -> None:
        with self._page.state.telling():
            job = await self.starter.start(search, by_hand=by_hand, target=target)
            other = self._page.state.errors.other
            on = f" on {shown(other, 40)}" if other else ""
            self._page.state.say(f"job {job}: {search} started{on}" + (f"; {then}" if then else ""), job=job)
            if not then:
                self._page.open("debug")


FOOTER_WORD = 12


class Answering(Commands):
    """The question of the job in view on a page. view: that job; question: its number and its question, as its events
    or the list of jobs have it. Call `changed` when it may be another.
    """

    def __init__(
        self, page: Page, view: Callable[[], JobView | None], question: Callable[[], tuple[int, dict[str, Any] | None]]
    ) -> None:
        self._page, self._view, self._question = page, view, question
        self._offered: tuple[tuple[str, str], ...] = ()

    def asked(self) -> Question | None:
        """The open question of the job in view."""
        return read_question(*self._question(), self._taken_keys())

    def _taken_keys(self) -> set[str]:
        """Keys that mean something else on this page."""
        bound = in_scopes((self._page.SCOPE, "list", "pane", "global"))
        return {key for found in bound for key in found.keys.split(",")}

    def changed(self) -> None:
        """Have the footer show the keys of the question that is in view now."""
        question = self.asked()
        offered = tuple(question.keys.items()) if question is not None else ()
        if offered != self._offered:
            self._offered = offered
            self._page.post_message(Page.FooterChanged())

    def footer_keys(self) -> list[Command]:
        return [
            Command(
                f"answer.{key}",
                f"answer: {shown(word, 40)}",
                keys=key,
                footer=shown(word, FOOTER_WORD),
                line=f"answer {shown(word, 40)}",
                scope=self._page.SCOPE,
            )
            for key, word in self._offered
        ]

    async def take_key(self, event: Key) -> bool:
        question = self.asked()
        word = question.keys.get(event.character or "") if question is not None else None
        if question is not None and word is not None:
            self._send(question, word)
        return word is not None

    def answer(self, text: str) -> None:
        """Answer with a word or its key; without one offer the choices, or a line to write on."""
        question = self.asked()
        if question is None:
            self._page.state.say("this job asks nothing")
        elif text:
            self._answer_with(question, text)
        elif question.words:
            choices = [
                Choice([(f"{key or ' '}  ", "key"), (shown(word, 80), "")], (question, word), key)
                for key, word in question.choices()
            ]
            title = f"Job {question.job}: {shown(question.text, 70)}"
            self._page.choose(title, choices, lambda picked: self._send(*picked))
        else:
            self._page.post_message(Page.TypeLine("answer "))

    def _answer_with(self, question: Question, text: str) -> None:
        word = question.answer(text)
        if word is None:
            self._page.state.say(f"answers: {', '.join(shown(word, 40) for word in question.words)}", "bad")
        else:
            self._send(question, word)

    def _send(self, question: Question, word: str) -> None:
        run_work(self._page, "job-action", lambda: JobActions(self._page.state).answer(question, word))

    def offer_cancel(self) -> None:
        """Stop the job in view, once the user has said so again."""
        view = self._view()
        if view is None or view.final:
            self._page.state.say("this job has ended" if view else "no job")
            return
        choices = [Choice([("y  ", "key"), (f"cancel job {view.id}", "bad")], view.id, "y"),
                   Choice([("n  ", "key"), ("let it run", "")], None, "n")]  # fmt: skip
        self._page.choose(f"Cancel job {view.id}?", choices, self._cancel)

    def _cancel(self, job: int) -> None:
        run_work(self._page, "job-action", lambda: JobActions(self._page.state).cancel(job))

    def retry_in_view(self) -> None:
        """Run the job in view again where it stopped."""
        view = self._view()
        if view is not None:
            run_work(self._page, "job-action", lambda: JobActions(self._page.state).retry(view.id))

    def answers(self, prefix: str) -> list[str]:
        """Completions of an answer."""
        question = self.asked()
        return [word for word in (question.words if question is not None else ()) if word.startswith(prefix)]


class DebugFound(Commands, scope="debug"):
    """row: the one under the cursor, None if there is none."""

    def __init__(self, page: Page, searching: Searching, answering: Answering, row: Callable[[], Shown | None]) -> None:
        self._page, self._state, self._debug = page, page.state, page.state.debug
        self._searching, self._answering, self._row = searching, answering, row
        self._results = DebugResults(page.state)

    @command("debug.node", "the row's node in the Graph screen, or the job of a step", keys="enter,o", footer="show",
             line="node")  # fmt: skip
    def show_node(self) -> None:
        if self._debug.search == "triage":
            self._show_job()
            return
        if self._debug.other:
            self._state.say(not_of_open_model(self._debug.job, self._debug.other), "warn")
            return
        node = node_of(self._page.session.index, self._row())
        if node < 0:
            self._state.say("this row names no node of the open model")
            return
        self._page.session.select_node(node)
        self._page.open("graph")

    def _show_job(self) -> None:
        row = self._row()
        last = row.jobs[-1] if isinstance(row, ShownStep) and row.jobs else None
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

    @command("debug.open", "open the candidate, or the model that was found", keys="ctrl+o", footer="open model",
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
            choices = [Choice([(in_full(name), "")], (nodes, folder)) for name, nodes in sets]
            self._page.choose("A bundle of which?", choices, self._bundle_picked)
        elif sets:
            self._bundle_picked((sets[0][1], folder))
        else:
            self._state.say("nothing was found that a bundle could show")

    def sets_in_view(self) -> list[tuple[str, list[int]]]:
        return suspect_sets(self._debug, self._row())

    def _bundle_picked(self, picked: tuple[list[int], str]) -> None:
        run_work(self._page, "debug-start", lambda: self._bundle(*picked), Waits.JOB)

    async def _bundle(self, nodes: list[int], folder: str) -> None:
        row = self._row()
        with self._state.telling():
            number = row.iteration if isinstance(row, ShownSuspect) else 0
            self._state.say(await self._results.bundle(self._debug, nodes, number, folder), "good")

    @command("debug.yank", "copy the command line, a path or the answer", keys="y", footer="yank", line="yank")
    def yank(self) -> None:
        self._page.offer_copies(self._results.yank_targets(self._debug, self._answering.asked()))
