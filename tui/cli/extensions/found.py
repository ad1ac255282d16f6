"""Extension modules that are installed: found without importing anything, added to `run`'s parser, made to RunnerSpecs.

Only files `entry_points.txt` in the folders of sys.path are looked at; packages within archives are not found.
"""

import argparse
import importlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.text import shown
from layerwise._tool.tui.cli.parser import Parser, RunnerFlag

GROUPS = ("polygraphy.run.plugins", "layerwise.run.plugins")
_MARK = "extension:"


def declared() -> dict[str, str]:
    """The extension modules of installed distributions: name -> `module:function`."""
    found: dict[str, str] = {}
    for path in _files():
        try:
            data = path.read_bytes()
        except OSError:
            continue
        if b".run.plugins" in data:
            found = {**_entries(data), **found}
    return found


def _files() -> Iterator[Path]:
    for folder in dict.fromkeys(sys.path):
        try:
            with os.scandir(folder or ".") as entries:
                names = [entry.name for entry in entries if entry.name.endswith((".dist-info", ".egg-info"))]
        except OSError:
            continue
        yield from (Path(folder, name, "entry_points.txt") for name in names)


def _entries(data: bytes) -> dict[str, str]:
    from configparser import ConfigParser, Error

    parser = ConfigParser(delimiters=("=",), interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    try:
        parser.read_string(data.decode("utf-8", "replace"))
    except Error:
        return {}
    return {name: value for group in GROUPS if parser.has_section(group) for name, value in parser.items(group)}


class Extensions:
    """The extension modules of one command. notes: which of them could not be used, and why."""

    def __init__(self, offered: list[Any], groups: list[Any], notes: list[str]) -> None:
        """offered: those of `run`; groups: those of the modules."""
        self._groups, self.notes = [*offered, *groups], notes
        self._runners = {group.get_name_opt()[1]: group for group in groups if hasattr(group, "get_name_opt")}

    def spec(self, option: str, args: argparse.Namespace) -> RunnerSpec:
        """The runner that the option selects. LayerwiseError where its module fails."""
        from layerwise._tool.tui.cli.extensions.script import Script

        script = Script()
        try:
            for group in self._groups:
                group.parse(args)
            self._runners[option].add_to_script(script)
        except LayerwiseError:
            raise
        except Exception as error:
            raise LayerwiseError(f"--{shown(option, 60)}: {type(error).__name__}: {shown(str(error), 500)}") from error
        return RunnerSpec(kind="extension", options={"script": str(script)})


def add_extensions(parser: Parser) -> None:
    """Add the options of the extension modules that are installed."""
    names = declared()
    if not names:
        return
    from layerwise._tool.tui.cli.extensions.groups import ArgGroups
    from layerwise._tool.tui.cli.extensions.offered import of_run_groups

    groups: list[Any] = []
    notes: list[str] = []
    for name, value in names.items():
        try:
            groups += _loaded(value)
        except Exception as error:
            notes.append(f"Failed to load plugin: {shown(name, 60)}.\nNote: Error was:\n{shown(str(error), 500)}")
    offered = of_run_groups()
    known = ArgGroups([*offered, *groups])
    for group in (*offered, *groups):
        group.register(known)
    usable = [group for group in groups if _added(group, parser, notes)]
    parser.set_defaults(extensions=Extensions(offered, usable, notes))


def _loaded(value: str) -> list[Any]:
    module, _, function = value.partition("[")[0].strip().partition(":")
    found: Any = importlib.import_module(module.strip())
    for part in function.strip().split("."):
        found = getattr(found, part)
    return list(found())


def _added(group: Any, parser: Parser, notes: list[str]) -> bool:
    """Add a group's options, and the one that selects its runner."""
    try:
        if hasattr(group, "get_name_opt"):
            name, option = group.get_name_opt()
            text = f"{name} ({type(group).__module__.partition('.')[0]}) {group.get_extra_help_text()}".strip()
            parser.own(parser, f"--{option}", action=RunnerFlag, dest="runners", default=[],
                       const=f"{_MARK}{option}", help=text.replace("%", "%%"))  # fmt: skip
        group.add_parser_args(parser)
    except Exception as error:
        notes.append(f"Failed to add the options of {type(group).__name__}: {shown(str(error), 500)}")
        return False
    return True


def extended(args: argparse.Namespace) -> argparse.Namespace:
    """Parsed options, runners of extension modules written out. LayerwiseError where their modules fail."""
    found: Extensions | None = getattr(args, "extensions", None)
    if found is None:
        return args
    runners = [
        ("json", [json.dumps(msgspec.to_builtins(found.spec(kind.removeprefix(_MARK), args)))])
        if kind.startswith(_MARK) else (kind, given)
        for kind, given in args.runners
    ]  # fmt: skip
    return argparse.Namespace(**{**vars(args), "runners": runners, "extensions": None})
