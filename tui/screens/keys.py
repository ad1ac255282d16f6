"""`:keys`: which key does what, and giving a command another one."""

from collections.abc import Callable
from dataclasses import dataclass

from layerwise._tool.backends.filesystem.places import config_file
from layerwise._tool.backends.text import shown
from layerwise._tool.tui.commands import REGISTRY, Commands, command
from layerwise._tool.tui.controllers.settings import write_key
from layerwise._tool.tui.keys import usable, written
from layerwise._tool.tui.presenters.text import Line
from layerwise._tool.tui.screens.chooser import Choice
from layerwise._tool.tui.state.shared import AppState

_NONE = "none"


@dataclass
class Asking:
    """What these commands need of the app. choose: (title, choices, then); ask: (text on the `:` line, hint);
    use: puts a keymap in force and says what is wrong in it; keymap: the one in force.
    """

    choose: Callable[[str, list[Choice], Callable[[object], None]], None]
    ask: Callable[[str, str], None]
    use: Callable[[dict[str, str]], list[str]]
    keymap: Callable[[], dict[str, str]]


class KeyCommands(Commands, scope="global"):
    """Keys by command id; a change is written to the user's own file at once."""

    def __init__(self, state: AppState, asking: Asking) -> None:
        self._state, self._asking = state, asking

    @command("app.keys", "keys of all commands; :keys COMMAND KEYS changes one", line="keys [COMMAND KEYS]",
             complete="ids")  # fmt: skip
    def keys(self, text: str = "") -> None:
        """List the keys, or give a command others: `none` takes all away, `own` gives its own back."""
        id, _, given = text.partition(" ")
        if not id:
            self._list()
        elif id not in REGISTRY:
            self._state.say(f"no command {shown(id, 60)}: :keys lists them", "bad")
        elif not given.strip():
            self._ask(id)
        else:
            self._change(id, given.strip())

    def ids(self, prefix: str) -> list[str]:
        """Completions of a command's id."""
        return sorted(f"{id} " for id in REGISTRY if id.startswith(prefix))

    def _list(self) -> None:
        rows = sorted(REGISTRY.values(), key=lambda found: found.id)
        choices = [Choice(_line(found.id, found.key_text, found.title), found.id) for found in rows]
        self._asking.choose("Keys (type to filter, enter changes one)", choices, self._picked)

    def _picked(self, id: object) -> None:
        if isinstance(id, str):
            self._ask(id)

    def _ask(self, id: str) -> None:
        now = REGISTRY[id].key_text or _NONE
        self._asking.ask(f"keys {id} ", f"now {now}; type others (m or ctrl+o or m,ctrl+o), none, or own")

    def _change(self, id: str, given: str) -> None:
        keymap = self._asking.keymap()
        wanted: str | None = None if given == "own" else "" if given == _NONE else written(given)
        changed = {name: keys for name, keys in keymap.items() if name != id}
        if wanted is not None:
            changed[id] = wanted
        _, problems = usable(changed)
        new = [problem for problem in problems if problem.startswith(f"keys: {id} ")]
        if new:
            self._state.say(new[0].removeprefix("keys: "), "bad")
            return
        with self._state.telling():
            write_key(config_file(), id, wanted)
            self._asking.use(changed)
            now = REGISTRY[id].key_text or "no key"
            self._state.say(f"{id}: {now}; written to {shown(str(config_file()))}", "good")


def _line(id: str, keys: str, title: str) -> Line:
    return [(f"{id:<24} ", "accent"), (f"{keys:<16} ", "key"), (title, "")]
