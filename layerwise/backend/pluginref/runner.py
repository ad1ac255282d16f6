"""CPU references of common TensorRT plugins as a runner."""

import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from layerwise.backend.base import Lazy, value_of
from layerwise.backend.floor import FloorRunner
from layerwise.backend.pluginref.references import OP_REGISTRY
from layerwise.common import TensorMetadata

__all__ = ["PluginRefRunner"]


class PluginRefRunner(FloorRunner):
    """Runs a model, or a graph of onnx-graphsurgeon, that is made of ONNX's operators and known TensorRT plugins.

    A graph whose operators are all in `references.OP_REGISTRY` is run by the functions there, a script's own included.
    """

    kind = "pluginref"

    def __init__(self, graph: Lazy[Any], name: str | None = None) -> None:
        super().__init__(graph, name)
        self._graph: Any = None

    def activate_impl(self) -> None:
        model = value_of(self._model)
        if hasattr(model, "nodes") and all(node.op in OP_REGISTRY for node in model.nodes):
            self._graph = model
        else:
            self._open(model)

    def get_input_metadata_impl(self) -> TensorMetadata:
        if self._graph is None:
            return super().get_input_metadata_impl()
        metadata = TensorMetadata()
        for tensor in self._graph.inputs:
            metadata.add(tensor.name, tensor.dtype, tensor.shape)
        return metadata

    def infer_impl(self, feed_dict: Mapping[str, Any]) -> dict[str, Any]:
        if self._graph is None:
            return super().infer_impl(feed_dict)
        start = time.perf_counter()
        tensors = dict(feed_dict)
        for node in self._graph.nodes:
            tensors.update(OP_REGISTRY[node.op](node, tensors))
        self.inference_time = time.perf_counter() - start
        return OrderedDict((tensor.name, tensors[tensor.name]) for tensor in self._graph.outputs)

    def deactivate_impl(self) -> None:
        if self._graph is None:
            super().deactivate_impl()
        self._graph = None
