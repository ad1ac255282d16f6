"""The one registry of commands: key bindings, footer, palette, `:` line and help all read it.

A class declares its commands beside their handlers:

    class ErrorsScreen(Page, scope="errors"):
        @command("errors.sort", "sort by the next column", keys="s", footer="sort", line="sort COLUMN")
        def sort(self, text: str = "") -> None: ...

Scopes: "global" (the app), "list" (the virtual list in focus), or a screen's name.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

from textual.binding import Binding

from layerwise._tool.tui.lifetime import while_it_stays

Handler = TypeVar("Handler", bound=Callable[..., Any])


@dataclass(frozen=True)
class Command:
    """Something the user can do.

    keys: Textual key names, separated by commas; `a b` is a pressed and then b.
    footer: short word for the footer, empty keeps it out.
    line: how it is typed on the `:` line, `verb ARGUMENT`; the handler then gets the text after the verb.
    complete: method of the same object that gives completions of the argument for a prefix.
    """

    id: str
    title: str
    keys: str = ""
    footer: str = ""
    line: str = ""
    complete: str = ""
    scope: str = "global"
    method: str = ""

    @property
    def verb(self) -> str:
        return self.line.partition(" ")[0]

    @property
    def key_text(self) -> str:
        """The keys as a person reads them: `j down`, `]e`."""
        return " ".join("".join(key_name(part) for part in key.split()) for key in self.keys.split(",") if key)


_KEY_NAMES = {
    "slash": "/", "question_mark": "?", "colon": ":", "asterisk": "*", "minus": "-", "left_square_bracket": "[",
    "right_square_bracket": "]", "full_stop": ".", "plus": "+", "underscore": "_", "equals_sign": "=",
    "less_than_sign": "<", "greater_than_sign": ">", "escape": "esc",
}  # fmt: skip


def key_name(key: str) -> str:
    """A key as a person reads it."""
    return _KEY_NAMES.get(key, key)


REGISTRY: dict[str, Command] = {}


def command(
    id: str, title: str, *, keys: str = "", footer: str = "", line: str = "", complete: str = ""
) -> Callable[[Handler], Handler]:
    """Declare the decorated method as the handler of a command of its class's scope."""

    def declare(handler: Handler) -> Handler:
        found = Command(id, title, keys, footer, line, complete, method=handler.__name__)
        handler._command = found  # type: ignore[attr-defined]
        return handler

    return declare


class Commanded:
    """Mixin, before a Textual class: its decorated methods enter the registry and become its bindings."""

    SCOPE: ClassVar[str] = ""

    def __init_subclass__(cls, scope: str = "", **kwargs: Any) -> None:
        if scope:
            cls.SCOPE = scope
        declared = [
            replace(member._command, scope=cls.SCOPE) for member in vars(cls).values() if hasattr(member, "_command")
        ]
        REGISTRY.update((found.id, found) for found in declared)
        own = list(vars(cls).get("BINDINGS", []))
        cls.BINDINGS = own + list(_bindings(declared))  # type: ignore[attr-defined]
        super().__init_subclass__(**kwargs)

    def own_scopes(self) -> tuple[str, ...]:
        """Scopes whose commands it has, nearest first."""
        return (self.SCOPE,)

    async def action_run_command(self, id: str) -> None:
        """Textual's entry: a bound key was pressed."""
        await self.run_own_command(REGISTRY[id])

    async def run_own_command(self, found: Command, text: str = "") -> None:
        """Call the handler of `found`, with the argument when it takes one, and wait for it if it is async."""
        handler = getattr(self, found.method)
        with while_it_stays(self):  # type: ignore[arg-type]
            done = handler(text) if " " in found.line else handler()
            if inspect.isawaitable(done):
                await done

    def completions(self, found: Command, prefix: str) -> list[str]:
        """Arguments of `found` that start with (or contain) `prefix`; empty when it has no completion."""
        return list(getattr(self, found.complete)(prefix)) if found.complete else []


def _bindings(declared: Iterable[Command]) -> Iterator[Binding]:
    for found in declared:
        if found.keys:
            yield Binding(found.keys, f"run_command('{found.id}')", found.title, id=found.id, show=False)


def in_scopes(scopes: Iterable[str]) -> list[Command]:
    """Commands of `scopes`, nearest scope first, in the order of declaration, without keys that a nearer one takes."""
    found: list[Command] = []
    taken: set[str] = set()
    for scope in scopes:
        own = [command for command in REGISTRY.values() if command.scope == scope]
        found += [_unshadowed(command, taken) for command in own]
        taken.update(key for command in own for key in command.keys.split(","))
    return found


def _unshadowed(command: Command, taken: set[str]) -> Command:
    keys = ",".join(key for key in command.keys.split(",") if key not in taken)
    return command if keys == command.keys else replace(command, keys=keys)


def going_on(typed: str, scopes: Iterable[str]) -> dict[str, Command]:
    """What commands of several keys wait for after the keys `typed`; "" for one that is complete."""
    found: dict[str, Command] = {}
    for command in in_scopes(scopes):
        for keys in command.keys.split(","):
            if " " in keys and f"{keys} ".startswith(f"{typed} "):
                found.setdefault(keys[len(typed) :].strip(), command)
    return found


def by_verb(verb: str, scopes: Iterable[str]) -> Command | None:
    """The command typed as `verb` on the `:` line: exact, or the only one that starts so."""
    typed = [found for found in in_scopes(scopes) if found.line]
    exact = [found for found in typed if found.verb == verb]
    starting = [found for found in typed if verb and found.verb.startswith(verb)]
    if exact:
        return exact[0]
    return starting[0] if len({found.verb for found in starting}) == 1 else None
