"""Writes models whose weights are copied from file to file, or from memory, one at a time."""

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import onnx

from layerwise._tool.backends.model.structure import INLINE_LIMIT
from layerwise._tool.backends.model.wire import BYTES, put_bytes, put_varint
from layerwise._tool.backends.tensors import dtype_name, packed_nbytes
from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.wire.pieces import copy_range

_GRAPH, _INITIALIZER, _RAW_DATA = 7, 5, 9  # fields of ModelProto, GraphProto and TensorProto, onnx.proto
_ALIGN = 4096


def place(tensor: onnx.TensorProto) -> tuple[str, int, int]:
    """Return location, offset and length of external data, as in `ModelFile.structure`."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    return entries["location"], int(entries.get("offset", 0)), int(entries.get("length", 0))


def is_external(tensor: onnx.TensorProto) -> bool:
    """True if the tensor's values are in a file."""
    return bool(tensor.data_location == tensor.EXTERNAL)


def nbytes(tensor: onnx.TensorProto) -> int:
    """Return the bytes of a tensor's values, external or raw; 0 for typed fields. Avoids copying `raw_data`."""
    if is_external(tensor):
        return place(tensor)[2]
    name = dtype_name(tensor.data_type)
    return packed_nbytes(name, tensor.dims) if tensor.HasField("raw_data") and name != "unknown" else 0


def embed(tensor: onnx.TensorProto, folder: Path | None) -> None:
    """Read a tensor's external data into it."""
    assert folder is not None
    location, offset, length = place(tensor)
    with (folder / location).open("rb") as stream:
        stream.seek(offset)
        tensor.raw_data = stream.read(length)
    _strip(tensor)


def write_streamed(
    stream: BinaryIO, model: onnx.ModelProto, weights: Sequence[onnx.TensorProto], folder: Path | None
) -> None:
    """Write the model with `weights` (external ones are in `folder`) embedded as further initializers."""
    heads = [_head(tensor) for tensor in weights]
    graph = model.graph.SerializeToString()
    model.ClearField("graph")
    outside = sum(nbytes(tensor) for tensor in weights if _is_bulk(tensor))
    size = len(graph) + sum(len(head) for head in heads) + outside
    stream.write(model.SerializeToString() + put_varint(_GRAPH << 3 | BYTES) + put_varint(size) + graph)
    for head, tensor in zip(heads, weights, strict=True):
        stream.write(head)
        if _is_bulk(tensor):
            _copy(stream, tensor, folder)


def write_apart(
    stream: BinaryIO, location: str, weights: Sequence[onnx.TensorProto], folder: Path | None
) -> list[onnx.TensorProto]:
    """Write the values of `weights` to a file that models refer to as `location`; return tensors that refer to it."""
    moved, at = [], 0
    for tensor in weights:
        start = -(-at // _ALIGN) * _ALIGN
        stream.write(b"\0" * (start - at))
        _copy(stream, tensor, folder)
        moved.append(_referring(tensor, location, start))
        at = start + nbytes(tensor)
    return moved


def _referring(tensor: onnx.TensorProto, location: str, offset: int) -> onnx.TensorProto:
    moved = _bare(tensor)
    moved.data_location = moved.EXTERNAL
    for key, value in (("location", location), ("offset", str(offset)), ("length", str(nbytes(tensor)))):
        moved.external_data.add(key=key, value=value)
    return moved


def _bare(tensor: onnx.TensorProto) -> onnx.TensorProto:
    """Return the tensor without its values."""
    bare = onnx.TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
    if tensor.doc_string:
        bare.doc_string = tensor.doc_string
    bare.metadata_props.extend(tensor.metadata_props)
    return bare


def _strip(tensor: onnx.TensorProto) -> None:
    del tensor.external_data[:]
    tensor.ClearField("data_location")


def _head(tensor: onnx.TensorProto) -> bytes:
    """Return an initializer field, for a large tensor only up to its raw bytes."""
    if not _is_bulk(tensor):
        return put_bytes(_INITIALIZER, tensor.SerializeToString())
    length = nbytes(tensor)
    inner: bytes = _bare(tensor).SerializeToString() + put_varint(_RAW_DATA << 3 | BYTES) + put_varint(length)
    return put_varint(_INITIALIZER << 3 | BYTES) + put_varint(len(inner) + length) + inner


def _is_bulk(tensor: onnx.TensorProto) -> bool:
    return is_external(tensor) or nbytes(tensor) >= INLINE_LIMIT


def _copy(stream: BinaryIO, tensor: onnx.TensorProto, folder: Path | None) -> None:
    if not is_external(tensor):
        data = tensor.raw_data
        if len(data) != nbytes(tensor):
            raise ValueError(f"the values of {shown(tensor.name, 120)!r} do not fit its shape")
        stream.write(data)
        return
    assert folder is not None
    location, offset, length = place(tensor)
    copy_range(stream, folder / location, offset, length)
