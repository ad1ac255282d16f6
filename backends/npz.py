"""NumPy's .npz archives, read without trusting them."""

import zipfile
import zlib
from pathlib import Path
from typing import BinaryIO

from backends.npy import Array, array_from_npy, header_size, parse_header

_BROKEN = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, OSError, MemoryError)


def read_npz(source: Path | BinaryIO) -> dict[str, Array]:
    """Read all arrays of an archive by name, in order. ValueError if one is not whole or none is there."""
    try:
        with zipfile.ZipFile(source) as archive:
            members = archive.infolist()
            arrays = {info.filename.removesuffix(".npy"): _member(archive, info) for info in members}
    except _BROKEN as error:
        raise ValueError(f"not an .npz archive: {str(error) or type(error).__name__}") from None
    if not arrays:
        raise ValueError("the .npz archive is empty")
    return arrays


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Array:
    with archive.open(info) as stream:
        head = stream.read(12)
        head += stream.read(header_size(head) - len(head))
        header = parse_header(head)
        data = stream.read(header.nbytes + 1)
    return array_from_npy(head + data)
