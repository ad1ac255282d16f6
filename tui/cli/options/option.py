"""How an option is declared, once: parser, spec, command line, scripts, Run form and reference page follow from it."""

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from layerwise._tool.tui.cli.parser import Parser

if TYPE_CHECKING:
    from msgspec import Struct

Made = TypeVar("Made", bound="Struct")
WRITTEN = "*"
"""As `Option.script`: the script's writer deals with the option itself."""


class InForm:
    """The line of the Run form that an option has.

    section: feeds, marks or compare. hint: what may be typed, or a hint for each value. empty: what no text means.
    when: `key=value` or `key!=value` of another line. key: name in the form; by default the last part of the option's
    field. choices: where the option itself has none; the first one is the default.
    """

    __slots__ = ("choices", "empty", "hint", "key", "label", "section", "when")

    def __init__(
        self, label: str, section: str = "compare", *, hint: str | Mapping[str, str] = "", empty: str = "",
        when: str = "", key: str = "", choices: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        self.label, self.section, self.hint, self.empty, self.when = label, section, hint, empty, when
        self.key, self.choices = key, choices


class Option:
    """An option of the command line.

    flags: the first is the one that is written. field: where its value stands in the spec, as a dotted path; "" where
    it stands nowhere, or a Joint reads it. parse, show: from what argparse gives to the field's value, and back to a
    word (a list of words where it takes several); by default the same. own: Polygraphy has no such option. script: the
    argument `Function.name` of a generated script; WRITTEN; or "": scripts have none, and say so. form: its line in
    the Run form. settings: as `add_argument` takes them; the default is the field's where none is given.
    """

    __slots__ = ("default", "dest", "field", "flags", "form", "on", "own", "parse", "script", "settings", "show")

    def __init__(
        self, *flags: str, field: str = "", parse: Callable[[Any], Any] | None = None,
        show: Callable[[Any], Any] | None = None, own: bool = False, script: str = "", form: InForm | None = None,
        **settings: Any,
    ) -> None:  # fmt: skip
        self.flags, self.field, self.parse, self.show, self.own = flags, field, parse, show, own
        self.script, self.form, self.settings = script, form, settings
        self.dest: str = settings.get("dest") or flags[0].lstrip("-").replace("-", "_")
        action = settings.get("action")
        self.on = {"store_true": True, "store_false": False}.get(action)  # type: ignore[arg-type]
        self.default = settings.get("default", False if self.on else None)
        if form is not None:
            form.key = form.key or field.rpartition(".")[2]

    @property
    def options(self) -> "tuple[Option, ...]":
        return (self,)

    @property
    def single(self) -> bool:
        """Whether it takes one value at most."""
        return bool(self.settings.get("nargs", "?") == "?")

    def add(self, parser: Parser, group: argparse._ActionsContainer) -> None:
        """Declare it to argparse."""
        (parser.own if self.own else _plain_add)(group, *self.flags, **self.settings)

    def read(self, args: argparse.Namespace) -> Any:
        """The value of its field, None where it is not given. UsageError for what is no value of it."""
        given = getattr(args, self.dest, None)
        return given if given is None or self.parse is None else self.parse(given)

    def words(self, spec: "Struct", plain: "Struct") -> list[str]:
        """The words that give `spec` its field; none where that is as in `plain`."""
        value = at(spec, self.field)
        if value == at(plain, self.field):
            return []
        if self.on is not None:
            return [self.flags[0]] if value == (self.on if self.parse is None else self.parse(self.on)) else []
        shown = value if self.show is None else self.show(value)
        if self.single:
            return glued(self.flags[0], str(shown))
        return many_words(self.flags[0], shown) or ([self.flags[0]] if self.settings["nargs"] == "*" else [])


def _plain_add(group: argparse._ActionsContainer, *flags: str, **settings: Any) -> argparse.Action:
    return group.add_argument(*flags, **settings)


class Joint:
    """Options that make a field together. read: from parsed options to its value; words: from the spec to words."""

    __slots__ = ("field", "options", "read", "script", "write")

    def __init__(
        self, field: str, *options: Option, read: Callable[[argparse.Namespace], Any],
        write: Callable[[Any], list[str]], script: str = WRITTEN,
    ) -> None:  # fmt: skip
        self.field, self.options, self.read, self.write, self.script = field, options, read, write, script

    def words(self, spec: "Struct", plain: "Struct") -> list[str]:
        """The words that give `spec` its field."""
        return self.write(spec)


class Group:
    """Options under a heading of the help. plain: makes the spec that their fields are of, with none of them given."""

    __slots__ = ("description", "items", "plain", "title")

    def __init__(
        self,
        title: str,
        *items: Option | Joint,
        description: str | None = None,
        plain: "Callable[[], Struct] | None" = None,
    ) -> None:
        self.title, self.items, self.description, self.plain = title, items, description, plain

    def add(self, parser: Parser, *, without: Iterable[str] = ()) -> argparse._ArgumentGroup:
        """Declare the options to argparse, but those whose first flag is in `without`; argparse's group."""
        group = parser.add_argument_group(self.title, self.description)
        for option in options_of(self):
            if option.flags[0] not in without:
                option.add(parser, group)
        return group


def many(*flags: str, **settings: Any) -> Option:
    """An option with one or more values, that may be repeated."""
    return Option(*flags, **{"nargs": "+", "action": "extend", "default": [], **settings})


def flag(*flags: str, **settings: Any) -> Option:
    """An option without a value."""
    return Option(*flags, action="store_true", **settings)


def add(parser: Parser, *groups: Group) -> None:
    """Declare groups to argparse; they appear in help in this order."""
    for group in groups:
        group.add(parser)


def options_of(*groups: Group) -> Iterator[Option]:
    """All options, in the order of the help."""
    return (option for group in groups for item in group.items for option in item.options)


def unset(*groups: Group) -> dict[str, Any]:
    """What argparse gives for a line without any of the options."""
    return {option.dest: option.default for option in reversed(list(options_of(*groups)))}


def read(groups: Iterable[Group], args: argparse.Namespace) -> dict[str, Any]:
    """Field -> value of the options that are given. UsageError for a value that is none."""
    items = [item for group in groups for item in group.items if item.field]
    return {item.field: value for item in items if (value := item.read(args)) is not None}


def line(groups: Sequence[Group], spec: "Struct", first: tuple[str, ...] = ()) -> list[str]:
    """The words that give `spec`. first: fields, or the structs that they are in, whose words come first."""
    places = {name: place for place, name in enumerate(first)}
    items = [item for group in groups for item in group.items if item.field]
    items.sort(key=lambda item: places.get(item.field.partition(".")[0], len(places)))
    plain = _plain(groups)
    return [word for item in items for word in item.words(spec, plain)]


def arguments(function: str, groups: Sequence[Group], spec: "Struct") -> dict[str, Any]:
    """The arguments of an API function that options declare, where `spec` has other values than by default."""
    called = [item for item in _given(groups, spec) if item.script.rpartition(".")[0] == function]
    return {item.script.rpartition(".")[2]: at(spec, item.field) for item in called}


def left_out(groups: Sequence[Group], spec: "Struct") -> list[str]:
    """The options that `spec` has given and that no script has."""
    return [item.options[0].flags[0] for item in _given(groups, spec) if not item.script]


def _given(groups: Sequence[Group], spec: "Struct") -> Iterator[Option | Joint]:
    plain = _plain(groups)
    items = (item for group in groups for item in group.items if item.field)
    return (item for item in items if at(spec, item.field) != at(plain, item.field))


def _plain(groups: Sequence[Group]) -> "Struct":
    return next(group.plain for group in groups if group.plain is not None)()


def at(spec: Any, field: str) -> Any:
    """The value at a dotted path."""
    for name in field.split("."):
        spec = getattr(spec, name)
    return spec


def filled(spec: Made, found: Mapping[str, Any]) -> Made:
    """The spec with these values at these dotted paths."""
    from msgspec.structs import replace  # here: not every command that has options needs it

    own = {field: value for field, value in found.items() if "." not in field}
    for name in dict.fromkeys(field.partition(".")[0] for field in found if "." in field):
        inner = {field.partition(".")[2]: value for field, value in found.items() if field.startswith(f"{name}.")}
        own[name] = filled(getattr(spec, name), inner)
    return replace(spec, **own)


def glued(name: str, text: str) -> list[str]:
    """An option with its value, glued to it where that looks like an option."""
    return [f"{name}={text}"] if text.startswith("-") else [name, text]


def many_words(name: str, items: Iterable[str]) -> list[str]:
    """One option with all its values; values of which one looks like an option are each glued to their own."""
    words = [str(item) for item in items]
    if any(word.startswith("-") for word in words):
        return [f"{name}={word}" for word in words]
    return [name, *words] if words else []
