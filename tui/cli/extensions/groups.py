"""Groups of options as extension modules of `run` define them; those of `run` that they may rest on are in `offered`.

Of Polygraphy's groups for TensorFlow there are the names, so that modules can be imported; what they would add to a
script is an error that says so.
"""

import argparse
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.tui.cli.extensions.script import Script


class ArgGroups(Mapping[type, Any]):
    """Groups by their class, or, of Polygraphy's own classes, by its name. UsageError for one that is not there."""

    def __init__(self, groups: Iterable[Any] = ()) -> None:
        self._groups = {type(group): group for group in groups}

    def __getitem__(self, kind: type) -> Any:
        named = {found.__name__: group for found, group in self._groups.items()}
        found = self._groups.get(kind) or named.get(kind.__name__)
        if found is None:
            raise UsageError(f"{kind.__name__} is not offered to extension modules: {', '.join(named)} are")
        return found

    def __contains__(self, kind: object) -> bool:
        return isinstance(kind, type) and any(found.__name__ == kind.__name__ for found in self._groups)

    def __iter__(self) -> Iterator[type]:
        return iter(self._groups)

    def __len__(self) -> int:
        return len(self._groups)


class BaseArgs:
    """A group of options. The first line of a subclass's docstring is its `Title: what its options are related to`.

    group: argparse's, while options are added; arg_groups: all groups there are.
    """

    def __init__(self) -> None:
        self.group: Any = None
        self.arg_groups: Any = None

    def allows_abbreviation_impl(self) -> bool:
        return True

    def allows_abbreviation(self) -> bool:
        """Whether the beginning of an option may stand for it."""
        return self.allows_abbreviation_impl()

    def register(self, arg_groups: Mapping[type, Any]) -> None:
        """Take the groups that there are."""
        self.arg_groups = arg_groups

    def add_parser_args_impl(self) -> None:
        """Add options to `self.group`."""

    def add_parser_args(self, parser: argparse.ArgumentParser) -> None:
        """Add the options to a parser, under a heading unless there are none. UsageError without a docstring."""
        lines = (self.__doc__ or "").strip().splitlines()
        title, colon, about = (lines or [""])[0].rpartition(":")
        if not colon:
            raise UsageError(f"{type(self).__name__} needs a docstring that begins with 'Title: Description'")
        before = len(parser._actions)
        self.group = parser.add_argument_group(title.strip(), f"Options related to {about.strip()}")
        self.add_parser_args_impl()
        if len(parser._actions) == before:
            parser._action_groups.remove(self.group)
            self.group = None

    def parse_impl(self, args: argparse.Namespace) -> None:
        """Take what was typed."""

    def parse(self, args: argparse.Namespace) -> None:
        """Take what was typed."""
        self.parse_impl(args)

    def add_to_script_impl(self, script: Script, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def add_to_script(self, script: Script, *args: Any, **kwargs: Any) -> Any:
        """Add the code that does what the options say; the name of its variable."""
        return self.add_to_script_impl(script, *args, **kwargs)


class BaseRunnerArgs(BaseArgs):
    """A group of options of a runner."""

    def add_to_script(self, script: Script, *args: Any, **kwargs: Any) -> Any:
        """Add the runner to the script; the name of the list of runners."""
        self.add_to_script_impl(script)
        return script.get_runners()

    def get_name_opt_impl(self) -> tuple[str, str]:
        raise NotImplementedError

    def get_name_opt(self) -> tuple[str, str]:
        """A name for people, and the option that selects the runner, without dashes."""
        return self.get_name_opt_impl()

    def get_extra_help_text_impl(self) -> str:
        return ""

    def get_extra_help_text(self) -> str:
        """More for the option's help."""
        return self.get_extra_help_text_impl()


def not_offered(name: str) -> type[BaseArgs]:
    """A class by the name of one of Polygraphy's groups that modules may import, but not rest on."""
    return type(name, (BaseArgs,), {"__doc__": f"{name}: what is not offered here"})
