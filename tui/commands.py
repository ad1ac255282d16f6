"""The one registry of commands: key bindings, footer, palette, `:` line and help all read it.

A class declares its commands beside their handlers: a group of commands, which a page has beside its widgets,

    class ErrorSearches(Commands, scope="errors"):
        @command("errors.reduce", "the smallest part that fails", keys="d", footer="reduce", line="reduce")
        def reduce(self) -> None: ...

or the page, the list or the app itself. Scopes: "global" (the app), "list" (the virtual list in focus), or a screen's
name.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

from textual.binding import Binding
from textual.events import Key

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.text import shown
from layerwise._tool.tui.lifetime import while_it_stays

Handler = TypeVar("Handler", bound=Callable[..., Any])


@dataclass(frozen=True)
class Command:
    """Something the user can do.

    keys: Textual key names, separated by commas; `a b` is a pressed and then b.
    footer: short word for the footer, empty keeps it out.
    means: what its keys mean, in a word that it shares with other commands of the same keys; else the end of its id.
    line: how it is typed on the `:` line, `verb` or `verb ARGUMENT`; with an argument the handler gets the text after
    the verb, without one nothing may follow.
    instead: id of a command that takes what is likely to be typed after one that takes nothing.
    complete: method of the same object that gives completions of the argument for a prefix.
    group: the class of that object.
    """

    id: str
    title: str
    keys: str = ""
    footer: str = ""
    means: str = ""
    line: str = ""
    complete: str = ""
    instead: str = ""
    scope: str = "global"
    group: type = object
    method: str = ""

    @property
    def verb(self) -> str:
        return self.line.partition(" ")[0]

    @property
    def takes_argument(self) -> bool:
        """Whether words may follow it on the `:` line."""
        return " " in self.line

    @property
    def usage(self) -> str:
        """How it is typed on the `:` line: its name, and what its argument is called."""
        return f"{self.name}{self.line[len(self.verb) :]}"

    @property
    def meaning(self) -> str:
        """What its keys mean: a key means the same on all screens."""
        return self.means or self.id.partition(".")[2]

    @property
    def name(self) -> str:
        """What it is typed as on the `:` line: its verb, or the end of its id, or its id where others are called so."""
        if self.line:
            return self.verb
        tail = self.id.partition(".")[2].replace("_", "-")
        return self.id if any(other.verb == tail for other in REGISTRY.values() if other.line) else tail

    @property
    def key_text(self) -> str:
        """The keys as a person reads them: `j down`, `]e`."""
        return " ".join("".join(key_name(part) for part in key.split()) for key in self.keys.split(",") if key)


_KEY_NAMES = {
    "slash": "/", "question_mark": "?", "colon": ":", "asterisk": "*", "minus": "-", "left_square_bracket": "[",
    "right_square_bracket": "]", "full_stop": ".", "plus": "+", "underscore": "_", "equals_sign": "=",
    "less_than_sign": "<", "greater_than_sign": ">", "escape": "esc", "semicolon": ";", "exclamation_mark": "!",
    "number_sign": "#",
}  # fmt: skip


def key_name(key: str) -> str:
    """A key as a person reads it."""
    return _KEY_NAMES.get(key, key)


REGISTRY: dict[str, Command] = {}


def command(
    id: str, title: str, *, keys: str = "", means: str = "", footer: str = "", line: str = "", complete: str = "",
    instead: str = "",
) -> Callable[[Handler], Handler]:  # fmt: skip
    """Declare the decorated method as the handler of a command of its class's scope."""

    def declare(handler: Handler) -> Handler:
        handler._command = Command(id, title, keys, footer, means, line, complete, instead)  # type: ignore[attr-defined]
        return handler

    return declare


def declare(owner: type, scope: str, group: type | None = None) -> None:
    """Enter the decorated methods of a class into the registry. group: the subclass that they are declared for, once
    each; the scope comes before an id that begins with a point.
    """
    for method, member in vars(owner).items():
        if hasattr(member, "_command"):
            id = f"{scope}{member._command.id}" if group is not None else member._command.id
            REGISTRY[id] = replace(member._command, id=id, scope=scope, group=group or owner, method=method)


def bind(widget: type, scopes: tuple[str, ...]) -> None:
    """Give a widget's class the keys of the commands of `scopes`, nearest first; before Textual sees the class."""
    widget.SCOPES = scopes  # type: ignore[attr-defined]
    widget.BINDINGS = [*vars(widget).get("BINDINGS", []), *_bindings(in_scopes(scopes))]  # type: ignore[attr-defined]


class Commands:
    """A group of commands, which is given what they act on. Its decorated methods enter the registry."""

    def __init_subclass__(cls, scope: str = "", **kwargs: Any) -> None:
        if scope:
            declare(cls, scope)
        super().__init_subclass__(**kwargs)

    async def take_key(self, event: Key) -> bool:
        """Handle a key before the bindings see it; false leaves it to them."""
        return False

    def footer_keys(self) -> list[Command]:
        """Keys that mean something right now only, for footer and help."""
        return []

    def completions(self, found: Command, prefix: str) -> list[str]:
        """Arguments of a command of the group that start with (or contain) `prefix`; none if it has no completion."""
        return list(getattr(self, found.complete)(prefix)) if found.complete else []


class Commanded(Commands):
    """Mixin, before a Textual class: a widget that is a group of commands itself, and has their keys."""

    SCOPES: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, scope: str = "", **kwargs: Any) -> None:
        if scope:
            declare(cls, scope)
            bind(cls, (scope,))
        super().__init_subclass__(scope=scope, **kwargs)

    async def action_run_command(self, id: str) -> None:
        """Textual's entry: a bound key was pressed."""
        await run_command(self, REGISTRY[id])


def scopes_of(widget: object) -> tuple[str, ...]:
    """Scopes whose commands a widget has, nearest first."""
    return getattr(widget, "SCOPES", ())


def group_of(widget: object, found: Command) -> Any:
    """The widget, or the group of it, whose method a command is."""
    return next(group for group in (widget, *getattr(widget, "groups", ())) if isinstance(group, found.group))


async def run_command(widget: Any, found: Command, text: str = "") -> None:
    """Call the handler of `found`, with the argument when it takes one, and wait for it if it is async.

    What the user can act on is told, as everything that an app says.
    """
    handler = getattr(group_of(widget, found), found.method)
    with while_it_stays(widget):
        try:
            done = handler(text) if found.takes_argument else handler()
            if inspect.isawaitable(done):
                await done
        except LayerwiseError as error:
            widget.app.state.say(str(error), "bad")


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
    """The command typed as `verb` on the `:` line: exact, or the only one that starts so; verbs before other names."""
    if not verb:
        return None
    here = in_scopes(scopes)
    typed = [found for found in here if found.line]
    for found in (
        *(found for found in typed if found.verb == verb),
        *(one for one in here if verb in (one.name, one.id)),
    ):
        return found
    for group in (typed, here):
        starting = [found for found in group if found.name.startswith(verb)]
        if starting:
            return starting[0] if len({found.name for found in starting}) == 1 else None
    return None


def is_count(text: str) -> bool:
    """Whether a `:` line is a number of rows: `5`, `+5`, `-5`; more digits than any list has are none."""
    digits = text.strip().lstrip("+-")
    return digits.isdecimal() and digits.isascii() and len(digits) < 12 and len(text.strip()) - len(digits) < 2


def takes_path(found: Command) -> bool:
    """Whether the argument of a command is a file or a folder."""
    return found.line.rpartition(" ")[2].strip("[]") in ("FILE", "FOLDER")


def parse_line(text: str, scopes: Sequence[str]) -> tuple[Command | None, str]:
    """The command and its argument. Nothing typed gives None.

    Raises ValueError with a sentence for the user: there is no such command, or it takes no argument.
    """
    verb, _, argument = text.strip().partition(" ")
    if not verb:
        return None, ""
    found = by_verb(verb, scopes)
    if found is None:
        page = _page_of(verb)
        if page is not None:
            raise ValueError(f"{verb} is a command of another page: `:{page.verb}` goes there")
        raise ValueError(f"no command {shown(verb, 40)}; `:help` lists them, tab completes")
    argument = argument.strip()
    if argument and not found.takes_argument:
        raise ValueError(_alone(found, scopes))
    return found, argument


def _page_of(verb: str) -> Command | None:
    """The command that goes to a page with a command of this verb."""
    pages = (REGISTRY.get(f"app.{found.scope}") for found in REGISTRY.values() if found.line and found.verb == verb)
    return next((page for page in pages if page is not None), None)


def _alone(found: Command, scopes: Sequence[str]) -> str:
    """That nothing may follow a command, and what may be typed."""
    other = REGISTRY.get(found.instead)
    more = "" if other is None else f", {'or' if other.scope in scopes else 'then'} :{other.usage}"
    return f":{found.name} takes no argument; type :{found.name} alone{more}"


def line_completions(
    text: str, scopes: Sequence[str], arguments: Callable[[Command, str], list[str]], limit: int = 50
) -> list[str]:
    """Whole lines that continue `text`: a verb, or an argument of the verb typed."""
    verb, space, argument = text.lstrip().partition(" ")
    if not space:
        verbs = {found.name: found.takes_argument for found in in_scopes(scopes)}
        return [name + " " * takes_more for name, takes_more in sorted(verbs.items()) if name.startswith(verb)]
    found = by_verb(verb, scopes)
    return [f"{verb} {offer}" for offer in arguments(found, argument)[:limit]] if found else []
