"""Files that may be opened: those below a folder, and completions of a path that is typed."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from layerwise._tool.backends.specs import ENGINE_SUFFIXES

SUFFIXES = (".onnx", *ENGINE_SUFFIXES)
_DEPTH = 6
_MOST = 2000
_SECONDS = 1.0
_ENTRIES = 20_000
_SKIPPED = frozenset({"node_modules", "site-packages", "dist-packages", "__pycache__"})


class Below(NamedTuple):
    """Models below a folder, nearest first. cut: there may be more, which were not looked for."""

    paths: list[Path]
    cut: bool


def models_below(folder: Path, seconds: float = _SECONDS) -> Below:
    """Files that are named as models are, in a folder and those below; hidden folders, links to folders, and what
    package managers install are not looked into. Takes about `seconds` at most.
    """
    found: list[Path] = []
    waiting = [(str(folder), 0)]
    deadline = time.monotonic() + seconds
    for place, depth in waiting:  # grows while it is gone through: nearest folders first
        if time.monotonic() > deadline or len(found) >= _MOST:
            return Below(found[:_MOST], True)
        names, folders = _sorted(place)
        found += names
        waiting += [(path, depth + 1) for path in folders if depth < _DEPTH]
    return Below(found, False)


def _sorted(folder: str) -> tuple[list[Path], list[str]]:
    """Models and folders in a folder, by name; what cannot be read holds none."""
    models, folders = [], []
    for entry in _entries(folder):
        try:
            if entry.is_dir(follow_symlinks=False):
                if not entry.name.startswith(".") and entry.name not in _SKIPPED:
                    folders.append(entry.path)
            elif entry.name.lower().endswith(SUFFIXES):
                models.append(Path(entry.path))
        except OSError:
            continue
    return sorted(models), sorted(folders)


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            for _, entry in zip(range(_ENTRIES), found, strict=False):
                yield entry
    except OSError:
        return


def complete_path(typed: str, fits: Callable[[str], bool] = lambda name: True, most: int = 200) -> list[str]:
    """Paths that continue what is typed: folders (with a slash at the end) and files whose name `fits`.

    Hidden ones are offered once their point is typed. What is typed keeps its form: `~/` and `../` stay.
    """
    head, slash, start = typed.rpartition("/")
    folder = os.path.expanduser(f"{head}/") if slash else "."  # noqa: PTH111 (Path.expanduser raises)
    found = []
    for entry in _entries(folder):
        name = entry.name
        if not name.startswith(start) or (name.startswith(".") and not start.startswith(".")):
            continue
        if not name.isprintable():  # a line cannot hold it
            continue
        is_folder = _is_folder(entry)
        if is_folder or fits(name):
            found.append((not is_folder, f"{head}{slash}{name}{'/' * is_folder}"))
    return [path for _, path in sorted(found)[:most]]


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def is_model_name(name: str) -> bool:
    """Whether a file is named as models are."""
    return name.lower().endswith(SUFFIXES)
