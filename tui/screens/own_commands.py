"""Commands of the user's own: a line for a shell, with the node and the tensor in hand."""

from collections.abc import Callable, Mapping
from typing import Any

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.settings import UserCommand
from layerwise._tool.tui.commands import REGISTRY, Command, Commands
from layerwise._tool.tui.controllers.own_commands import Subject, prepared, run_prepared
from layerwise._tool.tui.keys import written
from layerwise._tool.tui.state.shared import AppState

PREFIX = "own."


class OwnCommands(Commands):
    """One method for each command of the settings, in the registry like all others.

    subject: what {node}, {tensor} and {model} are now. away: calls a function while the terminal is not the app's.
    """

    def __init__(
        self, state: AppState, subject: Callable[[], Subject], away: Callable[[Callable[[], Any]], Any]
    ) -> None:
        self._state, self._subject, self._away = state, subject, away

    def declare(self, commands: Mapping[str, UserCommand]) -> list[str]:
        """Enter the commands into the registry in place of earlier ones; what is wrong with them."""
        for id in [id for id in REGISTRY if id.startswith(PREFIX)]:
            del REGISTRY[id]
        problems = []
        for name, one in commands.items():
            try:
                prepared(one.run)
            except LayerwiseError as error:
                problems.append(f"command {name}: {error}")
                continue
            method = f"run_{name.replace('-', '_')}"
            setattr(self, method, self._handler(name, one))
            REGISTRY[f"{PREFIX}{name}"] = Command(
                f"{PREFIX}{name}", one.title or one.run, line=name, group=OwnCommands, method=method
            )
        return problems

    def keymap(self, commands: Mapping[str, UserCommand]) -> dict[str, str]:
        """The keys that the settings give to them."""
        named = {f"{PREFIX}{name}": written(one.key) for name, one in commands.items() if one.key}
        return {id: keys for id, keys in named.items() if id in REGISTRY}

    def _handler(self, name: str, one: UserCommand) -> Callable[[], None]:
        def run() -> None:
            with self._state.telling():
                subject = self._subject()
                code = self._away(lambda: run_prepared(one.run, subject))
                told = "done" if code == 0 else f"ended with exit code {code}"
                self._state.say(f"{name}: {told}", "info" if code == 0 else "warn")

        return run
