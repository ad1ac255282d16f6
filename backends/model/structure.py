"""Separates structure from weights in wire format: a model's bytes with its weights left in place.

Every `raw_data` of 1 KiB or more becomes an external reference to its place in the model's own file, as does a
single packed `float_data` or `double_data` of that size, whose bytes are those of raw_data. The rest is
copied. Message and field numbers: onnx.proto, https://github.com/onnx/onnx/blob/main/onnx/onnx.proto.
"""

import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.model.wire import (
    BYTES,
    MAX_DEPTH,
    VARINT,
    Source,
    WireError,
    fields,
    put_bytes,
    put_int,
    put_varint,
    signed,
    varints,
)
from layerwise._tool.backends.text import shown

INLINE_LIMIT = 1024
_MODEL, _GRAPH, _NODE, _ATTRIBUTE, _TENSOR, _SPARSE, _FUNCTION, _TRAINING = range(8)
_CHILDREN: dict[int, dict[int, int]] = {
    _MODEL: {7: _GRAPH, 20: _TRAINING, 25: _FUNCTION},
    _GRAPH: {1: _NODE, 5: _TENSOR, 15: _SPARSE},
    _NODE: {5: _ATTRIBUTE},
    _ATTRIBUTE: {5: _TENSOR, 6: _GRAPH, 10: _TENSOR, 11: _GRAPH, 22: _SPARSE, 23: _SPARSE},
    _SPARSE: {1: _TENSOR, 2: _TENSOR},
    _FUNCTION: {7: _NODE, 11: _ATTRIBUTE},
    _TRAINING: {1: _GRAPH, 2: _GRAPH},
}
_DEPTH_OF_MAIN_INITIALIZERS = 2
_PACKED_LIKE_RAW = {4: 1, 10: 11}  # float_data of a float tensor, double_data of a double tensor
_STRING = 8
_GRAPH_OF_MODEL, _INITIALIZER = 7, 5
_EXTERNAL = (13, 14)  # of a tensor: external_data, data_location
_READ_WHOLE = 1 << 12


class External(NamedTuple):
    """A location outside the model file, as the file states it; `nbytes` is None if not stated."""

    location: str
    offset: int
    nbytes: int | None


@dataclass
class TensorRecord:
    """One TensorProto without its values.

    start, end: the message's position in the file. data: position of its values there, None if they are in typed
    fields, external or absent.
    """

    start: int
    end: int
    name: str = ""
    dtype: int = 0
    dims: list[int] = field(default_factory=list)
    data: tuple[int, int] | None = None
    external: External | None = None


Piece = bytes | tuple[int, int]
Relocate = Callable[[TensorRecord], External | None]


class Cutter:
    """Scans one model and builds its structure.

    relocate: returns where the structure is to find a tensor's values; None keeps the tensor unchanged.
    tensors, others: afterwards the main graph's initializers and all other tensors.
    """

    def __init__(self, source: Source, relocate: Relocate) -> None:
        self.tensors: list[TensorRecord] = []
        self.others: list[TensorRecord] = []
        self._source = source
        self._relocate = relocate

    def structure(self) -> bytes:
        """Return the structure's bytes: a serialised ModelProto."""
        pieces = self._message(_MODEL, 0, self._source.size, 0, True) or [(0, self._source.size)]
        return b"".join(p if isinstance(p, bytes) else self._source.read(*p) for p in pieces)

    def _message(self, kind: int, start: int, end: int, depth: int, movable: bool) -> list[Piece] | None:
        """Return the message's parts, None if unchanged. movable: engines accept external data here."""
        if depth > MAX_DEPTH:
            raise WireError(f"byte {start}: nested more than {MAX_DEPTH} levels deep")
        if kind == _TENSOR:
            return self._tensor(start, end, depth, movable)
        if kind in (_NODE, _SPARSE, _FUNCTION):
            movable = kind == _NODE and self._is_constant(start, end)
        pieces: list[Piece] = []
        copied = start
        for at, number, begin, stop, child in self._children(kind, start, end):
            changed = self._message(child, begin, stop, depth + 1, movable or child == _GRAPH)
            if changed is not None:
                head = put_varint(number << 3 | BYTES) + put_varint(_length(changed))
                pieces += [(copied, at), head, *changed]
                copied = stop
        return [*pieces, (copied, end)] if pieces else None

    def _children(self, kind: int, start: int, end: int) -> Iterator[tuple[int, int, int, int, int]]:
        children, source = _CHILDREN[kind], self._source
        for number, wire, at, begin, stop, _ in fields(source, start, end):
            child = children.get(number)
            if child is None:
                continue
            if wire != BYTES:
                raise WireError(f"byte {at}: field {number} has wire type {wire}, not {BYTES}")
            small = stop - begin < INLINE_LIMIT and child in (_NODE, _ATTRIBUTE)
            if not small or b"location" in source.read(begin, stop):
                yield at, number, begin, stop, child

    def _is_constant(self, start: int, end: int) -> bool:
        ops = [f for f in fields(self._source, start, end) if f.number == 4]
        return bool(ops) and self._source.read(ops[-1].start, ops[-1].end) == b"Constant"

    def _tensor(self, start: int, end: int, depth: int, movable: bool) -> list[Piece] | None:
        tensor, values = read_tensor(self._source, start, end)
        (self.tensors if depth == _DEPTH_OF_MAIN_INITIALIZERS else self.others).append(tensor)
        if tensor.external is None:
            small = tensor.data is None or tensor.data[1] - tensor.data[0] < INLINE_LIMIT
            if small or not movable:
                return None
        place = self._relocate(tensor)
        if place is None:
            return None
        pieces: list[Piece] = []
        copied = start
        for at, stop in values:
            pieces.append((copied, at))
            copied = stop
        return [*pieces, (copied, end), _external_fields(place)]


def read_tensor(source: Source, start: int, end: int) -> tuple[TensorRecord, list[tuple[int, int]]]:
    """Return a TensorProto without its values, and the spans of the fields that hold or locate the values."""
    tensor = TensorRecord(start, end)
    packed: list[tuple[int, int, int]] = []
    raw: tuple[int, int] | None = None
    spans, entries, is_external = [], {}, False
    for number, wire, at, begin, stop, value in fields(source, start, end):
        if number == 1:
            tensor.dims += varints(source.read(begin, stop)) if wire == BYTES else [signed(value)]
        elif number == 2 and wire == VARINT:
            tensor.dtype = value if value < 1 << 31 else 0
        elif number == 8 and wire == BYTES:
            tensor.name = text(source.read(begin, stop))
        elif number == 9 and wire == BYTES:
            raw = (begin, stop)
            spans.append((at, stop))
        elif number in _PACKED_LIKE_RAW:
            packed.append((number, begin if wire == BYTES else -1, stop))
            spans.append((at, stop))
        elif number == 13 and wire == BYTES:
            key, entry = _entry(source, begin, stop)
            entries[key] = entry
            spans.append((at, stop))
        elif number == 14 and wire == VARINT:
            is_external = value == 1
            spans.append((at, stop))
    if is_external:
        tensor.external = _external(entries)
    elif raw is not None and tensor.dtype != _STRING:
        tensor.data = raw
    elif len(packed) == 1 and packed[0][1] >= 0 and _PACKED_LIKE_RAW[packed[0][0]] == tensor.dtype:
        tensor.data = packed[0][1:]
    return tensor, spans


def text(data: bytes) -> str:
    """Return a protobuf string. WireError if it is not UTF-8, as the format requires."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise WireError(f"a name is not valid UTF-8: {data[:40]!r}") from error


def _entry(source: Source, start: int, end: int) -> tuple[str, str]:
    pair = {1: "", 2: ""}
    for number, wire, _, begin, stop, _ in fields(source, start, end):
        if number in pair and wire == BYTES:
            pair[number] = text(source.read(begin, stop))
    return pair[1], pair[2]


def _external(entries: dict[str, str]) -> External:
    numbers = [entries.get("offset", "0"), entries.get("length", "0")]
    if not all(n.isascii() and n.isdigit() and len(n) < 20 for n in numbers):
        raise WireError(f"external data has offset {numbers[0][:30]!r} and length {numbers[1][:30]!r}")
    nbytes = int(numbers[1]) if "length" in entries else None
    return External(entries.get("location", ""), int(numbers[0]), nbytes)


def _external_fields(place: External) -> bytes:
    offset, length = _entry_field("offset", str(place.offset)), _entry_field("length", str(place.nbytes))
    return _location_field(place.location) + offset + length + put_int(14, 1)


@lru_cache(16)  # many tensors of one file
def _location_field(location: str) -> bytes:
    return _entry_field("location", location)


def _entry_field(key: str, value: str) -> bytes:
    return put_bytes(13, put_bytes(1, key.encode()) + put_bytes(2, value.encode()))


def _length(pieces: list[Piece]) -> int:
    return sum(len(p) if isinstance(p, bytes) else p[1] - p[0] for p in pieces)


def has_graph(source: Source) -> bool:
    """Return whether the bytes are a ModelProto with a graph, by its top level. WireError if they are not a message."""
    found = False
    for item in fields(source, 0, source.size):
        if item.number == 1 and (item.wire != VARINT or not 0 < item.value < 1 << 31):
            raise WireError(f"byte {item.at}: ir_version {item.value}")
        found = found or (item.number == 7 and item.wire == BYTES)
    return found


def may_be_external(source: Source) -> bool:
    """Return False if no tensor of a model is external data: the word for its place is nowhere but in raw values.

    WireError if the bytes are not a message.
    """
    for model in fields(source, 0, source.size):
        if model.number not in _CHILDREN[_MODEL]:
            continue
        if model.number != _GRAPH_OF_MODEL:
            return True
        for item in fields(source, model.start, model.end):
            if item.end - item.start <= _READ_WHOLE:
                if b"location" in source.read(item.start, item.end):
                    return True
            elif item.number != _INITIALIZER or any(
                each.number in _EXTERNAL for each in fields(source, item.start, item.end)
            ):
                return True
    return False


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
