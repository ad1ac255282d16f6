"""Where indexes are kept, and how one is found without reading the model.

A model file's (device, inode, size, times of content and inode) names a small file that holds the name of the
index's folder. That name is a hash of the structure and of the model's path, so that a model that was only touched
keeps its index. No NumPy here.
"""

import hashlib
import os
from pathlib import Path

from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.filesystem.files import atomic_write
from layerwise._tool.backends.filesystem.permissions import make_folder
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.surgery.graph.names import FORMAT, INDEX_FILE

_LONGEST_NAME = 64


def index_folder(
    cache_root: Path,
    model_path: Path,
    external_data_dir: str | None = None,
    ignore_external_data: bool = False,
) -> Path:
    """Return the folder of the model's index. If `has_index` is false for it, build the index first.

    Costs two file look-ups. BadFile if the model is missing.
    """
    key = _file_key(model_path, external_data_dir, ignore_external_data)
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
    parts = [str(FORMAT), model.structure_key(), str(model.real_path), *options]
    return cache_root / "graphs" / hashlib.blake2b(os.fsencode("\0".join(parts)), digest_size=20).hexdigest()


def remember(cache_root: Path, model: ModelFile, folder: Path, external_data_dir: str | None) -> None:
    """Record that the index of `model` is in `folder`, for `index_folder`."""
    files = cache_root / "files"
    make_folder(files)
    atomic_write(files / _file_key(model.path, external_data_dir, model.ignore_external_data), folder.name)


def _file_key(path: Path, external_data_dir: str | None, ignore_external_data: bool) -> str:
    try:
        status = Path(path).stat()
    except (OSError, ValueError) as error:
        raise BadFile(path, getattr(error, "strerror", None) or str(error)) from error
    place = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    where = (
        os.path.realpath(path),
        external_data_dir and os.path.realpath(external_data_dir),
        ignore_external_data,
    )
    return hashlib.blake2b(repr((FORMAT, place, where)).encode(), digest_size=20).hexdigest()
