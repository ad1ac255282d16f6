"""The request for a capability query, as a plain value."""

from layerwise._tool.backends.specs import ModelOptions, Spec
from layerwise._tool.backends.trt.options import NetworkOptions


class CapabilitySpec(Spec, frozen=True):
    """The model to query. folder: destination of results and parts. deep: query unsupported parts again, alone.
    external: weights of parts go to separate files. verbose: report TensorRT's own messages too.
    """

    model: str
    folder: str
    options: NetworkOptions = NetworkOptions()
    model_options: ModelOptions = ModelOptions()
    deep: bool = False
    external: bool = False
    verbose: bool = False
