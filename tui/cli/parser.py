"""An argument parser that reports through UsageError and whose own additions never spoil a known abbreviation."""

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.wording import in_words

_TRY = "\nTry '"


def without_help(message: str) -> str:
    """What a parser says, without the line that leads to the help of the command."""
    return message.split(_TRY, maxsplit=1)[0]


class Parser(argparse.ArgumentParser):
    """`argparse` with three changes: errors are UsageError, help keeps its line breaks, and an abbreviation that
    was unambiguous for Polygraphy's options stays so (options added with `own=True` give way)."""

    def __init__(self, prog: str, description: str = "") -> None:
        super().__init__(prog=prog, description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
        self.own_options = {"--exclude-outputs", "--warm-up-runs"}  # aliases of options that Polygraphy has
        self.halves = False  # whether the command itself does what --fp-to-fp16 asks for
        self.translate: Callable[[Sequence[str]], list[str]] = list  # of another program's words

    def own(self, group: argparse._ActionsContainer, *flags: str, **options: Any) -> argparse.Action:
        """Add an option that Polygraphy does not have to `group`."""
        self.own_options.update(flags)
        return group.add_argument(*flags, **options)

    def parse_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]
        """Parse, words of another program translated first. What follows --check is its own."""
        words = self.translate(sys.argv[1:] if args is None else args)
        greedy = [action for action in self._actions if action.nargs == argparse.REMAINDER and action.option_strings]
        flags = {flag: action.dest for action in greedy for flag in action.option_strings}
        end = next((number for number, word in enumerate(words) if word in flags), len(words))
        found = super().parse_args(words[:end], namespace)
        if end < len(words):
            setattr(found, flags[words[end]], list(words[end + 1 :]))
        return found

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{shown(message, 400)}{_TRY}{self.prog} --help'.")

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        try:
            return super()._get_value(action, arg_string)
        except argparse.ArgumentError as error:
            cause = error.__context__
            if not isinstance(cause, ValueError) or in_words(cause) == str(cause):
                raise
            raise argparse.ArgumentError(action, in_words(cause)) from None

    def _get_option_tuples(self, option_string: str) -> list[Any]:
        found = super()._get_option_tuples(option_string)
        known = [item for item in found if item[1] not in self.own_options] or found
        first = {id(item[0]): item for item in reversed(known)}
        return list(first.values()) if len(first) == 1 else known


def positive(text: str) -> int:
    """The type of an option that counts from 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is less than 1")
    return value


def count(text: str) -> int:
    """The type of an option that counts from 0."""
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{value} is negative")
    return value


def seconds(text: str) -> float:
    """The type of an option that is a length of time."""
    value = float(text)
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is no length of time")
    return value


class RunnerFlag(argparse.Action):
    """Collects runners in the order they are typed; each flag may be given several times."""

    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, dest, **{"nargs": 0, **options})

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option: str | None = None,
    ) -> None:
        kind = self.const or self.option_strings[0].removeprefix("--")
        namespace.runners = [*namespace.runners, (kind, values or None)]
