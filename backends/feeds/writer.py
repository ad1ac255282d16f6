"""Writes feed dicts, one dict of arrays per iteration: a file, or a folder with a file per iteration."""

import os
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.filesystem.files import WholeOrNothing, atomic_writer
from layerwise._tool.backends.filesystem.folders import whole_folder
from layerwise._tool.backends.formats.dumps import FEEDS_FORMAT, DumpWriter
from layerwise._tool.backends.formats.json_arrays import as_array
from layerwise._tool.backends.formats.json_format import save, write_value
from layerwise._tool.backends.results.inference import Stored
from layerwise._tool.backends.results.writer import check_target


class FeedsWriter(WholeOrNothing):
    """Writes feed dicts as they come; the file or folder appears, complete, at `close`.

    A path ending in .safetensors gives our dump, any other extension JSON for `--load-inputs` (of Polygraphy too), none
    a folder with one JSON file per iteration. UsageError if the folder is not empty.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._target = Path(path)
        self._count = 0
        self._stack = ExitStack()
        self._stream: BinaryIO | None = None
        self._dump: DumpWriter | None = None
        self._folder: Path | None = None
        check_target(self._target)
        if self._target.suffix == ".safetensors":
            self._dump = DumpWriter(self._target)
        elif self._target.suffix:
            self._stream = self._stack.enter_context(atomic_writer(self._target))
        else:
            self._folder = self._stack.enter_context(whole_folder(self._target))

    def add(self, feed: Mapping[str, Any]) -> None:
        """Write one iteration's inputs: name -> array, Stored or torch tensor."""
        try:
            arrays = {n: v.array() if isinstance(v, Stored) else as_array(v) for n, v in feed.items()}
        except ValueError as error:
            raise UsageError(f"iteration {self._count} holds what is no tensor: {error}") from None
        if self._dump is not None:
            for name, array in arrays.items():
                self._dump.add(f"{self._count}:{name}", array)
        elif self._folder is not None:
            save(self._folder / f"{self._count:010d}.json", arrays)
        elif self._stream is not None:
            self._stream.write(b",\n    " if self._count else b"[\n    ")
            write_value(self._stream, arrays, 1)
        self._count += 1

    def close(self) -> None:
        """Move the file or folder into place."""
        if self._dump is not None:
            self._dump.metadata |= {"format": FEEDS_FORMAT, "iterations": str(self._count)}
            self._dump.close()
        elif self._folder is not None:
            self._stack.close()
        elif self._stream is not None:
            self._stream.write(b"\n]" if self._count else b"[]")
            self._stack.close()

    def abort(self) -> None:
        """Discard everything written."""
        if self._dump is not None:
            self._dump.abort()
        self._stack.__exit__(InterruptedError, InterruptedError(), None)


def save_feeds(path: str | os.PathLike[str], feeds: Iterable[Mapping[str, Any]]) -> None:
    """Write feed dicts like `FeedsWriter`: .json, .safetensors, or a folder with a file per iteration."""
    with FeedsWriter(path) as writer:
        for feed in feeds:
            writer.add(feed)
