"""Comparing on the GPU what was made there: which sides of a comparison can, and how."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.cuda.bound import BoundSession, device_of
from layerwise._tool.backends.cuda.library import free_memory, use_device
from layerwise._tool.backends.cuda.metrics import DeviceMetrics
from layerwise._tool.backends.cuda.tensors import fetch
from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.runner import Loadable
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.trt.inference.memory import Stream
from layerwise._tool.debugtools.compare.arithmetic.comparison import Comparison
from layerwise._tool.debugtools.compare.arithmetic.device import (
    METRICS,
    comparable,
    compare_tensors,
    measured,
)
from layerwise._tool.debugtools.compare.arithmetic.metrics import compare_arrays
from layerwise._tool.debugtools.compare.arithmetic.tolerance import Rule
from layerwise._tool.debugtools.compare.arithmetic.totals import Totals
from layerwise._tool.debugtools.compare.sides.side import ModelSide, Side
from layerwise._tool.debugtools.compare.sides.stream import SegmentSession, on_host
from layerwise._tool.debugtools.compare.spec import CompareSpec, MetricName

_STAY, _COPIED = (
    "layers stay on the GPU and are compared there",
    "layers are copied from the GPU and compared on the host",
)


class OnDevice:
    """Opens sessions whose tensors stay on the GPU, for `sides`, and measures pairs of them there; on the host, if its
    kernels cannot be compiled. tell: is told which of the two, once that is known.

    LayerwiseError (MissingDependency where something is not installed) if the GPU cannot be used.
    """

    def __init__(self, sides: frozenset[int], metrics: DeviceMetrics, tell: Callable[[str], None]) -> None:
        self.sides, self._metrics, self._tell = sides, metrics, tell
        self._known: list[tuple[Any, Any, Totals]] = []

    @cached_property
    def _measures(self) -> bool:
        """Whether the device can measure; waits for the compiler."""
        try:
            self._metrics.ready()
        except LayerwiseError as error:
            self._tell(f"{_COPIED}: {error}")
            return False
        self._tell(_STAY)
        return True

    def session(self, spec: RunnerSpec, model: Loadable, name: str) -> SegmentSession:
        """Open a session whose outputs stay; one whose outputs come to the host where they cannot."""
        try:
            return BoundSession(spec, model, name)
        except UsageError:
            return on_host(spec, model, name)

    def close(self) -> None:
        """Give the device's memory back, but for what sessions hold."""
        self._metrics.close()
        self._metrics.stream.close()

    def free(self) -> int:
        """Bytes of the GPU's memory that nothing holds."""
        return free_memory()

    def holds(self, *tensors: object) -> bool:
        """Whether any of them is not on the host."""
        return not all(isinstance(tensor, np.ndarray) for tensor in tensors)

    def _there(self, *tensors: object) -> bool:
        return not any(isinstance(tensor, np.ndarray) for tensor in tensors) and self._measures

    def array(self, tensor: Any) -> Array:
        """What `session` gave, on the host."""
        return tensor if isinstance(tensor, np.ndarray) else fetch(self._metrics.stream, tensor)

    def look(self, coming: Sequence[tuple[Any, Any, Rule]], metrics: Sequence[MetricName]) -> None:
        """Measure pairs that are to be compared next in one go: to start each by itself takes longer than its sums."""
        there = [(a, b, rule) for a, b, rule in coming if self._there(a, b) and comparable(a, b, rule, metrics)]
        sums = measured(self._metrics, there)
        self._known = [(a, b, totals) for (a, b, _), totals in zip(there, sums, strict=True)]

    def compare(
        self, a: Any, b: Any, rule: Rule, metrics: Sequence[MetricName], depth: int, types: Sequence[str]
    ) -> Comparison:
        """Compare two tensors where they are; on the host, if one is there or the sums do not decide."""
        if self._there(a, b) and comparable(a, b, rule, metrics):
            known = [totals for first, second, totals in self._known if first is a and second is b]
            return compare_tensors(self._metrics, [(a, b, rule)], metrics, depth, types, known)[0]
        return compare_arrays(self.array(a), self.array(b), rule, metrics=metrics, depth=depth, types=types)


def on_device(
    spec: CompareSpec, sides: Sequence[Side], pairs: Sequence[tuple[int, int]], tell: Callable[[str], None]
) -> OnDevice | None:
    """How to compare on the GPU, if two sides of a pair run there; None if none do, or, told why, if it cannot be."""
    gpus = [_gpu(side) for side in sides]
    together = [pair for pair in pairs if gpus[pair[0]] is not None and gpus[pair[0]] == gpus[pair[1]]]
    number = next((gpus[first] for first, _ in together), None)
    if number is None:
        return None
    why = _needs_arrays(spec)
    if not why:
        try:
            use_device(number)
            there = frozenset(i for pair in together for i in pair if gpus[i] == number)
            return OnDevice(there, DeviceMetrics(Stream(), number), tell)
        except LayerwiseError as error:
            why = str(error)
    tell(f"{_COPIED}: {why}")
    return None


def _gpu(side: Side) -> int | None:
    """The number of the GPU that a side's tensors are made on; None if they are not."""
    if not isinstance(side, ModelSide) or side.spec.kind != "onnxrt" or not side.spec.providers:
        return None
    from layerwise._tool.backends.onnxrt.session import CUDA, provider_names

    return device_of(side.spec) if provider_names(side.spec.providers)[0] == CUDA else None


def _needs_arrays(spec: CompareSpec) -> str:
    """Why a comparison needs the values themselves; empty if it does not."""
    reasons = {
        "outputs are saved": spec.save_outputs,
        "values are validated": spec.validate,
        "accuracy is saved with its medians": spec.save_accuracy,
        "quantiles are asked for": spec.statistics,
        "errors are drawn": spec.save_heatmaps or spec.save_error_plots,
        "a script compares": spec.compare_script,
        "values are processed first": spec.postprocess or spec.postprocess_script,
        "shapes are matched": not spec.shape_check,
        f"{', '.join(spec.metrics)} needs the values": not METRICS.issuperset(spec.metrics),
    }
    return next((reason for reason, holds in reasons.items() if holds), "")
