"""How to quantise a model, as a value: light on purpose, the command line builds it."""

from typing import Literal

from layerwise._tool.backends.specs import FeedSpec, Spec

Method = Literal["minmax", "entropy", "percentile", "distribution"]
CALIBRATORS: dict[str, Method] = {
    "IInt8MinMaxCalibrator": "minmax",
    "IInt8EntropyCalibrator": "entropy",
    "IInt8EntropyCalibrator2": "entropy",
    "IInt8LegacyCalibrator": "percentile",
}
"""TensorRT 10's calibrators, and how onnxruntime measures ranges likewise."""


class QuantizeSpec(Spec, frozen=True):
    """How to quantise.

    method: how ranges come from the calibration data; percentile: of the values that fit the range, in percent.
    per_channel: a scale for each output channel of a weight. asymmetric: activations are uint8 with a zero point,
    instead of int8 around zero, as TensorRT wants it.
    cache: file of ranges, read where it exists and written where it does not. op_types: quantise these alone.
    """

    feeds: FeedSpec = FeedSpec()
    method: Method = "minmax"
    percentile: float | None = None
    per_channel: bool = True
    asymmetric: bool = False
    op_types: list[str] = []
    cache: str | None = None
