"""NumPy's .npy format, version 1.0 to 3.0, and its .npz archives, read safely.

Format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html. Types that NumPy cannot name (bfloat16,
FP8, 4-bit integers) are stored as raw bytes ("<V2", "|V1"), one item per element, as in Polygraphy; the true type is
stored outside the .npy. NumPy writes ml_dtypes' float8_e5m2 as "<f1", which it cannot read itself.
"""

import ast
import io
import math
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.filesystem.files import open_regular
from layerwise._tool.backends.limits.memory import limit, remedy
from layerwise._tool.backends.sizes import binary_size
from layerwise._tool.backends.tensors import DTYPES, EXTENDED_NAMES, dtype_name, to_numpy

MAGIC = b"\x93NUMPY"
HEAD = 12  # bytes that suffice to know the header's length, in any version
MAX_HEADER = 10_000  # NumPy's own limit for headers it evaluates safely
_RAW = {1: "|V1", 2: "<V2"}
_OWN = {"<f1": "float8_e5m2", "|f1": "float8_e5m2"}
_BROKEN = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, OSError, MemoryError)


class NpyHeader(NamedTuple):
    """An .npy header: `size` is its own length in bytes, `nbytes` that of the data.

    kind: the type that it says, if it is not NumPy's.
    """

    dtype: np.dtype[Any]
    fortran: bool
    shape: tuple[int, ...]
    size: int
    nbytes: int
    kind: str | None = None


def header_size(head: bytes) -> int:
    """Return the length of the whole header from its first `HEAD` bytes. ValueError if it is not an .npy."""
    if len(head) < HEAD or not head.startswith(MAGIC):
        raise ValueError("not an .npy array")
    if head[6] == 1:
        size = 10 + int(struct.unpack_from("<H", head, 8)[0])
    elif head[6] in (2, 3):
        size = 12 + int(struct.unpack_from("<I", head, 8)[0])
    else:
        raise ValueError(f".npy version {head[6]} is not known")
    if size > MAX_HEADER:
        raise ValueError("the .npy header is too long")
    return size


def parse_header(head: bytes) -> NpyHeader:
    """Parse a complete header (at least `header_size` bytes). ValueError says what is wrong."""
    size = header_size(head)
    if len(head) < size:
        raise ValueError("the .npy header is cut short")
    begin = 10 if head[6] == 1 else 12
    try:
        fields = ast.literal_eval(head[begin:size].decode("latin-1"))
        descr, fortran, shape = fields["descr"], fields["fortran_order"], fields["shape"]
        kind = _OWN.get(descr) if isinstance(descr, str) else None
        dtype = np.dtype(_RAW[1] if kind else descr if isinstance(descr, str) else "O")
    except (ValueError, TypeError, KeyError, SyntaxError, MemoryError, RecursionError) as error:
        raise ValueError(f"bad .npy header: {(str(error) or type(error).__name__).splitlines()[0][:200]}") from None
    if not isinstance(shape, tuple) or not isinstance(fortran, bool):
        raise ValueError("bad .npy header: no shape or no order")
    _check_dtype(dtype)
    if any(type(dim) is not int or not 0 <= dim < 1 << 48 for dim in shape):
        raise ValueError(f"bad shape {shape!r}"[:200])
    return NpyHeader(dtype, fortran, shape, size, math.prod(shape) * dtype.itemsize, kind)


def _check_dtype(dtype: np.dtype[Any]) -> None:
    if dtype.hasobject:
        raise ValueError("holds Python objects, which are never unpickled")
    if dtype.kind == "U" and dtype.itemsize:
        return
    plain = dtype.kind == "V" and dtype.names is None and dtype.subdtype is None and dtype.itemsize in _RAW
    if not plain and dtype_name(dtype) not in _NUMERIC:
        raise ValueError(f"data type {str(dtype)[:60]} is not one of a tensor")


_NUMERIC = frozenset(row.name for row in DTYPES) - EXTENDED_NAMES - {"string"}


def header_bytes(array: Array) -> bytes:
    """Return the version 1.0 header that NumPy writes for `array` in C order."""
    name = dtype_name(array)
    descr = _RAW[array.itemsize] if name in EXTENDED_NAMES else np.lib.format.dtype_to_descr(array.dtype)
    stream = io.BytesIO()
    fields = {"descr": descr, "fortran_order": False, "shape": array.shape}
    np.lib.format.write_array_header_1_0(stream, fields)
    return stream.getvalue()


def storable(array: Array) -> Array:
    """Return `array` in a form that .npy can hold: C order, little-endian, fixed-width strings.

    LayerwiseError for strings that NumPy's fixed width cannot hold (trailing NUL) or would waste memory on.
    """
    if dtype_name(array) == "string":
        return _fixed_width(array)
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    return np.ascontiguousarray(array) if array.ndim else array


def _fixed_width(array: Array) -> Array:
    texts = [text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text) for text in array.flat]
    width = max(map(len, texts), default=0)
    if any(text.endswith("\0") for text in texts):
        raise LayerwiseError("a string that ends in NUL cannot be kept as .npy or JSON: use .safetensors")
    if len(texts) * width > 1 << 28:
        raise LayerwiseError("this string tensor is too large for .npy or JSON: use .safetensors")
    return np.array(texts, dtype=f"<U{max(width, 1)}").reshape(array.shape)


def shape_array(flat: Array, header: NpyHeader, name: str | None = None) -> Array:
    """Give a flat array of `header.dtype` its shape, order and true type (`name`, stored outside the .npy).

    ValueError if the name does not match what is stored.
    """
    array = flat.reshape(header.shape, order="F" if header.fortran else "C")
    if header.dtype.byteorder == ">":
        array = array.astype(header.dtype.newbyteorder("="))
    if header.dtype.kind == "U":
        return array.astype(object)
    name = name or header.kind
    if name is None or name == dtype_name(array):
        return array
    return _retyped(array, name)


def _retyped(array: Array, name: str) -> Array:
    if name not in EXTENDED_NAMES or array.dtype.kind != "V" or to_numpy(name).itemsize != array.itemsize:
        raise ValueError(f"data type {name[:60]!r} does not fit the stored {array.dtype}")
    return cast(Array, array.view(to_numpy(name)))


def array_from_npy(data: bytes | bytearray | memoryview, name: str | None = None) -> Array:
    """Read a complete .npy from memory without copying (read-only for bytes). ValueError if it is truncated."""
    header = parse_header(bytes(data[:MAX_HEADER]))
    if len(data) - header.size != header.nbytes:
        raise ValueError(f"holds {len(data) - header.size} bytes of data, its shape needs {header.nbytes}")
    count = math.prod(header.shape)
    if header.nbytes == 0:
        return shape_array(np.empty(count, header.dtype), header, name)
    return shape_array(np.frombuffer(data, header.dtype, count, header.size), header, name)


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
