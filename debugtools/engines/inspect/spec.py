"""The request for describing an engine or a network, as a plain value."""

from layerwise._tool.backends.specs import ModelOptions, Spec
from layerwise._tool.backends.trt.options import TrtOptions


class InspectSpec(Spec, frozen=True):
    """What to describe: `engine`, or the network of `model` (an ONNX model, or a script whose function is in options).

    show: any of "layers", "attrs", "weights". values: saved outputs shown next to an engine's tensors. nodes_of:
    the ONNX model to map an engine's layers to. json: the result's "description" instead of lines.
    picture: file for the layers as a graph in ONNX's format, instead of lines. verbose: report TensorRT's messages.
    """

    model: str | None = None
    engine: str | None = None
    options: TrtOptions = TrtOptions()
    model_options: ModelOptions = ModelOptions()
    show: list[str] = []
    values: str | None = None
    nodes_of: str | None = None
    json: bool = False
    picture: str | None = None
    verbose: bool = False
