"""A matrix's file: models, sides, feeds and actions by name, each with the words that it adds to a command line."""

import glob
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from layerwise._tool.backends.cluster.where import checked_profile
from layerwise._tool.backends.errors import BadFile, UsageError
from layerwise._tool.backends.formats.toml import read_toml
from layerwise._tool.backends.shell import shell_words
from layerwise._tool.backends.text import shown

_TOP = ("models", "sides", "feeds", "actions", "reference", "on-failure", "cells", "slurm")
_CELLS: dict[str, type] = {"timeout": str, "cpus": int, "gpus": int, "losses": int, "workers": int}
_MODELS = ', such as [models] bert = "bert.onnx", or a list of files, such as models = ["zoo/*.onnx"]'
FOLLOWS = ("repeat", "locate", "bundle")


class Action(Struct, frozen=True):
    """A command that a cell may be. words: of the command; sides, feeds: whether it takes their words; reference:
    whether the file's reference is put beside a side of one runner."""

    words: tuple[str, ...]
    sides: bool = True
    reference: bool = False
    feeds: bool = True


ACTIONS = {
    "run": Action(("run",), reference=True),
    "locate": Action(("debug", "locate"), reference=True),
    "triage": Action(("triage",), reference=True),
    "reduce": Action(("debug", "reduce"), reference=True),
    "bisect": Action(("debug", "bisect"), reference=True),
    "bench": Action(("bench",)),
    "precision": Action(("debug", "precision")),
    "invariants": Action(("check", "invariants")),
    "compatibility": Action(("check", "compatibility"), feeds=False),
    "lint": Action(("check", "lint"), sides=False),
}


class Entry(Struct, frozen=True):
    """A model, side or feed. place: its key in the file. path: of a model. words: for all actions; own: for one more.

    only: the sides, feeds and actions that it goes with, None for all of them.
    """

    name: str
    place: str
    path: str = ""
    words: list[str] = []
    own: dict[str, list[str]] = {}
    only: dict[str, list[str]] = {}


class MatrixFile(Struct, frozen=True):
    """What a file says. actions: by name, with the words that the file adds. cells: settings of every cell."""

    path: Path
    models: list[Entry]
    sides: list[Entry]
    feeds: list[Entry]
    actions: dict[str, list[str]]
    reference: list[str] = []
    follows: list[str] = []
    cells: dict[str, Any] = {}
    slurm: dict[str, Any] = {}


def read_matrix(path: Path) -> MatrixFile:
    """Read a file. UsageError, with the place or the key, for one that cannot be read and for what does not fit."""
    whole = path.absolute()
    try:
        data = read_toml(whole)
    except BadFile as error:
        raise UsageError(str(error)) from None
    try:
        return _matrix(whole, data)
    except UsageError as error:
        raise UsageError(f"{shown(path.name, 120)}: {error}") from None


def _matrix(path: Path, data: Mapping[str, Any]) -> MatrixFile:
    _known(data, _TOP, "")
    follows = _names(data.get("on-failure", list(FOLLOWS)), "on-failure")
    for name in follows:
        if name not in FOLLOWS:
            raise UsageError(f"on-failure: {shown(name, 60)} is neither of {', '.join(FOLLOWS)}")
    if "bundle" in follows and "locate" not in follows:
        raise UsageError("on-failure: a bundle is of the nodes that locate finds: name both")
    found = MatrixFile(
        path=path, models=_models(data.get("models"), path.parent), sides=_entries(data.get("sides", {}), "sides"),
        feeds=_entries(data.get("feeds", {}), "feeds"), actions=_actions(data.get("actions", ["run"])),
        reference=words_of(data.get("reference", []), "reference"), follows=follows,
        cells=_cells(data.get("cells", {})), slurm=_profiles(data.get("slurm", {})),
    )  # fmt: skip
    if any(ACTIONS[name].sides for name in found.actions) and not found.sides:
        raise UsageError('sides: name at least one, such as [sides] cpu = ["--onnxrt"]')
    _check_names(found)
    return found


def _check_names(found: MatrixFile) -> None:
    """UsageError for a model, side or feed that is to go with one that is not there."""
    known = {"sides": {side.name for side in found.sides}, "feeds": {feed.name for feed in found.feeds},
             "actions": set(found.actions)}  # fmt: skip
    for entry in (*found.models, *found.sides, *found.feeds):
        for kind, names in entry.only.items():
            for name in names:
                if name not in known[kind]:
                    raise UsageError(f"{entry.place}.{kind}: there is no {kind[:-1]} {shown(name, 60)}")


def _models(value: Any, folder: Path) -> list[Entry]:
    if isinstance(value, list):
        value = {Path(found).stem: found for found in _found(_names(value, "models"), folder)}
    named = _table(value if value is not None else {}, "models", _MODELS)
    found = [_model(name, each) for name, each in named.items()]
    if not found:
        raise UsageError(f"models: name at least one{_MODELS}")
    for entry in found:
        if entry.path and not (folder / entry.path).exists():
            raise UsageError(f"{entry.place}: {shown(entry.path, 300)}: there is no such file")
    return found


def _found(patterns: Sequence[str], folder: Path) -> list[str]:
    paths: list[str] = []
    for pattern in patterns:
        hits = sorted(glob.glob(pattern, root_dir=folder)) if glob.has_magic(pattern) else [pattern]  # noqa: PTH207
        if not hits:
            raise UsageError(f"models: {shown(pattern, 200)} fits no file")
        paths += hits
    stems = [Path(path).stem for path in dict.fromkeys(paths)]
    twice = next((stem for stem in stems if stems.count(stem) > 1), None)
    if twice is not None:
        raise UsageError(
            f"models: two files are called {shown(twice, 120)}: give them names, as in [models] NAME = PATH"
        )
    return list(dict.fromkeys(paths))


def _model(name: str, value: Any) -> Entry:
    place = f"models.{shown(name, 60)}"
    if isinstance(value, str):
        return Entry(name, place, path=os.path.expanduser(value))  # noqa: PTH111
    given = dict(_table(value, place, " or the path of a file"))
    path = given.pop("path", "")
    if not isinstance(path, str):
        raise UsageError(f"{place}.path: must be a text")
    entry = _entry(name, place, given)
    return Entry(name, place, os.path.expanduser(path), entry.words, entry.own, entry.only)  # noqa: PTH111


def _entries(value: Any, place: str) -> list[Entry]:
    given = _table(value, place, f', such as [{place}] NAME = ["--option", "value"]')
    return [_entry(name, f"{place}.{shown(name, 60)}", each) for name, each in given.items()]


def _entry(name: str, place: str, value: Any) -> Entry:
    """A side or feed: words as a list or a text, or a table of options, with what belongs to one action apart."""
    if not isinstance(value, dict):
        return Entry(name, place, words=words_of(value, place))
    given = dict(value)
    only = {kind: _names(given.pop(kind), f"{place}.{kind}") for kind in ("sides", "feeds", "actions") if kind in given}
    words = words_of(given.pop("words", []), f"{place}.words")
    own = {key: words_of(given.pop(key), f"{place}.{key}") for key in list(given) if key in ACTIONS}
    return Entry(name, place, words=[*words, *words_of(given, place)], own=own, only=only)


def _actions(value: Any) -> dict[str, list[str]]:
    if isinstance(value, list):
        value = {name: [] for name in _names(value, "actions")}
    found = {name: words_of(each, f"actions.{shown(name, 60)}") for name, each in _table(value, "actions").items()}
    for name in found:
        if name not in ACTIONS:
            raise UsageError(f"actions: there is no action {shown(name, 60)}; there are {', '.join(ACTIONS)}")
    if not found:
        raise UsageError("actions: name at least one")
    return found


def words_of(value: Any, place: str) -> list[str]:
    """The words that a value means: a list of them, a line, or a table of options (atol = 1e-3 is --atol 1e-3)."""
    if isinstance(value, str):
        try:
            return shell_words(value)
        except ValueError as error:
            raise UsageError(f"{place}: {error}") from None
    if isinstance(value, dict):
        return [word for key, each in value.items() for word in _option(key, each, f"{place}.{shown(key, 60)}")]
    if not isinstance(value, list):
        raise UsageError(f"{place}: must be a list of words, a line of them, or a table of options")
    return [_word(each, place) for each in value]


def _option(key: str, value: Any, place: str) -> list[str]:
    flag = f"--{key.removeprefix('--').replace('_', '-')}"
    if isinstance(value, bool):
        return [flag] if value else []
    if isinstance(value, list):
        return [flag, *(_word(each, place) for each in value)]
    return [flag, _word(value, place)]


def _word(value: Any, place: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise UsageError(f"{place}: a word must be a text or a number, not {shown(repr(value), 60)}")
    return value if isinstance(value, str) else repr(value)


def _cells(value: Any) -> dict[str, Any]:
    found = _table(value, "cells")
    _known(found, tuple(_CELLS), "cells.")
    for key, each in found.items():
        if not isinstance(each, _CELLS[key]) or isinstance(each, bool):
            kind = 'a text, such as "15m"' if _CELLS[key] is str else "a whole number"
            raise UsageError(f"cells.{key}: must be {kind}")
        if isinstance(each, int) and each < (1 if key in ("losses", "workers") else 0):
            raise UsageError(f"cells.{key}: {each} is too small")
    return dict(found)


def _profiles(value: Any) -> dict[str, Any]:
    found = _table(value, "slurm", ', such as [slurm.PROFILE] queue = "gpu"')
    return {name: checked_profile(name, found) for name in found}


def _names(value: Any, place: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise UsageError(f"{place}: must be a list of names")
    return list(dict.fromkeys(value))


def _table(value: Any, place: str, more: str = "") -> dict[str, Any]:
    """more: what else it may be, or an example."""
    if not isinstance(value, dict):
        raise UsageError(f"{place}: must be a table{more}")
    return value


def _known(value: Mapping[str, Any], keys: Sequence[str], place: str) -> None:
    for key in value:
        if key not in keys:
            raise UsageError(f"{place}{shown(key, 60)}: no such key; there are {', '.join(keys)}")
