"""The cells that a workspace knows: per key a small file that says which jobs it had and what they came to.

A cell is run by the holder of its lock alone. What a holder that was killed left is taken up by the next one.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
from msgspec import Struct

from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.filesystem.files import atomic_write, read_file
from layerwise._tool.backends.filesystem.permissions import make_folder
from layerwise._tool.backends.jobs.workspace import locks
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.debugtools.matrix.rows import Receipt

_MOST = 1 << 16


class Record(Struct, kw_only=True):
    """What is known of a cell. jobs: step -> the job that does it. losses: how often its process was killed
    from outside. again: of which order it was last begun anew. receipt: None until it has ended.
    """

    jobs: dict[str, int] = {}
    losses: int = 0
    again: str = ""
    receipt: Receipt | None = None


class CellStore:
    """The cells of a workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.folder = workspace.cache / "matrix"
        make_folder(self.folder)

    def read(self, key: str) -> Record:
        """What is known of a cell; nothing where its file is missing or damaged."""
        path = self.folder / f"{key}.json"
        if not path.exists():
            return Record()
        try:
            return msgspec.json.decode(read_file(path, _MOST), type=Record)
        except (BadFile, ValueError):
            return Record()

    def write(self, key: str, record: Record) -> None:
        """Keep what is known. Raises OSError."""
        atomic_write(self.folder / f"{key}.json", msgspec.json.encode(record))

    @contextmanager
    def held(self, key: str) -> Iterator[bool]:
        """Hold a cell inside; False where another process does."""
        fd = locks.hold(self.folder / f"{key}.lock")
        try:
            yield fd is not None
        finally:
            if fd is not None:
                os.close(fd)

    def is_held(self, key: str) -> bool:
        """Whether a process runs the cell now."""
        fd = locks.probe(self.folder / f"{key}.lock")
        if fd is not None:
            os.close(fd)
        return fd is None
