"""Operators in place of ONNX's own where these fail."""

from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

from layerwise._tool.backends.arrays import Array


class GatherElements(OpRun):
    """ONNX's own fails where it takes one element of each row."""

    op_domain = ""

    def _run(self, data: Array, indices: Array, axis: Any = 0) -> tuple[Array]:
        places = np.where(indices < 0, indices + data.shape[axis or 0], indices)
        before = [slice(0, size) for size in indices.shape]
        before[axis or 0] = slice(None)
        return (np.take_along_axis(data[tuple(before)], places, axis or 0),)


MENDED_OPS: tuple[type, ...] = (GatherElements,)
