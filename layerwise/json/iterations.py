"""Files of one iteration each, in a folder."""

import copy
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from layerwise.json.coding import load_json, save_json
from layerwise.logger import G_LOGGER

if TYPE_CHECKING:
    from typing_extensions import Self

ITERATION_FILE_INDEX_WIDTH = 10
"""Digits of an iteration's number in the name of its file."""


def list_iteration_files(dir_path: str | os.PathLike[str]) -> list[str]:
    """The files of a folder, in order."""
    return [str(path) for path in sorted(Path(dir_path).glob("*.json"))]


def is_single_file(path: str | os.PathLike[str] | None) -> bool:
    """Whether a path names a file: it has an extension. Without one it names a folder with a file an iteration."""
    return path is not None and Path(path).suffix != ""


def iterate_from_files(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], load_file: Callable[[str], Iterable[Any]],
    allow_dirs: bool = True,
) -> Iterator[Any]:  # fmt: skip
    """What `load_file` returns for each file, one item after the other; for a folder, for each of its files.

    PolygraphyException for a folder, if there may be none.
    """
    for path in [paths] if isinstance(paths, str | os.PathLike) else paths:
        if not Path(path).is_dir():
            yield from load_file(str(path))
            continue
        if not allow_dirs:
            G_LOGGER.critical(f"Could not load '{path}': it is a directory, but a file was expected.")
        for file in list_iteration_files(path):
            yield from load_file(file)


def iterate_json_list(path: str, description: str | None = None) -> Iterator[Any]:
    """The items of a file that holds a list, or the one object that it holds."""
    found = load_json(path, description)
    yield from found if isinstance(found, list) else [found]


class IterationWriter:
    """Writes the items of iterations: into one file at the end, or each into a file of its own in a folder.

    path: a file (with an extension), a folder that is new or empty, or None, for which nothing is written.
    combine: what one file is to hold of the list of items. copy_on_accumulate: items change after they are given.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        combine: Callable[[list[Any]], Any] | None = None,
        copy_on_accumulate: bool = False,
        description: str | None = None,
    ) -> None:
        self.path = path
        self.single_file = is_single_file(path)
        self._combine = combine or (lambda items: items)
        self._copy = copy_on_accumulate
        self._description = description or "data"
        self._items: list[Any] = []
        self._index = 0
        if path is not None and not self.single_file:
            self._prepare(Path(path))

    def _prepare(self, folder: Path) -> None:
        if folder.exists() and not folder.is_dir():
            G_LOGGER.critical(f"Cannot save {self._description} to '{folder}': a file already exists there, and a path "
                              "without an extension is a folder with a file an iteration")  # fmt: skip
        if folder.exists() and any(folder.iterdir()):
            G_LOGGER.critical(f"Cannot save {self._description} to '{folder}': the directory is not empty")
        folder.mkdir(parents=True, exist_ok=True)

    def append(self, item: Any) -> None:
        """Take an iteration's item."""
        if self.path is None:
            return
        if self.single_file:
            self._items.append(copy.deepcopy(item) if self._copy else item)
            return
        name = f"{self._index:0{ITERATION_FILE_INDEX_WIDTH}d}.json"
        save_json(item, Path(self.path) / name, description=self._description)
        self._index += 1

    def flush(self) -> None:
        """Write the one file, if there is one to write."""
        if self.single_file:
            save_json(self._combine(self._items), self.path, description=self._description)

    def __enter__(self) -> "Self":
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.flush()
