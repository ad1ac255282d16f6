"""Running models by onnxruntime itself, and what is known of their tensors: nothing here is the product's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray

Array = NDArray[Any]
ATOL = RTOL = 1e-5  # the default pass rule: an element passes by either
UNIT = 2.0**-24  # FP32's unit roundoff
ALL = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
OFF = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL


NO_SETTINGS: Mapping[str, str] = {}


def session(
    model: onnx.ModelProto | Path | bytes, level: Any = ALL, settings: Mapping[str, str] = NO_SETTINGS
) -> onnxruntime.InferenceSession:
    """Open a session on the CPU."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    options.log_severity_level = 4
    for key, value in settings.items():
        options.add_session_config_entry(key, value)
    source = model.SerializeToString() if isinstance(model, onnx.ModelProto) else model
    source = str(source) if isinstance(source, Path) else source
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def run(
    model: onnx.ModelProto | Path | bytes,
    feed: Mapping[str, Array],
    level: Any = ALL,
    settings: Mapping[str, str] = NO_SETTINGS,
) -> dict[str, Array]:
    """The model's outputs. Raises whatever onnxruntime does of a model that it does not take."""
    opened = session(model, level, settings)
    names = [output.name for output in opened.get_outputs()]
    return dict(zip(names, opened.run(names, dict(feed)), strict=True))


def marked(model: onnx.ModelProto, names: Sequence[str]) -> onnx.ModelProto:
    """The model with these outputs in place of its own."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.graph.output[:]
    copy.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    return copy


def all_tensors(model: onnx.ModelProto, feed: Mapping[str, Array], level: Any = OFF) -> dict[str, Array]:
    """Every tensor that the nodes make, and the feed."""
    names = [name for node in model.graph.node for name in node.output if name]
    return {**feed, **run(marked(model, names), feed, level)}


@dataclass(frozen=True, slots=True)
class Fact:
    """What plants need to know of a tensor: shape, dtype, range of its finite values, whether some are zero."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    low: float
    high: float
    zeros: bool

    @property
    def peak(self) -> float:
        return max(abs(self.low), abs(self.high))

    @property
    def floating(self) -> bool:
        return self.dtype == np.float32 and self.peak > 0


def facts(tensors: Mapping[str, Array]) -> dict[str, Fact]:
    """The facts of each tensor."""
    return {name: _fact(array) for name, array in tensors.items() if isinstance(array, np.ndarray)}


def _fact(array: Array) -> Fact:
    if array.dtype.kind not in "fiu" or not array.size:
        return Fact(array.shape, array.dtype, 0.0, 0.0, zeros=False)
    return Fact(array.shape, array.dtype, float(array.min()), float(array.max()), bool((array == 0).any()))


def passes(mine: Array, reference: Array, atol: float = ATOL) -> bool:
    """The default pass rule, in float64: each element is near the reference, absolutely or relatively."""
    if mine.shape != reference.shape:
        return False
    if mine.dtype.kind != "f":
        return bool(np.array_equal(mine, reference))
    a, b = mine.astype(np.float64), reference.astype(np.float64)
    with np.errstate(all="ignore"):
        difference = np.abs(a - b)
        near = (difference <= atol) | (difference <= RTOL * np.abs(b)) | (a == b) | (np.isnan(a) & np.isnan(b))
    return bool(near.all())


def scale(reference: Array) -> float:
    """The root mean square of the finite values."""
    values = reference[np.isfinite(reference)].astype(np.float64)
    return float(np.sqrt(np.mean(values**2))) if values.size else 0.0


def moved(mine: Array, reference: Array) -> float:
    """Largest absolute difference; infinite where only one of the two is finite."""
    if mine.shape != reference.shape:
        return np.inf
    with np.errstate(all="ignore"):
        difference = np.abs(mine.astype(np.float64) - reference.astype(np.float64))
    difference = np.where(np.isfinite(mine) == np.isfinite(reference), difference, np.inf)
    return float(np.nan_to_num(difference, nan=0.0, posinf=np.inf).max(initial=0.0))
