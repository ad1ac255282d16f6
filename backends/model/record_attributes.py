"""Reads attributes from a structure's bytes, without the onnx package.

Message and field numbers: onnx.proto, https://github.com/onnx/onnx/blob/main/onnx/onnx.proto.
"""

import struct
from typing import Any, NamedTuple

from layerwise._tool.backends.model.structure import text
from layerwise._tool.backends.model.wire import (
    BYTES,
    FIXED32,
    VARINT,
    Field,
    Source,
    WireError,
    fields,
    float32,
    signed,
    varint,
)

_HIGH_BYTES = bytes(range(0x80, 0x100))
_FIELD_OF_KIND = {
    1: 2,
    2: 3,
    3: 4,
    6: 7,
    7: 8,
    8: 9,
    4: 5,
    5: 6,
    9: 10,
    10: 11,
    11: 22,
    12: 23,
    13: 14,
    14: 15,
}
_REPEATED = {7, 8, 9, 10, 11, 23, 15}
_MESSAGES = {5, 6, 14, 22}
_SCALAR_DEFAULTS: dict[int, Any] = {1: 0.0, 2: 0, 3: b""}


class Attribute(NamedTuple):
    """One AttributeProto. kind: AttributeProto.AttributeType. values: at most the requested number of `total`.

    values are int, float, bytes, or spans of messages (tensors, graphs, types). reference: the function attribute it
    refers to.
    """

    name: str
    kind: int
    values: list[Any]
    total: int
    reference: str


def read_attribute(data: bytes, start: int, end: int, limit: int) -> Attribute:
    """Return one attribute with at most `limit` of its values."""
    name, reference, kind = "", "", 0
    found: dict[int, list[Any]] = {}
    totals: dict[int, int] = {}
    for item in fields(Source(data), start, end):
        number = item.number
        if number == 1 and item.wire == BYTES:
            name = text(data[item.start : item.end])
        elif number == 21 and item.wire == BYTES:
            reference = text(data[item.start : item.end])
        elif number == 20 and item.wire == VARINT:
            kind = item.value
        else:
            if number in _MESSAGES and number in found:
                raise WireError(f"byte {item.at}: a tensor, graph or type of an attribute is in several parts")
            values, total = _values(data, item, limit)
            before = found.get(number, []) if number in _REPEATED else []
            found[number] = before + values[: max(0, limit - len(before))]
            totals[number] = total + (totals.get(number, 0) if number in _REPEATED else 0)
    kind = kind or next((k for k, n in _FIELD_OF_KIND.items() if n in found), 0)
    number = _FIELD_OF_KIND.get(kind, 0)
    if number not in found:
        found[number] = [_SCALAR_DEFAULTS[kind]] if kind in _SCALAR_DEFAULTS else []
    return Attribute(name, kind, found[number], totals.get(number, len(found[number])), reference)


def _values(data: bytes, item: Field, limit: int) -> tuple[list[Any], int]:
    """Return up to `limit` values of one field of an attribute, and how many there are."""
    number, wire, start, end = item.number, item.wire, item.start, item.end
    if number in (3, 8) and wire == VARINT:
        return [signed(item.value)], 1
    if number in (2, 7) and wire == FIXED32:
        return [float32(data[start:end])], 1
    if wire != BYTES:
        return [], 0
    if number in (4, 9):
        return [data[start:end]], 1
    if number == 7:
        total = (end - start) // 4
        some = min(total, limit)
        return list(struct.unpack(f"<{some}f", data[start : start + 4 * some])), total
    if number == 8:
        return _varints(data[start:end], limit)
    return [(start, end)], 1


def _varints(data: bytes, limit: int) -> tuple[list[int], int]:
    values: list[int] = []
    pos, end = 0, len(data)
    while pos < end and len(values) < limit:
        value, pos = varint(data, pos, end)
        values.append(signed(value))
    return values, len(values) + len(data[pos:].translate(None, _HIGH_BYTES))
