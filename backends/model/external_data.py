"""Locations of a model's weights. Only regular files inside the model's folder are accepted."""

import stat
from pathlib import Path
from typing import NamedTuple

from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.model.structure import External
from layerwise._tool.backends.text import shown


class WeightRef(NamedTuple):
    """Location of an initializer's values: `nbytes` bytes at `offset` of `file`, little-endian, as in raw_data.

    offset is -1 if they are not contiguous there (typed fields, strings, none): use ModelFile.array.
    dtype: TensorProto.DataType.
    """

    name: str
    dtype: int
    dims: tuple[int, ...]
    file: Path
    offset: int
    nbytes: int


def external_file(model: Path, folder: Path, tensor: str, place: External) -> tuple[Path, int]:
    """Return the file and byte count of a location, checked to exist inside `folder`.

    folder: resolved, without symbolic links. BadFile, naming `model`, for absolute paths, "..", links that
    leave the folder, non-regular files, and bytes beyond a file's end.
    """
    quoted = f"external data {shown(place.location, 200)!r} of tensor {shown(tensor, 200)!r}"
    parts = Path(place.location).parts
    if not parts or "\0" in place.location or place.location.startswith("/") or ".." in parts:
        raise BadFile(model, f"{quoted} must be a path inside the model's folder")
    try:
        file = (folder / place.location).resolve(strict=True)
        status = file.stat()
    except (OSError, RuntimeError) as error:
        hint = "name its folder with --external-data-dir, or skip it with --ignore-external-data"
        raise BadFile(model, f"{quoted} is not in {folder}: {hint}") from error
    if not file.is_relative_to(folder):
        raise BadFile(model, f"{quoted} is a link that leaves {folder}: put the file itself there")
    if not stat.S_ISREG(status.st_mode):
        raise BadFile(model, f"{quoted} is not a regular file")
    nbytes = status.st_size - place.offset if place.nbytes is None else place.nbytes
    if nbytes < 0 or place.offset + nbytes > status.st_size:
        end = place.offset + nbytes
        raise BadFile(model, f"{quoted}: bytes {place.offset} to {end} lie beyond its end")
    return file, nbytes
