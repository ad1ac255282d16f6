"""A network converted to fewer bits, as `layerwise convert` does it."""

from typing import Literal

import onnx

from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.precision.conversion import to_low_precision


def low_model(model: onnx.ModelProto, low: Literal["float16", "bfloat16"]) -> onnx.ModelProto:
    """A copy whose nodes compute in `low` where they can."""
    return to_low_precision(Structure.from_proto(model), low).structure.proto()
