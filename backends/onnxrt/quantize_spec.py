"""How to quantise a model, as a value. Imports little, since the command line builds it."""

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

    method: how ranges are derived from the calibration data; percentile: percentage of values within the range.
    per_channel: a scale per output channel of a weight. asymmetric: activations are uint8 with a zero point,
    instead of int8 symmetric around zero, as TensorRT requires.
    cache: file of ranges, read if it exists, otherwise written. op_types: quantise only these.
    """

    feeds: FeedSpec = FeedSpec()
    method: Method = "minmax"
    percentile: float | None = None
    per_channel: bool = True
    asymmetric: bool = False
    op_types: list[str] = []
    cache: str | None = None
