"""Converts a structure to an onnx-graphsurgeon graph and back, for user scripts; large weights stay in their files."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs
from numpy.typing import NDArray
from onnx import TensorProto
from onnx_graphsurgeon.ir.tensor import LazyValues

from layerwise._tool.backends.errors import LayerwiseError, raise_scarce
from layerwise._tool.backends.reference.evaluate import tensor_array
from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.model.structure import Structure


class _FileValues(LazyValues):  # type: ignore[misc]
    """Values that are read from their file on access."""

    def __init__(self, tensor: TensorProto, folder: Path | None) -> None:
        super().__init__(tensor)
        self._folder = folder

    def load(self) -> NDArray[Any]:
        return np.array(tensor_array(self.tensor, self._folder))


def to_graph(structure: Structure) -> gs.Graph:
    """Return the model as a graph to read and change. LayerwiseError if graphsurgeon does not support it."""
    try:
        graph = gs.import_onnx(structure.proto())
    except Exception as error:  # it raises arbitrary exceptions
        raise_scarce(error)
        raise LayerwiseError(f"onnx-graphsurgeon cannot take the model: {shown(str(error), 300)}") from None
    for tensor in _constants(graph):
        values = tensor._values
        if isinstance(values, LazyValues) and getattr(values.tensor, "data_location", 0) == TensorProto.EXTERNAL:
            tensor._values = _FileValues(values.tensor, structure.folder)
    return graph


def from_graph(graph: gs.Graph, structure: Structure) -> Structure:
    """Return a changed graph of `to_graph(structure)` as a structure. LayerwiseError if it is no longer a model."""
    try:
        model = gs.export_onnx(graph)
    except Exception as error:  # it raises arbitrary exceptions
        raise_scarce(error)
        raise LayerwiseError(f"onnx-graphsurgeon cannot write the graph: {shown(str(error), 300)}") from None
    result = Structure.from_proto(model, structure.folder, structure.base)
    return result.with_(rest=structure.rest, metadata=structure.metadata, ir_version=structure.ir_version)


def _constants(graph: gs.Graph) -> Iterator[gs.Constant]:
    for part in (graph, *graph.subgraphs(recursive=True)):
        yield from (tensor for tensor in part.tensors().values() if isinstance(tensor, gs.Constant))
