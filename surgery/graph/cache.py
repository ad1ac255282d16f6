"""Where indexes are kept, how one is found without reading the model, and how unused ones are removed.

A model file's state (see `FileState`) names a small file that holds the name of the index's folder. That name is a
hash of the structure and of the model's path, so that a model that was only touched keeps its index. Both names also
hold the versions of what reads models and infers shapes. `GraphIndex.open` records each use in the file's time. No
NumPy here.
"""

import hashlib
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from layerwise._tool import VERSION
from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.filesystem.files import atomic_write
from layerwise._tool.backends.filesystem.permissions import make_folder
from layerwise._tool.backends.filesystem.states import FileState, state_of
from layerwise._tool.backends.jobs.folder import disk_use
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.versions import versions
from layerwise._tool.surgery.graph.kinds import FORMAT, INDEX_FILE

_LONGEST_NAME = 64
UNUSED = 30 * 86400.0
MOST = 10**9


def index_folder(
    cache_root: Path,
    model_path: Path,
    external_data_dir: str | None = None,
    ignore_external_data: bool = False,
) -> Path:
    """Return the folder of the model's index. If `has_index` is false for it, build the index first.

    Costs two file look-ups. BadFile if the model is missing.
    """
    try:
        state = state_of(model_path)
    except (OSError, ValueError) as error:
        raise BadFile(model_path, getattr(error, "strerror", None) or str(error)) from error
    key = _file_key(state, model_path, external_data_dir, ignore_external_data)
    try:
        name = (cache_root / "files" / key).read_text()[:_LONGEST_NAME].strip()
    except (OSError, UnicodeDecodeError):
        name = ""
    return cache_root / "graphs" / (name if name.isalnum() else key)


def has_index(folder: Path) -> bool:
    """True if `folder` holds an index."""
    return (folder / INDEX_FILE).is_file()


def place_for(cache_root: Path, model: ModelFile) -> Path:
    """Return the folder that the index of `model` belongs in. Scans the model."""
    options = [str(model.data_folder), str(model.ignore_external_data)]
    parts = [repr(_made_by()), model.structure_key(), str(model.real_path), *options]
    return cache_root / "graphs" / hashlib.blake2b(os.fsencode("\0".join(parts)), digest_size=20).hexdigest()


def remember(
    cache_root: Path, model: ModelFile, state: FileState | None, folder: Path, external_data_dir: str | None
) -> None:
    """Record that the index of `model` is in `folder`, for `index_folder`.

    state: `settled_state` of the file, before it was read. Nothing is recorded for None. No later state is the same.
    """
    if state is None:
        return
    files = cache_root / "files"
    make_folder(files)
    atomic_write(files / _file_key(state, model.path, external_data_dir, model.ignore_external_data), folder.name)


def _made_by() -> tuple[int, str, str]:
    """The format, our version, and that of onnx, which infers shapes."""
    return FORMAT, VERSION, versions().get("onnx", "")


def _file_key(state: FileState, path: Path, external_data_dir: str | None, ignore_external_data: bool) -> str:
    where = (
        os.path.realpath(path),
        external_data_dir and os.path.realpath(external_data_dir),
        ignore_external_data,
    )
    return hashlib.blake2b(repr((_made_by(), tuple(state), where)).encode(), digest_size=20).hexdigest()


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
