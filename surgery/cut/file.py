"""Writes a cut as a separate model: only the weights that it needs, all types and shapes filled in."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, BinaryIO

import onnx
import onnx.numpy_helper
from numpy.typing import NDArray

from layerwise._tool.backends.filesystem.files import atomic_writer
from layerwise._tool.backends.filesystem.folders import written_together
from layerwise._tool.backends.model.protos import all_tensors, set_shape
from layerwise._tool.backends.tensors import dtype_name, to_onnx
from layerwise._tool.surgery.cut.segments import GraphCut, Segment
from layerwise._tool.surgery.saving.streamed import embed, nbytes, write_apart, write_streamed

EMBED_LIMIT = 1 << 30
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
    """Write `part` of `graph` to `path`; weights above 1 GB go to `<name>.data` next to it.

    tensors: the reference's, for types and shapes of inputs and outputs; its feeds must be among them.
    frozen: feeds that become weights. folder: location of the graph's external weights. OSError from the disk.
    """
    types = {name: to_onnx(dtype_name(tensors[name])) for name in part.feeds}
    model = onnx.ModelProto.FromString(graph.build(part, types))
    _freeze(model.graph, {name: tensors[name] for name in frozen})
    _describe(model.graph, tensors)
    weights = _taken_out(model.graph)
    for tensor in all_tensors(model):
        if tensor.data_location == tensor.EXTERNAL:
            embed(tensor, folder)
    if sum(nbytes(tensor) for tensor in weights) > EMBED_LIMIT:
        _write_beside(path, model, weights, folder, opener)
        return
    with opener(path) as stream:
        write_streamed(stream, model, weights, folder)


def _freeze(graph: onnx.GraphProto, tensors: Mapping[str, NDArray[Any]]) -> None:
    kept = [value for value in graph.input if value.name not in tensors]
    del graph.input[:]
    graph.input.extend(kept)
    graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in tensors.items())


def _describe(graph: onnx.GraphProto, tensors: Mapping[str, NDArray[Any]]) -> None:
    """Fill in types and shapes: of inputs and outputs, and of all known tensors, as value_info."""
    ends = {value.name for value in (*graph.input, *graph.output)}
    inner = [name for node in graph.node for name in node.output if name in tensors and name not in ends]
    for value in (*graph.input, *graph.output, *(graph.value_info.add(name=name) for name in inner)):
        if value.name in tensors:
            array = tensors[value.name]
            value.type.tensor_type.elem_type = to_onnx(dtype_name(array))
            set_shape(value, array.shape)


def _taken_out(graph: onnx.GraphProto) -> list[onnx.TensorProto]:
    """Remove the graph's own external weights from it."""
    kept: list[onnx.TensorProto] = []
    taken: list[onnx.TensorProto] = []
    for tensor in graph.initializer:
        copy = onnx.TensorProto()
        copy.CopyFrom(tensor)
        (taken if copy.data_location == copy.EXTERNAL else kept).append(copy)
    del graph.initializer[:]
    graph.initializer.extend(kept)
    return taken


def _write_beside(
    path: Path, model: onnx.ModelProto, weights: Sequence[onnx.TensorProto], folder: Path, opener: Opener
) -> None:
    data = f"{path.name}.data"
    with written_together(path) as new:
        with opener(new / data) as stream:
            model.graph.initializer.extend(write_apart(stream, data, weights, folder))
        with opener(new / path.name) as stream:
            stream.write(model.SerializeToString())
