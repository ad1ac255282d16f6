"""Removes indexes that are no longer used. `GraphIndex.open` records each use in the file's time."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from layerwise._tool.backends.jobs.folder import disk_use
from layerwise._tool.surgery.graph.names import INDEX_FILE

UNUSED = 30 * 86400.0
MOST = 10**9


class _Entry(NamedTuple):
    used: float
    size: int
    folder: Path


def prune_indexes(cache_root: Path, unused: float = UNUSED, most: int = MOST) -> tuple[int, int]:
    """Remove the indexes not opened for `unused` seconds, and the least recently opened ones beyond `most` bytes.

    Returns how many, and the bytes they took on disk. An index that is mapped somewhere stays readable there.
    """
    kept = count = freed = 0
    for entry in sorted(_entries(cache_root / "graphs"), reverse=True):
        if entry.used >= time.time() - unused and kept + entry.size <= most:
            kept += entry.size
            continue
        shutil.rmtree(entry.folder, ignore_errors=True)
        if not entry.folder.exists():
            count, freed = count + 1, freed + entry.size
    _forget(cache_root)
    return count, freed


def _entries(graphs: Path) -> Iterator[_Entry]:
    for folder in _listed(graphs):
        try:
            times = [path.stat().st_mtime for path in (folder, folder / INDEX_FILE) if path.exists()]
            yield _Entry(max(times), disk_use(folder), folder)
        except (OSError, ValueError):  # another process removed it meanwhile
            continue


def _forget(cache_root: Path) -> None:
    """Remove the records of model files whose index is gone."""
    left = {folder.name for folder in _listed(cache_root / "graphs")}
    for note in _listed(cache_root / "files"):
        try:
            if note.read_text() not in left:
                note.unlink()
        except (OSError, UnicodeDecodeError):
            continue


def _listed(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []
