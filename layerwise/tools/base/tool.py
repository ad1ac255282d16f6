"""The base of command-line tools over the API."""

import argparse
import sys
from inspect import cleandoc
from typing import Any

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.tui.cli.extensions.groups import ArgGroups
from layerwise._tool.tui.cli.extensions.of_run import LoggerArgs
from layerwise.logger import G_LOGGER

__all__ = ["Tool"]


class Tool:
    """A command-line tool. Its docstring is the help; subclasses implement the methods that end in `_impl`.

    arg_groups: the groups of options that it has, by their class, once `setup_parser` was called.
    """

    def __init__(self, name: str | None = None) -> None:
        self.name = name
        self.arg_groups = ArgGroups()

    def get_subscriptions_impl(self) -> list[Any]:
        return []

    def get_subscriptions(self) -> list[Any]:
        """The groups of options of the tool."""
        return self.get_subscriptions_impl()

    def get_subtools_impl(self) -> tuple[str, list["Tool"]]:
        return "", []

    def get_subtools(self) -> tuple[str, list["Tool"]]:
        """A title, and the tools below this one."""
        return self.get_subtools_impl()

    def add_parser_args_impl(self, parser: argparse.ArgumentParser) -> None:
        """Add options of the tool's own."""

    def add_parser_args(self, parser: argparse.ArgumentParser) -> None:
        """Add options of the tool's own, and the tools below this one."""
        self.add_parser_args_impl(parser)

    def setup_parser(self, subparsers: Any = None) -> argparse.ArgumentParser:
        """A parser with the options of the tool: one of `subparsers`, else a new one."""
        text = cleandoc(self.__doc__ or "")
        form: dict[str, Any] = {"description": text, "formatter_class": argparse.RawDescriptionHelpFormatter}
        groups = [LoggerArgs(), *self.get_subscriptions()]
        form["allow_abbrev"] = all(group.allows_abbreviation() for group in groups)
        if subparsers is None:
            parser = argparse.ArgumentParser(**form)
        else:
            parser = subparsers.add_parser(self.name, help=text.partition("\n\n")[0], **form)
            parser.set_defaults(subcommand=self)
        self.arg_groups = ArgGroups(groups)
        for group in groups:
            group.register(self.arg_groups)
        for group in groups:
            group.add_parser_args(parser)
        self.add_parser_args(parser)
        title, tools = self.get_subtools()
        if tools:
            below = parser.add_subparsers(title=title, dest="subtool", required=True)
            for tool in tools:
                tool.setup_parser(below)
        return parser

    def parse(self, args: argparse.Namespace) -> None:
        """Give all groups what was typed; what is logged follows it."""
        for group in self.arg_groups.values():
            group.parse(args)

    def run_impl(self, args: argparse.Namespace) -> int | None:
        raise NotImplementedError("run_impl() must be implemented by child classes")

    def run(self, args: argparse.Namespace) -> int:
        """Do what the tool does, after `parse`; the exit code."""
        return self.run_impl(args) or 0

    def show_start_end_logging_impl(self, args: argparse.Namespace) -> bool:
        return False

    def show_start_end_logging(self, args: argparse.Namespace) -> bool:
        """Whether start and end are told."""
        return self.show_start_end_logging_impl(args)

    def main(self) -> None:
        """Run the tool, or that of its tools which was chosen, on sys.argv, and exit with its code; errors are 1."""
        args = self.setup_parser().parse_args()
        tool: Tool = getattr(args, "subcommand", self)
        try:
            tool.parse(args)
            logs = [group for group in tool.arg_groups.values() if isinstance(group, LoggerArgs)]
            for group in logs:
                group.get_logger()
            sys.exit(tool.run(args))
        except LayerwiseError as error:
            G_LOGGER.error(str(error))
            sys.exit(1)
