"""Scans protobuf wire format without parsing it: bounds checked, over a file or over bytes.

A 400 MB model is scanned in milliseconds because payloads are skipped by their length, never read.
Format: https://protobuf.dev/programming-guides/encoding/. Groups (wire types 3 and 4), which ONNX does not
use, are rejected.
"""

import os
import struct
from collections.abc import Iterator
from typing import NamedTuple

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
MAX_DEPTH = 100
_MARGIN = 24  # a tag and a length or value, ten bytes each at most
_WIRE_KEY = 7
_ONE_BYTE = [bytes([value]) for value in range(0x80)]


class WireError(ValueError):
    """The bytes are not a valid message. Callers turn it into a BadFile that names the file."""


class Field(NamedTuple):
    """One field of a message.

    number, wire: as in the tag. at: where the tag starts. start, end: span of the payload. value: of a
    varint, otherwise 0. Offsets are bytes from the start of the source.
    """

    number: int
    wire: int
    at: int
    start: int
    end: int
    value: int


class Source:
    """Bytes read through one moving window: a file descriptor, or a bytes object."""

    def __init__(self, data: bytes | int, size: int | None = None, window: int = 4096) -> None:
        if isinstance(data, bytes):
            self._fd, self.size, self.window = -1, len(data), data
        else:
            self._fd, self.size, self.window = data, os.fstat(data).st_size if size is None else size, b""
        self.base = 0
        self._step = window

    def load(self, at: int) -> None:
        """Move the window so that it starts at `at`. WireError if the file has become shorter."""
        if self._fd < 0:
            return
        self.window, self.base = os.pread(self._fd, min(self._step, self.size - at), at), at
        if not self.window and at < self.size:
            raise WireError(f"the file ends at byte {at}, before its own length of {self.size}")

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes [start, end). WireError if they are outside the source."""
        if not 0 <= start <= end <= self.size:
            raise WireError(f"bytes {start} to {end} lie outside the file ({self.size} bytes)")
        if self._fd < 0 or (self.base <= start and end <= self.base + len(self.window)):
            return self.window[start - self.base : end - self.base]
        data = pread_all(self._fd, start, end - start)
        if len(data) != end - start:
            raise WireError(f"the file ends before byte {end}")
        return data


def pread_all(fd: int, offset: int, count: int) -> bytes:
    """Return `count` bytes at `offset`, fewer only at the end of the file (one pread gives 2 GB at most)."""
    parts, done = [], 0
    while done < count:
        part = os.pread(fd, min(count - done, 1 << 30), offset + done)
        if not part:
            break
        parts.append(part)
        done += len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def fields(source: Source, start: int, end: int) -> Iterator[Field]:
    """Yield the fields of the message at [start, end).

    WireError: a varint or payload that extends beyond `end`, an unknown wire type, field number 0.
    """
    pos = start
    while pos < end:
        offset = pos - source.base
        if offset < 0 or offset + _MARGIN > len(source.window):
            source.load(pos)
            offset = pos - source.base
        window = source.window
        at = pos
        key = window[offset]
        offset += 1
        if key >= 0x80:
            key, offset = varint(window, offset - 1, end - source.base)
        wire, number, value = key & _WIRE_KEY, key >> 3, 0
        begin = source.base + offset
        if wire in (BYTES, VARINT):
            value = window[offset] if offset < len(window) and begin < end else 0x80
            offset += 1
            if value >= 0x80:
                value, offset = varint(window, offset - 1, end - source.base)
            pos = source.base + offset
            if wire == BYTES:
                begin, pos, value = pos, pos + value, 0
        elif wire in (FIXED32, FIXED64):
            pos = begin + (4 if wire == FIXED32 else 8)
        else:
            raise WireError(f"byte {at}: wire type {wire} is not used by ONNX")
        if pos > end:
            left = max(0, end - begin)
            raise WireError(f"byte {at}: field {number} claims {pos - begin} bytes, {left} are left")
        if not number:
            raise WireError(f"byte {at}: field number 0")
        yield Field(number, wire, at, begin, pos, value)


def varint(data: bytes, pos: int, end: int) -> tuple[int, int]:
    """Return the unsigned 64-bit value at `pos`, and the position after it. WireError if it extends beyond `end`."""
    end = min(end, len(data))
    value = shift = 0
    while pos < end:
        byte = data[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, pos
        shift += 7
        if shift > 63:
            raise WireError("a number is longer than ten bytes")
    raise WireError("a number is cut off")


def varints(data: bytes) -> list[int]:
    """Return the signed 64-bit values of a packed field."""
    values, pos, end = [], 0, len(data)
    while pos < end:
        value, pos = varint(data, pos, end)
        values.append(signed(value))
    return values


def signed(value: int) -> int:
    """Return an unsigned 64-bit value as the int64 that it encodes."""
    return value - (1 << 64) if value >> 63 else value


def put_varint(value: int) -> bytes:
    """Return the encoding of a value >= 0."""
    if value < 0x80:
        return _ONE_BYTE[value]
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def put_bytes(number: int, payload: bytes) -> bytes:
    """Return a length-delimited field."""
    return put_varint(number << 3 | BYTES) + put_varint(len(payload)) + payload


def put_int(number: int, value: int) -> bytes:
    """Return a varint field, value >= 0."""
    return put_varint(number << 3 | VARINT) + put_varint(value)


def float32(data: bytes) -> float:
    """Return the value of a fixed 32-bit payload."""
    return float(struct.unpack("<f", data)[0])
