"""The origins of all nodes of a graph, from a model's bytes or from protobuf objects."""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from layerwise._tool.backends.model.records import Span, node_fields, read_node
from layerwise._tool.backends.model.wire import BYTES, Source, fields, varint
from layerwise._tool.surgery.origin.metadata import KEYS, MARK, MetadataReader
from layerwise._tool.surgery.origin.names import named_origin
from layerwise._tool.surgery.origin.neighbours import Ends, NodeWiring, fill
from layerwise._tool.surgery.origin.origin import Origin

if TYPE_CHECKING:
    import onnx

_METADATA = 9  # of NodeProto, onnx.proto
_KEY_TAG, _VALUE_TAG = 1 << 3 | BYTES, 2 << 3 | BYTES  # of StringStringEntryProto
_LONGEST_VALUE = 100_000
_KEYS = {key.encode(): key for key in KEYS}
_NONE: dict[str, str] = {}


def has_metadata(structure: bytes) -> bool:
    """Whether an exporter noted anything in a model, by looking for the name of a key; milliseconds."""
    return MARK in structure


def record_origins(
    data: bytes, nodes: Sequence[Span], owner: Origin | None = None, reader: MetadataReader | None = None
) -> list[Origin | None]:
    """The origin of each node of a graph, None where nothing tells. WireError for damaged bytes.

    nodes: their spans in `data`. owner: of the node whose body it is; nodes of which nothing is known are where it is.
    """
    noted = has_metadata(data)
    reader = reader or MetadataReader()
    origins = [reader.origin(read_metadata(data, *span)) if noted else None for span in nodes]
    if None in origins:
        records = [read_node(data, *span) for span in nodes]
        ends = [Ends(node.op, node.inputs, node.outputs) for node in records]
        _complete(origins, [node.name for node in records], ends)
    return [origin or _within(owner) for origin in origins]


class ProtoOrigins:
    """The origins of protobuf objects, each read when it is first asked for."""

    def __init__(self, nodes: "Sequence[onnx.NodeProto]") -> None:
        """nodes: all of a graph, in topological order."""
        self._nodes = nodes
        self._reader = MetadataReader()
        self._filled: list[Origin | None] | None = None

    def __getitem__(self, i: int) -> Origin | None:
        """Where node `i` comes from, None where nothing tells. All nodes are read if its neighbours have to tell."""
        if self._filled is not None:
            return self._filled[i]
        return self._own(self._nodes[i]) or self._around[i]

    def _own(self, node: "onnx.NodeProto") -> Origin | None:
        noted = node.metadata_props
        found = self._reader.origin({_text(prop.key): _text(prop.value) for prop in noted}) if noted else None
        return found or named_origin(_text(node.name), [_text(name) for name in node.output[:1]])

    @cached_property
    def _around(self) -> list[Origin | None]:
        self._filled = [self._own(node) for node in self._nodes]
        if any(origin is not None for origin in self._filled):
            _around(self._filled, [Ends(node.op_type, node.input, node.output) for node in self._nodes])
        return self._filled


def _text(value: str | bytes) -> str:
    """Text of a protobuf object, which is bytes where it is not valid UTF-8; too long is empty, as in the bytes."""
    text = value if isinstance(value, str) else value.decode(errors="replace")
    return text if len(text) <= _LONGEST_VALUE else ""


def _complete(origins: list[Origin | None], names: Sequence[str], ends: Sequence[Ends]) -> None:
    for i, origin in enumerate(origins):
        if origin is None:
            origins[i] = named_origin(names[i], ends[i].outputs)
    if any(origin is not None for origin in origins) and None in origins:
        _around(origins, ends)


def _around(origins: list[Origin | None], ends: Sequence[Ends]) -> None:
    fill(origins, NodeWiring(ends, [i for i, origin in enumerate(origins) if origin is None]))


def _within(owner: Origin | None) -> Origin | None:
    return owner and Origin(owner.modules, owner.classes, told="neighbours")


def read_metadata(data: bytes, start: int, end: int) -> dict[str, str]:
    """The metadata of one node that tells where it comes from. WireError if the bytes do not fit the format."""
    found: dict[str, str] = _NONE
    for number, begin, stop in node_fields(data, start, end):
        if number != _METADATA:
            continue
        key, value = _pair(data, begin, stop)
        if key in _KEYS:
            found = found or {}
            found[_KEYS[key]] = value.decode(errors="replace")
    return found


def _pair(data: bytes, begin: int, stop: int) -> tuple[bytes, bytes]:
    """Key and value of an entry; the value is empty where it is too long. The usual order is read without a loop."""
    middle = begin + 2 + data[begin + 1] if stop - begin > 1 else stop
    if middle + 1 < stop and data[begin] == _KEY_TAG and data[begin + 1] < 0x80 and data[middle] == _VALUE_TAG:
        length, first = varint(data, middle + 1, stop)
        if first + length == stop:
            return data[begin + 2 : middle], data[first:stop] if length <= _LONGEST_VALUE else b""
    key = value = b""
    for number, wire, _, first, last, _ in fields(Source(data), begin, stop):
        if wire == BYTES and number == 1:
            key = data[first:last]
        elif wire == BYTES and number == 2:
            value = data[first:last] if last - first <= _LONGEST_VALUE else b""
    return key, value
