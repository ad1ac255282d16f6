"""A network converted to fewer bits, as `layerwise convert` does it."""

from typing import Literal

import numpy as np
import onnx
from support.faults import running
from support.faults.zoo.build import Sample

from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.precision.conversion import to_low_precision

_LARGEST, _MASK = 65504.0, 9e8


def low_model(model: onnx.ModelProto, low: Literal["float16", "bfloat16"]) -> onnx.ModelProto:
    """A copy whose nodes compute in `low` where they can."""
    return to_low_precision(Structure.from_proto(model), low).structure.proto()


def overflows(sample: Sample) -> str:
    """A tensor with numbers that FP16 cannot hold, masks aside: then its conversion is no clean one; "" if none has."""
    for name, array in running.all_tensors(sample.model, sample.feed).items():
        size = np.abs(array[np.isfinite(array)]) if array.dtype.kind == "f" else np.empty(0)
        if ((size > _LARGEST) & (size < _MASK)).any():
            return name
    return ""
