"""The smallest failing model so far, on disk while the search goes on; and the nearest one that passes."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.filesystem.files import atomic_writer
from layerwise._tool.backends.filesystem.permissions import make_folder
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.search.judges.protocol import Artifact
from layerwise._tool.debugtools.search.judges.subject import Subject
from layerwise._tool.debugtools.search.rows import BestRow, Numbers

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext

_PATIENCE = 10.0  # the next model is written once this many times as long has passed as the last one took


class Smallest:
    """The smallest set of a search so far, its model on disk at `path`. found: the set, None: nothing yet."""

    def __init__(self, context: "JobContext", path: Path) -> None:
        self._context, self.path = context, path
        self.found: tuple[int, ...] | None = None
        self.measured = Numbers()
        self._written: tuple[int, ...] | None = None
        self._next = 0.0

    def take(self, found: Sequence[int], measured: Numbers) -> None:
        """A candidate shows what is searched."""
        if self.found is None or len(found) < len(self.found):
            self.found, self.measured = tuple(found), measured

    def save(self, *, now: bool = True) -> None:
        """Write the model if it is not the one on disk; unless it must be `now`, only where writing keeps up."""
        if self.found is None or self.found == self._written or (not now and time.monotonic() < self._next):
            return
        started = time.monotonic()
        try:
            self._write(self.found)
        except OSError as error:
            raise LayerwiseError(f"{shown(str(self.path))} cannot be written: {error.strerror or error}") from error
        self._next = time.monotonic() + _PATIENCE * (time.monotonic() - started)
        self._written = self.found
        nodes, labels = self._told(self.found)
        row = BestRow(list(nodes[:200]), len(nodes), list(labels[:20]), str(self.path), self.measured)
        self._context.row("best", row)

    def _write(self, found: tuple[int, ...]) -> None:
        raise NotImplementedError

    def _told(self, found: tuple[int, ...]) -> tuple[Sequence[int], Sequence[str]]:
        """Its nodes, and names for at least the first of them."""
        raise NotImplementedError


class Best(Smallest):
    """The nodes that fail. good: where the nearest model goes that passes, None: nowhere."""

    def __init__(self, context: "JobContext", subject: Subject, path: Path, good: Path | None) -> None:
        super().__init__(context, path)
        self._subject, self._good_path = subject, good
        self._good: list[tuple[int, ...]] = []

    def clear(self) -> None:
        """Nothing has failed yet: the search begins anew."""
        self.found, self.measured = None, Numbers()
        self._good.clear()

    def good(self, nodes: Sequence[int]) -> None:
        """A candidate passed."""
        if self._good_path is not None:
            self._good.append(tuple(nodes))

    def _write(self, found: tuple[int, ...]) -> None:
        write_model(self._subject.artifact(found), self.path)

    def _told(self, found: tuple[int, ...]) -> tuple[Sequence[int], Sequence[str]]:
        return found, [self._subject.describe(i).node for i in found[:20]]

    def save_good(self) -> str | None:
        """Write the largest model that passed of those smaller than the failing one, else the smallest that passed."""
        size = len(self.found or ())
        smaller = [nodes for nodes in self._good if len(nodes) < size]
        nearest = max(smaller, key=len, default=None) or min(self._good, key=len, default=None)
        if self._good_path is None or nearest is None:
            return None
        write_model(self._subject.artifact(nearest), self._good_path)
        return str(self._good_path)


def write_model(artifact: Artifact, path: Path) -> None:
    """Write a candidate to where a user keeps it, whole or not at all."""
    try:
        make_folder(path.parent)
        artifact.write(path, atomic_writer)
    except OSError as error:
        raise LayerwiseError(f"{shown(str(path))} cannot be written: {error.strerror or error}") from error
