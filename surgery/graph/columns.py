"""One file of named NumPy columns and a JSON header: written atomically, memory-mapped on opening.

Layout: magic, header length (8 bytes, little endian), header (JSON: {"meta": …, "columns": {name: [dtype,
offset, count]}}), columns aligned to 64 bytes. Offsets count from the start of the file. A table of distinct strings
is columns too: their UTF-8 bytes, and the same in lower case for searching.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.filesystem.files import atomic_writer
from layerwise._tool.surgery.graph.kinds import FORMAT

Columns = dict[str, NDArray[Any]]
_MAGIC = f"LAYERWISE GRAPH {FORMAT}\n".encode()
_ALIGNMENT = 64
_HEADER_LIMIT = 1 << 28
_TYPES = {"|u1", "<i2", "<i4", "<i8"}
_SEPARATOR = b"\xff"  # not in any UTF-8 text, so that no match extends beyond a string


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


class StringTable:
    """Gives each distinct string a number, in order of arrival."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}

    def add(self, text: str) -> int:
        """Return the number of `text`."""
        return self._ids.setdefault(text, len(self._ids))

    def columns(self, prefix: str) -> Columns:
        """Return the columns `<prefix>_text`, `<prefix>_at` and, for lower case, `<prefix>_low`, `…_low_at`."""
        text, at = _joined(self._ids)
        low, low_at = _joined(name.lower() for name in self._ids)
        return {f"{prefix}_text": text, f"{prefix}_at": at, f"{prefix}_low": low, f"{prefix}_low_at": low_at}


class Strings:
    """Reads StringTable's columns."""

    def __init__(self, columns: Columns, prefix: str) -> None:
        self._text, self._at = columns[f"{prefix}_text"], columns[f"{prefix}_at"]
        self._low, self._low_at = columns[f"{prefix}_low"], columns[f"{prefix}_low_at"]

    def __len__(self) -> int:
        return max(0, self._at.size - 1)

    def __getitem__(self, number: int) -> str:
        return self.raw(number).decode()

    def raw(self, number: int) -> bytes:
        """Return the UTF-8 bytes of one string."""
        return bytes(self._text[self._at[number] : self._at[number + 1] - 1])

    def containing(self, part: str) -> NDArray[np.bool_]:
        """Return a mask over all strings: which contain `part`, ignoring case."""
        mask = np.zeros(len(self), np.bool_)
        needle = np.frombuffer(part.lower().encode(), np.uint8)
        if needle.size == 0:
            return ~mask
        starts = _positions(self._low, needle)
        mask[np.searchsorted(self._low_at, starts, "right") - 1] = True
        return mask


def _joined(names: Iterable[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    encoded = [name.encode() for name in names]
    lengths = np.fromiter((len(e) + 1 for e in encoded), np.int64, len(encoded))
    text = np.frombuffer(_SEPARATOR.join([*encoded, b""]), np.uint8)
    return text, np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])


def _positions(text: NDArray[np.uint8], needle: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return where `needle` starts in `text`: candidates by its rarest byte, filtered byte by byte."""
    last = text.size - needle.size + 1
    if last <= 0:
        return np.zeros(0, np.int64)
    sample = np.bincount(text[:: max(1, text.size // 65536)], minlength=256)
    order = np.argsort(sample[needle], kind="stable")
    found = np.flatnonzero(text[order[0] : last + order[0]] == needle[order[0]])
    for place in order[1:]:
        if not found.size:
            break
        found = found[text[found + place] == needle[place]]
    return found
