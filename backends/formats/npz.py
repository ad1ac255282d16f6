"""Reads NumPy's .npz archives safely."""

import os
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.filesystem.files import open_regular
from layerwise._tool.backends.formats.npy import array_from_npy, header_size, parse_header
from layerwise._tool.backends.limits.memory import limit, remedy
from layerwise._tool.backends.sizes import binary_size

_BROKEN = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, OSError, MemoryError)


def read_npz(source: Path | BinaryIO) -> dict[str, Array]:
    """Return all arrays of an archive by name, in order. ValueError if one is truncated or there is none."""
    try:
        with _opened(source) as stream, zipfile.ZipFile(stream) as archive:
            members = archive.infolist()
            _check_room(members)
            arrays = {info.filename.removesuffix(".npy"): _member(archive, info) for info in members}
    except _BROKEN as error:
        raise ValueError(f"not an .npz archive: {str(error) or type(error).__name__}") from None
    if not arrays:
        raise ValueError("the .npz archive is empty")
    return arrays


@contextmanager
def _opened(source: Path | BinaryIO) -> Iterator[BinaryIO]:
    if not isinstance(source, Path):
        yield source
        return
    with os.fdopen(open_regular(source), "rb") as stream:
        yield stream


def _check_room(members: Sequence[zipfile.ZipInfo]) -> None:
    most, total = limit(), sum(info.file_size for info in members)
    if most is not None and total > most:
        raise ValueError(f"its arrays take {binary_size(total)}: {remedy(most)}")


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Array:
    with archive.open(info) as stream:
        head = stream.read(12)
        head += stream.read(header_size(head) - len(head))
        header = parse_header(head)
        if header.nbytes > info.file_size:
            raise ValueError(f"holds {info.file_size} bytes, its shape needs {header.nbytes}")
        data = stream.read(header.nbytes + 1)
    return array_from_npy(head + data)
