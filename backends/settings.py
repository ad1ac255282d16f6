"""The user's settings: `config.toml` in the user's configuration folder, and `[tool.layerwise]` of a project.

What is wrong in a file is a problem with the name of the file; what is right in it holds. A project's file, which may
come from anybody, says neither commands nor where the workspace is.
"""

import os
import re
from pathlib import Path
from typing import Any

import msgspec

from layerwise._tool.backends.errors import BadFile, LayerwiseError
from layerwise._tool.backends.filesystem.places import absolute_path, config_file, user_path
from layerwise._tool.backends.formats.toml import read_toml
from layerwise._tool.backends.text import shown

PROJECT = "pyproject.toml"
PRESETS = ("vim", "arrows", "counts")
_OWN_ONLY = ("commands", "workspace")
_NAME = re.compile(r"[a-z][a-z0-9_-]*")


class Tolerance(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the Run form starts with. None: as without settings."""

    atol: float | None = None
    rtol: float | None = None

    def __post_init__(self) -> None:
        for value in (self.atol, self.rtol):
            if value is not None and not 0 <= value < float("inf"):
                raise ValueError(f"{value} is no tolerance")


class UserCommand(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A command line of the user's own, for a shell. key: Textual's name of the key that runs it, "" for none."""

    run: str
    key: str = ""
    title: str = ""


class Settings(msgspec.Struct, frozen=True):
    """All settings. theme: "" is the one chosen last; keys: by command id, over those of the preset; workspace: ""
    is the user's state folder; mouse: None is on, except under SSH; slow_line: None is as measured.
    """

    theme: str = ""
    workspace: str = ""
    preset: str = "vim"
    mouse: bool | None = None
    slow_line: bool | None = None
    keys: dict[str, str] = {}
    tolerance: Tolerance = Tolerance()
    commands: dict[str, UserCommand] = {}


class Loaded(msgspec.Struct, frozen=True):
    """The settings of all files. files: those that were read; problems: sentences, safe to show."""

    settings: Settings = Settings()
    files: tuple[Path, ...] = ()
    problems: tuple[str, ...] = ()


def project_file(start: Path | None = None) -> Path | None:
    """The nearest pyproject.toml with a [tool.layerwise], from a folder upwards; other users' files do not count."""
    here = absolute_path(start or Path())
    for folder in (here, *here.parents):
        path = folder / PROJECT
        if _is_ours(path):
            try:
                if "layerwise" in _table(read_toml(path), "tool"):
                    return path
            except LayerwiseError:
                continue  # not ours to judge: whose it is will say
    return None


def _is_ours(path: Path) -> bool:
    try:
        return path.is_file() and path.stat().st_uid in (os.geteuid(), 0)
    except OSError:
        return False


def _table(value: Any, name: str) -> dict[str, Any]:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def load_settings(start: Path | None = None, *, project: bool = True) -> Loaded:
    """The settings of the user's file, and above them those of the project that `start` lies in."""
    given: dict[str, Any] = {}
    problems: list[str] = []
    files = []
    own, theirs = config_file(), project_file(start) if project else None
    if os.path.lexists(own):
        files.append(own)
        _add(given, _read(own, problems), own, problems)
    if theirs is not None:
        files.append(theirs)
        table = _table(_table(_read(theirs, problems), "tool"), "layerwise")
        for name in [name for name in _OWN_ONLY if name in table]:
            problems.append(f"{_at(theirs)}: {name} is taken from your own file alone, {_at(own)}")
            del table[name]
        _add(given, table, theirs, problems)
    return Loaded(Settings(**given), tuple(files), tuple(problems))


def own_workspace() -> str:
    """The workspace that the user's own file names, "" where it names none or cannot be read."""
    return load_settings(project=False).settings.workspace


def _at(path: Path) -> str:
    return shown(str(path))


def _read(path: Path, problems: list[str]) -> dict[str, Any]:
    try:
        return read_toml(path)
    except BadFile as error:
        problems.append(str(error))
        return {}


def _add(given: dict[str, Any], table: dict[str, Any], path: Path, problems: list[str]) -> None:
    """Put what a file says over what earlier ones said, without what is wrong in it."""
    types = {field.name: field.type for field in msgspec.structs.fields(Settings)}
    for name, value in table.items():
        kind = types.get(name)
        if kind is None:
            problems.append(f"{_at(path)}: there is no setting {shown(name, 60)!r}; there are: {', '.join(types)}")
            continue
        try:
            found = _checked(name, msgspec.convert(_flat(value) if name == "keys" else value, kind))
        except (msgspec.ValidationError, ValueError, RecursionError) as error:
            problems.append(f"{_at(path)}: {name}: {shown(str(error), 200)}")
            continue
        before = given.get(name)
        given[name] = {**before, **found} if isinstance(before, dict) and isinstance(found, dict) else found


def _flat(table: Any, above: str = "") -> Any:
    """`graph.mark = "m"`, which TOML reads as tables, as `{"graph.mark": "m"}`."""
    if not isinstance(table, dict):
        return table
    found: dict[str, Any] = {}
    for name, value in table.items():
        found.update(_flat(value, f"{above}{name}.") if isinstance(value, dict) else {f"{above}{name}": value})
    return found


def _checked(name: str, value: Any) -> Any:
    if name == "preset" and value not in PRESETS:
        raise ValueError(f"no preset {value!r}; there are: {', '.join(PRESETS)}")
    if name == "commands":
        wrong = [word for word in value if not _NAME.fullmatch(word)]
        if wrong:
            raise ValueError(f"{wrong[0]!r} is no name: small letters, digits, - and _")
    if name == "workspace" and value and not user_path(value).is_absolute():
        raise ValueError(f"{value!r} is no absolute path")
    return value
