"""Messages assembled from bytes, file ranges and repeated bytes; nothing large is ever held in memory."""

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import BinaryIO, NamedTuple

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.filesystem.files import atomic_writer
from layerwise._tool.backends.filesystem.permissions import make_folder
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.model.structure import read_tensor
from layerwise._tool.backends.model.wire import BYTES, Source, put_varint
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.wording import in_words

_COPIED = 1 << 24
THRESHOLD = 1024  # bytes; smaller weights stay in the model's file if weights go to a separate one
ONE_FILE_LIMIT = (1 << 31) - (1 << 20)  # bytes; protobuf's limit is 2 GB
_RAW_DATA = 9  # of TensorProto, onnx.proto
_CHUNK = 1 << 20


def copy_range(stream: BinaryIO, file: Path, offset: int, length: int) -> None:
    """Append the bytes [offset, offset + length) of `file` to `stream`. OSError if the file is shorter."""
    with file.open("rb") as source:
        done = _copied_by_kernel(stream, source, offset, length)
        source.seek(offset + done)
        while done < length:
            data = source.read(min(_COPIED, length - done))
            if not data:
                raise OSError(f"{file} has become shorter")
            stream.write(data)
            done += len(data)


def _copied_by_kernel(stream: BinaryIO, source: BinaryIO, offset: int, length: int) -> int:
    """Copy bytes in the kernel (Linux, same file system); return how many: all, or fewer if it refuses."""
    if not hasattr(os, "copy_file_range") or length < _COPIED >> 4:
        return 0
    stream.flush()
    done = 0
    with suppress(OSError):
        while done < length:
            count = os.copy_file_range(source.fileno(), stream.fileno(), length - done, offset + done)
            if not count:
                break
            done += count
    return done


class Range(NamedTuple):
    """A range of bytes in a file."""

    file: Path
    offset: int
    nbytes: int


class Repeated(NamedTuple):
    """The same bytes `times` times."""

    unit: bytes
    times: int


Piece = bytes | Range | Repeated


def length(pieces: Iterable[Piece]) -> int:
    """Return the total length of the pieces in bytes."""
    return sum(map(_length, pieces))


def whole_bytes(pieces: Iterable[Piece]) -> bytes:
    """Return the pieces as bytes, if all of them are bytes."""
    return b"".join(piece for piece in pieces if isinstance(piece, bytes))


def message(number: int, pieces: Sequence[Piece]) -> list[Piece]:
    """Return the pieces as a length-delimited field."""
    return [put_varint(number << 3 | BYTES) + put_varint(length(pieces)), *pieces]


def joined(pieces: Iterable[Piece]) -> list[Piece]:
    """Return the pieces with adjacent bytes merged."""
    groups = groupby(pieces, lambda piece: isinstance(piece, bytes))
    return [piece for is_bytes, group in groups for piece in ([whole_bytes(group)] if is_bytes else group)]


def raw_data(values: Piece) -> list[Piece]:
    """Return the field of a TensorProto that holds its values."""
    return message(_RAW_DATA, [values])


def embedded(data: bytes, folder: Path) -> list[Piece]:
    """Return a TensorProto that holds its values, whether `data` has them or says where in `folder` they are."""
    tensor, values = read_tensor(Source(data), 0, len(data))
    place = tensor.external
    if place is None:
        return [data]
    assert place.nbytes is not None
    bare, at = [], 0
    for start, end in values:
        bare.append(data[at:start])
        at = end
    return [b"".join([*bare, data[at:]]), *raw_data(Range(folder / place.location, place.offset, place.nbytes))]


def fits_in_one_file(model: ModelFile, pieces: Sequence[Piece]) -> bool:
    """Return whether a model made of these pieces of `model` becomes one file: its own is one, and 2 GB are enough."""
    inside = all(piece.file == model.real_path for piece in pieces if isinstance(piece, Range))
    return inside and not model.ignore_external_data and length(pieces) <= ONE_FILE_LIMIT


def save_pieces(path: Path, pieces: Iterable[Piece]) -> None:
    """Write the pieces to `path` atomically. LayerwiseError if that fails."""
    try:
        make_folder(path.parent)
        with atomic_writer(path) as stream:
            write_pieces(stream, pieces)
    except OSError as error:
        raise LayerwiseError(f"{shown(str(path))} cannot be written: {in_words(error)}") from None


def write_pieces(stream: BinaryIO, pieces: Iterable[Piece]) -> None:
    """Append the pieces. OSError if a file has become shorter, or from the disk."""
    for piece in pieces:
        if isinstance(piece, Range):
            copy_range(stream, *piece)
        elif isinstance(piece, Repeated):
            _write_repeated(stream, piece)
        else:
            stream.write(piece)


def _write_repeated(stream: BinaryIO, piece: Repeated) -> None:
    if not piece.unit:
        return
    at_once = max(1, min(piece.times, _CHUNK // len(piece.unit)))
    block = piece.unit * at_once
    for _ in range(piece.times // at_once):
        stream.write(block)
    stream.write(piece.unit * (piece.times % at_once))


def _length(piece: Piece) -> int:
    if isinstance(piece, Range):
        return piece.nbytes
    return len(piece.unit) * piece.times if isinstance(piece, Repeated) else len(piece)
