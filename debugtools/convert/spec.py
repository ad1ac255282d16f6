"""The request for a conversion, as a plain value."""

from typing import Literal

from layerwise._tool.backends.onnxrt.quantize_spec import QuantizeSpec
from layerwise._tool.backends.specs import ModelOptions, Spec
from layerwise._tool.debugtools.compare.spec import MarkSpec


class ConvertSpec(Spec, frozen=True):
    """A conversion of an ONNX model; the steps run in the order opset, weights, marks, low, int8.

    weights: `FILE.npz` or `NAME=FILE.npy`, whose arrays replace the model's weights. marks: tensors that become
    outputs, as debug outputs or (`only`) instead of the model's own. low: the type that nodes are converted to; keep,
    keep_types: nodes (names or globs, operators) excluded from this and int8. output: the file written: a model, or its
    weights as .npy or .npz (`only_weights`: names or globs, all if empty). overwrite: replace an existing file.
    """

    model: str
    output: str
    model_options: ModelOptions = ModelOptions()
    opset: int | None = None
    weights: list[str] = []
    marks: MarkSpec = MarkSpec()
    low: Literal["float16", "bfloat16"] | None = None
    int8: QuantizeSpec | None = None
    keep: list[str] = []
    keep_types: list[str] = []
    only_weights: list[str] = []
    overwrite: bool = False
