"""Answering the question of the job in view: with the keys of its choices, from a list, or in words."""

from textual.events import Key

from layerwise._tool.backends.jobs.journal.view import JobView
from layerwise._tool.backends.text import shown
from layerwise._tool.tui.commands import Command, in_scopes
from layerwise._tool.tui.controllers.jobs import JobActions
from layerwise._tool.tui.screens.page import Page
from layerwise._tool.tui.screens.pick import Choice, PickScreen
from layerwise._tool.tui.state.questions import Question, read_question

FOOTER_WORD = 12


class Answering(Page):
    """A page on which one job is in view. Give `job_in_view` and call `question_changed` when it may be another."""

    _offered: tuple[tuple[str, str], ...] = ()

    def job_in_view(self) -> JobView | None:
        """The job whose question the keys answer."""
        raise NotImplementedError

    def asked(self) -> Question | None:
        """The open question of the job in view."""
        view = self.job_in_view()
        return None if view is None else read_question(view.id, view.question, self.taken_keys())

    def taken_keys(self) -> set[str]:
        """Keys that mean something else on this page."""
        bound = in_scopes((self.SCOPE, "list", "pane", "global"))
        return {key for found in bound for key in found.keys.split(",")}

    def question_changed(self) -> None:
        """Have the footer show the keys of the question that is in view now."""
        question = self.asked()
        offered = tuple(question.keys.items()) if question is not None else ()
        if offered != self._offered:
            self._offered = offered
            self.post_message(self.FooterChanged())

    def footer_keys(self) -> list[Command]:
        return [
            Command(
                f"answer.{key}",
                f"answer: {shown(word, 40)}",
                keys=key,
                footer=shown(word, FOOTER_WORD),
                line=f"answer {shown(word, 40)}",
                scope=self.SCOPE,
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
            self.state.say("this job asks nothing")
        elif text:
            self._answer_with(question, text)
        elif question.words:
            choices = [
                Choice([(f"{key or ' '}  ", "key"), (shown(word, 80), "")], (question, word), key)
                for key, word in question.choices()
            ]
            title = f"Job {question.job}: {shown(question.text, 70)}"
            self.app.push_screen(PickScreen(title, choices, self.state.glyphs), self._picked)
        else:
            self.post_message(self.TypeLine("answer "))

    def _answer_with(self, question: Question, text: str) -> None:
        word = question.answer(text)
        if word is None:
            self.state.say(f"answers: {', '.join(shown(word, 40) for word in question.words)}", "bad")
        else:
            self._send(question, word)

    def _picked(self, picked: object) -> None:
        if isinstance(picked, tuple):
            self._send(*picked)

    def _send(self, question: Question, word: str) -> None:
        self.run_work("job-action", lambda: JobActions(self.state).answer(question, word))

    def offer_cancel(self) -> None:
        """Stop the job in view, once the user has said so again."""
        view = self.job_in_view()
        if view is None or view.final:
            self.state.say("this job has ended" if view else "no job")
            return
        choices = [Choice([("y  ", "key"), (f"cancel job {view.id}", "bad")], view.id, "y"),
                   Choice([("n  ", "key"), ("let it run", "")], None, "n")]  # fmt: skip
        self.app.push_screen(PickScreen(f"Cancel job {view.id}?", choices, self.state.glyphs), self._cancelled)

    def _cancelled(self, job: object) -> None:
        if isinstance(job, int):
            self.run_work("job-action", lambda: JobActions(self.state).cancel(job))

    def retry_in_view(self) -> None:
        """Run the job in view again where it stopped."""
        view = self.job_in_view()
        if view is not None:
            self.run_work("job-action", lambda: JobActions(self.state).retry(view.id))

    def answers(self, prefix: str) -> list[str]:
        """Completions of an answer."""
        question = self.asked()
        return [word for word in (question.words if question is not None else ()) if word.startswith(prefix)]
