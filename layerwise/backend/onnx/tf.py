"""TensorFlow's graphs, which tf2onnx converts."""

from typing import Any

from layerwise.backend.base import BaseLoader, immediate
from layerwise.backend.tf.util import refuse


class OnnxFromTfGraph(BaseLoader[Any]):
    """Cannot be called: MissingDependency says how tf2onnx converts a model of TensorFlow."""

    def __init__(self, graph: Any, opset: int | None = None, optimize: bool | None = None) -> None:
        self.graph = graph
        self.opset = 11 if opset is None else opset
        self.optimize = optimize is not False

    def call_impl(self) -> Any:
        refuse("OnnxFromTfGraph")


onnx_from_tf_graph = immediate(OnnxFromTfGraph)
