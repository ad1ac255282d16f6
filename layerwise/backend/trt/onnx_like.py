"""A network as a graph in ONNX's format: to look at, not to run."""

from typing import TYPE_CHECKING, Any

from layerwise._tool.backends.trt.library import tensorrt
from layerwise.backend.base import BaseLoader, Lazy, immediate, value_of

if TYPE_CHECKING:
    import onnx


class OnnxLikeFromNetwork(BaseLoader["onnx.ModelProto"]):
    """The layers of a network as nodes of the domain "trt", with what TensorRT says of them as attributes.

    network: builder, network and perhaps parser. What comes of it is no valid ONNX model.
    """

    def __init__(self, network: Lazy[tuple[Any, ...]]) -> None:
        self.network = network

    def call_impl(self) -> "onnx.ModelProto":
        from layerwise._tool.backends.trt.inspect.network import network_view
        from layerwise._tool.debugtools.engines.inspect.text import network_picture

        made = value_of(self.network)
        return network_picture(network_view(tensorrt(), made[1]))


onnx_like_from_network = immediate(OnnxLikeFromNetwork)
