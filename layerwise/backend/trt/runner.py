"""The TensorRT runner."""

from collections.abc import Mapping
from typing import Any

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.runner import RunnerBase
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.tensors import to_numpy
from layerwise._tool.backends.torch_bridge import is_tensor, to_array
from layerwise._tool.backends.trt.inference.engine import Engine, set_budget
from layerwise._tool.backends.trt.inference.runner import runner_of
from layerwise._tool.backends.trt.library import cudart, tensorrt
from layerwise._tool.backends.trt.logger import make_recorder
from layerwise._tool.backends.trt.options import RunOptions, TrtOptions
from layerwise.backend.base import BaseRunner, Lazy, value_of
from layerwise.backend.onnxrt import to_torch
from layerwise.backend.trt.logger import MESSAGES, get_trt_logger
from layerwise.common import TensorMetadata
from layerwise.cuda import DeviceView

_STRATEGIES = ("static", "profile", "runtime")


class TrtRunner(BaseRunner):
    """Runs an engine, with an execution context and buffers of its own; several may share one engine.

    engine: an engine or a loader of one. optimization_profile: its index. allocation_strategy: when device memory is
    taken: "static", "profile" or "runtime". weight_streaming_budget (bytes) or weight_streaming_percent: how much of
    streamed weights stays on the device. Shapes are set, and buffers grown, by what is fed; outputs are fresh arrays.
    """

    def __init__(
        self,
        engine: Lazy[Any],
        name: str | None = None,
        optimization_profile: int | None = None,
        allocation_strategy: str | None = None,
        weight_streaming_budget: int | None = None,
        weight_streaming_percent: float | None = None,
    ) -> None:
        super().__init__(name=name, prefix="trt-runner")
        self._engine = engine
        if allocation_strategy not in (None, *_STRATEGIES):
            raise UsageError(f"allocation_strategy {allocation_strategy!r}: one of {', '.join(_STRATEGIES)}")
        self.run_options = RunOptions(profile=optimization_profile or 0, strategy=allocation_strategy or "static")  # type: ignore[arg-type]
        self.budget = None if weight_streaming_budget is None else str(weight_streaming_budget)
        if weight_streaming_percent is not None:
            self.budget = f"{weight_streaming_percent}%"
        self._inner: Any = None

    def activate_impl(self) -> None:
        trt, _ = tensorrt(), cudart()
        self.engine = value_of(self._engine)
        set_budget(self.engine, self.budget)
        engine = Engine(self.engine, [], get_trt_logger(), MESSAGES, make_recorder(trt, MESSAGES))
        self._inner = runner_of(RunnerSpec(kind="trt"), engine, TrtOptions(run=self.run_options), self.name)

    @property
    def context(self) -> Any:
        """The `trt.IExecutionContext`."""
        return self._inner.execution.context

    def set_profile(self, index: int) -> None:
        """Use another optimization profile. UsageError if the engine has none of that number."""
        self._must_be_active("set_profile")
        self._inner.execution.set_profile(index)

    def get_input_metadata_impl(self) -> TensorMetadata:
        inner: RunnerBase = self._inner
        return TensorMetadata.from_infos(inner.inputs)

    def infer_impl(
        self, feed_dict: Mapping[str, Any], copy_outputs_to_host: bool = True, **options: Any
    ) -> dict[str, Any]:
        """copy_outputs_to_host: False gives DeviceViews, which the next run overwrites."""
        torch_out = any(is_tensor(value) for value in feed_dict.values())
        feed = {name: _array(value) for name, value in feed_dict.items()}
        on_host = {t.name for t in self._inner.execution.tensors if t.host}
        names = None if copy_outputs_to_host else [name for name in self._inner.outputs if name in on_host]
        result = self._inner.infer(feed, names)
        self.inference_time = result.runtime
        if not copy_outputs_to_host:
            there = self._inner.execution.on_device()
            return dict(result.outputs) | {n: DeviceView(at, shape, to_numpy(t)) for n, (at, t, shape) in there.items()}
        outputs = dict(result.outputs)
        return to_torch(outputs) if torch_out else outputs

    def deactivate_impl(self) -> None:
        self._inner.close()
        self._inner = None
        del self.engine


def _array(value: Any) -> Any:
    if isinstance(value, DeviceView):
        return value.numpy()
    return to_array(value) if is_tensor(value) else value
