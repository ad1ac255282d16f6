"""What TensorRT's parser is asked for."""

from layerwise._tool.backends.specs import ModelOptions, Spec
from layerwise._tool.backends.trt.options import NetworkOptions


class CapabilitySpec(Spec, frozen=True):
    """A model to be asked about. folder: where results and parts go. deep: parts that are not taken are asked for
    again, alone. external: weights of parts go to files beside them. verbose: TensorRT's own messages are told too.
    """

    model: str
    folder: str
    options: NetworkOptions = NetworkOptions()
    model_options: ModelOptions = ModelOptions()
    deep: bool = False
    external: bool = False
    verbose: bool = False
