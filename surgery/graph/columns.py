"""One file of named NumPy columns and a JSON header: written atomically, memory-mapped on opening.

Layout: magic, header length (8 bytes, little endian), header (JSON: {"meta": …, "columns": {name: [dtype,
offset, count]}}), columns aligned to 64 bytes. Offsets count from the start of the file.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.filesystem.files import atomic_writer
from layerwise._tool.surgery.graph.names import FORMAT

Columns = dict[str, NDArray[Any]]
_MAGIC = f"LAYERWISE GRAPH {FORMAT}\n".encode()
_ALIGNMENT = 64
_HEADER_LIMIT = 1 << 28
_TYPES = {"|u1", "<i2", "<i4", "<i8"}


def write_columns(path: Path, columns: Columns, meta: dict[str, Any]) -> None:
    """Write one-dimensional columns of the types uint8, int16, int32 or int64."""
    places: dict[str, tuple[str, int, int]] = {}
    at = 0
    for name, column in columns.items():
        places[name] = (column.dtype.str, at, column.size)
        at += -(-column.nbytes // _ALIGNMENT) * _ALIGNMENT
    header = json.dumps({"meta": meta, "columns": places}).encode()
    with atomic_writer(path) as stream:
        stream.write(_MAGIC + len(header).to_bytes(8, "little") + header)
        for column in columns.values():
            stream.write(b"\0" * (-stream.tell() % _ALIGNMENT))
            stream.write(column.data)


def read_columns(path: Path) -> tuple[Columns, dict[str, Any]]:
    """Return the columns, memory-mapped read-only, and the metadata. BadFile if the file is truncated or not ours."""
    try:
        data = np.memmap(path, np.uint8, "r").view(np.ndarray)  # np.memmap elements are ten times slower
    except (OSError, ValueError) as error:
        raise BadFile(path, f"not a graph index: {error}") from error
    start = len(_MAGIC) + 8
    length = int.from_bytes(data[len(_MAGIC) : start].tobytes(), "little")
    if data[: len(_MAGIC)].tobytes() != _MAGIC or length > min(_HEADER_LIMIT, data.size - start):
        raise BadFile(path, "not a graph index of this version")
    try:
        header = json.loads(data[start : start + length].tobytes())
        first = -(-(start + length) // _ALIGNMENT) * _ALIGNMENT
        columns = {name: _column(data, first, *place) for name, place in header["columns"].items()}
        meta = dict(header["meta"])
    except (ValueError, KeyError, TypeError) as error:
        raise BadFile(path, f"damaged graph index: {error}") from error
    return columns, meta


def _column(data: NDArray[Any], first: int, dtype: str, offset: int, count: int) -> NDArray[Any]:
    if dtype not in _TYPES or offset < 0 or count < 0:
        raise ValueError(f"column of {dtype}")
    kind = np.dtype(dtype)
    if count == 0:
        return np.zeros(0, kind)
    part = data[first + offset : first + offset + count * kind.itemsize]
    if part.size != count * kind.itemsize:
        raise ValueError("cut off")
    return part.view(kind)
