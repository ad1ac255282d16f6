"""A cut written as a model of its own: only the weights that it needs, all types and shapes filled in."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, BinaryIO

import onnx
import onnx.numpy_helper
from numpy.typing import NDArray

from backends.files import atomic_writer
from backends.protos import all_tensors
from backends.tensors import dtype_name, to_onnx
from backends.wire import BYTES, put_varint
from surgery.cut import GraphCut, Segment

EMBED_LIMIT = 1 << 30
_GRAPH, _INITIALIZER, _RAW_DATA = 7, 5, 9  # fields of ModelProto, GraphProto and TensorProto, onnx.proto
_ALIGN = 4096
_CHUNK = 1 << 24
Opener = Callable[[Path], AbstractContextManager[BinaryIO]]


def write_cut(
    path: Path,
    graph: GraphCut,
    part: Segment,
    tensors: Mapping[str, NDArray[Any]],
    folder: Path,
    *,
    frozen: Collection[str] = (),
    opener: Opener = atomic_writer,
) -> None:
    """Write `part` of `graph` to `path`; weights above 1 GB lie beside it in `<name>.data`.

    tensors: the reference's, for types and shapes of what the part reads and makes; its feeds must be among them.
    frozen: feeds that become weights. folder: where the graph's external weights are. OSError as the disk gives it.
    """
    types = {name: to_onnx(dtype_name(tensors[name])) for name in part.feeds}
    model = onnx.ModelProto.FromString(graph.build(part, types))
    _freeze(model.graph, {name: tensors[name] for name in frozen})
    _describe(model.graph, tensors)
    weights = _taken_out(model.graph)
    for tensor in all_tensors(model):
        if tensor.data_location == tensor.EXTERNAL:
            _embed(tensor, folder)
    if sum(_place(tensor)[2] for tensor in weights) > EMBED_LIMIT:
        _write_beside(path, model, weights, folder, opener)
        return
    with opener(path) as stream:
        _write_streamed(stream, model, weights, folder)


def _freeze(graph: onnx.GraphProto, tensors: Mapping[str, NDArray[Any]]) -> None:
    kept = [value for value in graph.input if value.name not in tensors]
    del graph.input[:]
    graph.input.extend(kept)
    graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in tensors.items())


def _describe(graph: onnx.GraphProto, tensors: Mapping[str, NDArray[Any]]) -> None:
    """Fill in types and shapes: of inputs and outputs, and of all else that is known, as value_info."""
    ends = {value.name for value in (*graph.input, *graph.output)}
    inner = [name for node in graph.node for name in node.output if name in tensors and name not in ends]
    for value in (*graph.input, *graph.output, *(graph.value_info.add(name=name) for name in inner)):
        if value.name in tensors:
            array = tensors[value.name]
            value.type.tensor_type.elem_type = to_onnx(dtype_name(array))
            value.type.tensor_type.shape.SetInParent()
            for length in array.shape:
                value.type.tensor_type.shape.dim.add(dim_value=length)


def _place(tensor: onnx.TensorProto) -> tuple[str, int, int]:
    """Location, offset and length of external data, as `ModelFile.structure` states them."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    return entries["location"], int(entries.get("offset", 0)), int(entries.get("length", 0))


def _taken_out(graph: onnx.GraphProto) -> list[onnx.TensorProto]:
    """Take the graph's own external weights out of it."""
    kept: list[onnx.TensorProto] = []
    taken: list[onnx.TensorProto] = []
    for tensor in graph.initializer:
        copy = onnx.TensorProto()
        copy.CopyFrom(tensor)
        (taken if copy.data_location == copy.EXTERNAL else kept).append(copy)
    del graph.initializer[:]
    graph.initializer.extend(kept)
    return taken


def _embed(tensor: onnx.TensorProto, folder: Path) -> None:
    location, offset, length = _place(tensor)
    with (folder / location).open("rb") as stream:
        stream.seek(offset)
        tensor.raw_data = stream.read(length)
    _strip(tensor)


def _strip(tensor: onnx.TensorProto) -> None:
    del tensor.external_data[:]
    tensor.ClearField("data_location")


def _write_streamed(
    stream: BinaryIO, model: onnx.ModelProto, weights: Sequence[onnx.TensorProto], folder: Path
) -> None:
    """Write the model with `weights` embedded; their bytes go from file to file."""
    places = [_place(tensor) for tensor in weights]
    heads = [_head(tensor) for tensor in weights]
    graph = model.graph.SerializeToString()
    model.ClearField("graph")
    size = len(graph) + sum(len(head) + place[2] for head, place in zip(heads, places, strict=True))
    stream.write(model.SerializeToString() + put_varint(_GRAPH << 3 | BYTES) + put_varint(size) + graph)
    for head, place in zip(heads, places, strict=True):
        stream.write(head)
        _copy(stream, folder, *place)


def _head(tensor: onnx.TensorProto) -> bytes:
    """An initializer field up to where its raw bytes begin."""
    length = _place(tensor)[2]
    _strip(tensor)
    inner: bytes = tensor.SerializeToString() + put_varint(_RAW_DATA << 3 | BYTES) + put_varint(length)
    return put_varint(_INITIALIZER << 3 | BYTES) + put_varint(len(inner) + length) + inner


def _copy(stream: BinaryIO, folder: Path, location: str, offset: int, length: int) -> None:
    with (folder / location).open("rb") as source:
        source.seek(offset)
        while length > 0:
            data = source.read(min(_CHUNK, length))
            if not data:
                raise OSError(f"{folder / location} has become shorter")
            stream.write(data)
            length -= len(data)


def _write_beside(
    path: Path, model: onnx.ModelProto, weights: Sequence[onnx.TensorProto], folder: Path, opener: Opener
) -> None:
    data = path.with_name(f"{path.name}.data")
    with opener(data) as stream:
        at = 0
        for tensor in weights:
            start = -(-at // _ALIGN) * _ALIGN
            stream.write(b"\0" * (start - at))
            location, offset, length = _place(tensor)
            _copy(stream, folder, location, offset, length)
            del tensor.external_data[:]
            for key, value in (("location", data.name), ("offset", str(start)), ("length", str(length))):
                tensor.external_data.add(key=key, value=value)
            at = start + length
    model.graph.initializer.extend(weights)
    with opener(path) as stream:
        stream.write(model.SerializeToString())
