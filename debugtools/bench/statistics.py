"""Latency statistics as trtexec computes them (TensorRT's samples/common/sampleReporting.cpp)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from layerwise._tool.debugtools.bench.rows import Statistics

Floats = NDArray[np.float64]


def percentile(ordered: Floats, percent: float) -> float:
    """Return the value of sorted `ordered` that `percent` of all do not exceed: an element, never interpolated. Uses
    single precision like trtexec, which matters at whole numbers.
    """
    excluded = int((np.float32(1) - np.float32(percent) / np.float32(100)) * np.float32(len(ordered)))
    return float(ordered[max(len(ordered) - 1 - excluded, 0)])


def statistics(values: Sequence[float] | Floats, percents: Sequence[float]) -> Statistics:
    """The statistics of `values`, of which there must be one at least, in their unit."""
    ordered = np.sort(np.asarray(values, np.float64))
    mean = float(ordered.mean())
    shares = {f"{percent:g}": percentile(ordered, percent) for percent in percents}
    cov = float(ordered.std() / mean * 100) if mean else 0.0
    return Statistics(float(ordered[0]), float(ordered[-1]), mean, float(np.median(ordered)), shares, cov)
