"""`:headless`: the command line that does what a command of the app does, to be copied."""

from collections.abc import Callable

from layerwise._tool.backends.shell import shell_line
from layerwise._tool.backends.text import shown
from layerwise._tool.tui.commands import REGISTRY, Commands, command
from layerwise._tool.tui.controllers.own_commands import Subject
from layerwise._tool.tui.controllers.yank import Copy
from layerwise._tool.tui.headless import EQUIVALENTS, equivalent
from layerwise._tool.tui.screens.chooser import Choice
from layerwise._tool.tui.state.shared import AppState


class HeadlessCommands(Commands, scope="global"):
    """subject: the model and the job on view; choose: (title, choices, then); copy: to the clipboard and a file."""

    def __init__(
        self, state: AppState, subject: Callable[[], Subject],
        choose: Callable[[str, list[Choice], Callable[[object], None]], None], copy: Callable[[Copy], None],
    ) -> None:  # fmt: skip
        self._state, self._subject, self._choose, self._copy = state, subject, choose, copy

    @command("app.headless", "the command line that does what a command of the app does: pick one, it is copied",
             line="headless [COMMAND]", complete="ids")  # fmt: skip
    def headless(self, text: str = "") -> None:
        """Copy the command line of a command, or list those there are."""
        if text in EQUIVALENTS:
            self._yank(text)
        elif text:
            known = "is done on the screen alone" if text in REGISTRY else "is no command: :keys lists them"
            self._state.say(f"{shown(text, 60)} {known}", "warn")
        else:
            rows = [found for found in REGISTRY.values() if found.id in EQUIVALENTS]
            choices = [Choice([(f"{found.id:<21} ", "accent"), (self._line(found.id), "")], found.id)
                       for found in sorted(rows, key=lambda found: found.id)]  # fmt: skip
            self._choose("What a script would run (type to filter, enter copies)", choices, self._yank)

    def ids(self, prefix: str) -> list[str]:
        """Completions of a command's id."""
        return sorted(id for id in EQUIVALENTS if id.startswith(prefix))

    def _words(self, id: str) -> list[str]:
        subject = self._subject()
        return equivalent(id, subject.model, subject.job)

    def _line(self, id: str) -> str:
        return shell_line(self._words(id))

    def _yank(self, id: object) -> None:
        if isinstance(id, str):
            self._copy(Copy("", "command", tuple(self._words(id))))
