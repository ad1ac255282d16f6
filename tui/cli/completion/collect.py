"""All commands with their options, read from the registry and from the parsers that the commands fill."""

import argparse
from collections.abc import Iterator

from msgspec import Struct

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.tui.cli.leaf import fill_parser
from layerwise._tool.tui.cli.options.logging import LOGGING
from layerwise._tool.tui.cli.parser import Parser
from layerwise._tool.tui.cli.registry import COMMANDS, Branch, Leaf


class OptionWords(Struct, frozen=True):
    """An option. value: what stands for its value in the help, "" where it takes none; choices: all values."""

    flags: tuple[str, ...]
    text: str
    value: str
    choices: tuple[str, ...]


class CommandWords(Struct, frozen=True):
    """A command. words: as typed; arguments: what stands for its arguments in the help; ending: what the help says
    last.
    """

    words: str
    summary: str
    arguments: tuple[str, ...]
    options: tuple[OptionWords, ...]
    ending: str


def commands() -> list[CommandWords]:
    """All commands, in the order of the help. Imports the module of each: takes most of a second."""
    return [_command(words, leaf) for words, leaf in _leaves()]


def branches() -> dict[str, dict[str, str]]:
    """Word -> word -> summary, of the words that group others."""
    grouped = {word: entry for word, entry in COMMANDS.items() if isinstance(entry, Branch)}
    return {word: {name: leaf.summary for name, leaf in entry.leaves.items()} for word, entry in grouped.items()}


def first_words() -> dict[str, str]:
    """First word -> summary."""
    return {word: entry.summary for word, entry in COMMANDS.items()}


def _leaves() -> Iterator[tuple[str, Leaf]]:
    for word, entry in COMMANDS.items():
        if isinstance(entry, Leaf):
            yield word, entry
        else:
            yield from ((f"{word} {name}", leaf) for name, leaf in entry.leaves.items())


def _command(words: str, leaf: Leaf) -> CommandWords:
    parser = Parser(f"layerwise {words}", leaf.summary)
    try:
        fill_parser(parser, leaf)
    except LayerwiseError:  # an extension of the user's cannot be loaded: what was declared before counts
        LOGGING.add(parser)
    shown = [action for action in parser._actions if action.help != argparse.SUPPRESS]
    formatter = parser._get_formatter()
    return CommandWords(
        words,
        leaf.summary,
        tuple(_value(action) or action.dest.upper() for action in shown if not action.option_strings),
        tuple(_option(action, formatter) for action in shown if action.option_strings),
        parser.epilog or "",
    )


def _option(action: argparse.Action, formatter: argparse.HelpFormatter) -> OptionWords:
    text = " ".join((formatter._expand_help(action) if action.help else "").split())
    choices = tuple(str(choice) for choice in action.choices or ())
    return OptionWords(tuple(action.option_strings), text, _value(action), choices)


def _value(action: argparse.Action) -> str:
    if action.nargs == 0:
        return ""
    metavar = action.metavar[0] if isinstance(action.metavar, tuple) else action.metavar
    if metavar:
        return metavar
    return "|".join(map(str, action.choices)) if action.choices else action.dest.upper()
