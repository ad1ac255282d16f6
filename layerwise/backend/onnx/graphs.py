"""Graphs of onnx-graphsurgeon: made of models, cut, and given upper bounds."""

import copy as copying
from collections.abc import Callable, Mapping
from typing import Any

from layerwise._tool.backends.text import shown
from layerwise.backend.base import BaseLoader, immediate, value_of
from layerwise.backend.onnx import util
from layerwise.common import TensorMetadata
from layerwise.datatype import DataType
from layerwise.logger import G_LOGGER
from layerwise.mod.importer import lazy_import
from layerwise.util import check_sequence_contains, value_or_from_dict

gs = lazy_import("onnx_graphsurgeon>=0.3.27")


class BaseLoadOnnxCopy(BaseLoader[Any]):
    """A loader that takes a model, or a loader of one. copy: what it does is done to a copy."""

    def __init__(self, model: Any, copy: bool | None = None) -> None:
        self.model = model
        self.copy = bool(copy)

    def load(self) -> Any:
        """The model, or a copy of it."""
        model = value_of(self.model)
        return copying.deepcopy(model) if self.copy else model


class GsFromOnnx(BaseLoader[Any]):
    """The onnx_graphsurgeon.Graph of a model."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def call_impl(self) -> Any:
        return gs.import_onnx(value_of(self.model))


gs_from_onnx = immediate(GsFromOnnx)


def _changed(model: Any, change: Callable[[Any], None]) -> Any:
    """A model after a change to its graph; of a graph, a changed copy."""
    if isinstance(model, gs.Graph):
        graph = model.copy()
        change(graph)
        return graph
    graph = gs.import_onnx(model)
    change(graph)
    # a graph of onnx-graphsurgeon before 0.6 has no IR version: it would be onnx's newest, which engines may not take
    return gs.export_onnx(graph, do_type_check=False, ir_version=model.ir_version)


class ExtractSubgraph(BaseLoader[Any]):
    """What computes some tensors from others; takes and returns a model or a graph.

    input_metadata, output_metadata: its inputs and outputs; None: the model's own. Types and shapes that they lack are
    the graph's. check_meta: a warning if neither has them. PolygraphyException for a tensor that there is not.
    """

    def __init__(
        self,
        model: Any,
        input_metadata: TensorMetadata | None = None,
        output_metadata: TensorMetadata | None = None,
        check_meta: bool | None = None,
    ) -> None:
        self.model = model
        self.input_metadata = input_metadata
        self.output_metadata = output_metadata
        self.check_meta = check_meta is not False

    def call_impl(self) -> Any:
        return _changed(value_of(self.model), self._cut)

    def _cut(self, graph: Any) -> None:
        tensors = graph.tensors()
        if self.input_metadata is not None:
            graph.inputs = self._ends(tensors, self.input_metadata, "Input")
            for tensor in graph.inputs:
                tensor.inputs.clear()
        if self.output_metadata is not None:
            graph.outputs = self._ends(tensors, self.output_metadata, "Output")
        graph.cleanup()
        for tensor in graph.tensors().values():
            if isinstance(tensor, gs.Variable) and not tensor.inputs and tensor not in graph.inputs:
                readers = [f"{node.name} ({node.op})" for node in tensor.outputs]
                G_LOGGER.error(
                    f"Tensor: '{shown(tensor.name, 120)}' is read by {shown(str(readers), 300)}, but nothing makes it "
                    "and it is no input: the resulting model will not be valid. Is an input missing?"
                )

    def _ends(self, tensors: Mapping[str, Any], metadata: TensorMetadata, kind: str) -> list[Any]:
        found = []
        for name, (dtype, shape) in metadata.items():
            if name not in tensors:
                G_LOGGER.critical(f"Tensor: {shown(name, 120)} does not exist in the model.")
            tensor = tensors[name]
            if isinstance(tensor, gs.Variable):
                tensor.dtype = tensor.dtype if dtype is None else DataType.to_dtype(DataType.from_dtype(dtype), "onnx")
                tensor.shape = shape or tensor.shape
            self._check(tensor, kind)
            found.append(tensor)
        return found

    def _check(self, tensor: Any, kind: str) -> None:
        lacks = ["shape"] if kind == "Input" and tensor.shape is None else []
        lacks += ["data type"] if tensor.dtype is None else []
        name = shown(tensor.name, 120)
        for what in lacks if self.check_meta else ():
            G_LOGGER.warning(f"{kind} metadata should include {what}, but no {what} was provided for tensor: {name}")


extract_subgraph = immediate(ExtractSubgraph)


class SetUpperBound(BaseLoadOnnxCopy):
    """Limits tensors that decide on the size of others, by a Min.

    upper_bounds: a limit for all that have none, or tensor -> its limit ("" for all others). PolygraphyException for a
    tensor that there is not.
    """

    def __init__(self, model: Any, upper_bounds: int | Mapping[str, int], copy: bool | None = None) -> None:
        super().__init__(model, copy)
        self.upper_bounds = upper_bounds

    def call_impl(self) -> Any:
        return _changed(self.load(), self._limit)

    def _limit(self, graph: Any) -> None:
        tensors = graph.tensors()
        targets = {tensor.name for tensor in util.get_unbounded_dds_tensors(graph)}
        if isinstance(self.upper_bounds, dict):
            named, place = set(self.upper_bounds) - {""}, "the upper bounds dictionary"
            check_sequence_contains(tensors, named, place, "tensors", check_extra=False)
            check_sequence_contains(targets, named, place, "tensors", log_func=G_LOGGER.warning, check_extra=False)
            targets |= named
        limits = {name: value_or_from_dict(self.upper_bounds, name) for name in sorted(targets)}
        limits = {name: limit for name, limit in limits.items() if limit is not None}
        for name, limit in limits.items():
            graph.nodes.append(_limited(tensors[name], limit))
        G_LOGGER.info(f"Set tensor upper bounds: {limits}")
        graph.cleanup()


def _limited(tensor: Any, limit: int) -> Any:
    """The Min that makes the tensor from what made it before."""
    import numpy as np

    if len(tensor.inputs) != 1:
        G_LOGGER.critical(f"Tensor: {shown(tensor.name, 120)} is made by no node, so it cannot get an upper bound")
    (producer,) = tensor.inputs
    place = next(index for index, made in enumerate(producer.outputs) if made is tensor)
    values = np.array([limit] * len(tensor.shape) if tensor.shape else limit)
    dtype = tensor.dtype if isinstance(tensor.dtype, np.dtype | type) else values.dtype
    bound = gs.Constant(f"{tensor.name}_upper_bound", values=values.astype(dtype))
    before = gs.Variable(f"{tensor.name}_copy", dtype=tensor.dtype, shape=tensor.shape)
    producer.outputs[place] = before
    tensor.inputs.clear()
    return gs.Node(op="Min", inputs=[before, bound], outputs=[tensor])


set_upper_bound = immediate(SetUpperBound)
