"""The TensorRT runner."""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.tensors import to_numpy
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.torch_bridge import is_tensor, to_array
from layerwise._tool.backends.trt.inference.engine import Engine, set_budget
from layerwise._tool.backends.trt.inference.execution import Execution
from layerwise._tool.backends.trt.inference.runner import TrtRunner as Inner
from layerwise._tool.backends.trt.library import cudart, tensorrt
from layerwise._tool.backends.trt.logger import make_recorder
from layerwise._tool.backends.trt.options import RunOptions
from layerwise.backend.base import BaseRunner, Lazy, value_of
from layerwise.backend.onnxrt.runner import to_torch
from layerwise.backend.trt.debug_listener import DebugTensors, debug_listener
from layerwise.backend.trt.formats import (
    get_chw_shape_from_hwc,
    get_hwc_shape_from_chw,
    get_metadata_from_engine,
    get_tensor_format,
)
from layerwise.backend.trt.logger import MESSAGES, get_trt_logger
from layerwise.common import FormattedArray, TensorMetadata
from layerwise.cuda import DeviceView
from layerwise.datatype import DataType

__all__ = ["TrtRunner"]

_STRATEGIES = ("static", "profile", "runtime")


class TrtRunner(BaseRunner):
    """Runs an engine with buffers of its own; several may share one engine.

    engine: an engine, for which an execution context is made, or a context, or a loader of either.
    optimization_profile: its index. allocation_strategy: when device memory is taken: "static", "profile" or "runtime".
    weight_streaming_budget (bytes; -1: TensorRT decides, -2: all) or weight_streaming_percent: how much of streamed
    weights stays on the device. debug_listener: a trt.IDebugListener; by default tensors that are marked for debugging
    are among the outputs. Shapes are set, and buffers grown, by what is fed; outputs are fresh arrays.
    """

    def __init__(
        self,
        engine: Lazy[Any],
        name: str | None = None,
        optimization_profile: int | None = None,
        allocation_strategy: str | None = None,
        weight_streaming_budget: int | None = None,
        weight_streaming_percent: float | None = None,
        debug_listener: Any = None,
    ) -> None:
        super().__init__(name=name, prefix="trt-runner")
        if allocation_strategy not in (None, *_STRATEGIES):
            raise UsageError(f"allocation_strategy {allocation_strategy!r}: one of {', '.join(_STRATEGIES)}")
        self._engine = engine
        self.optimization_profile = optimization_profile
        self.allocation_strategy = allocation_strategy
        self.weight_streaming_budget = weight_streaming_budget
        self.weight_streaming_percent = weight_streaming_percent
        self.debug_listener = debug_listener
        self._inner: Inner | None = None

    def activate_impl(self) -> None:
        trt, _ = tensorrt(), cudart()
        given = value_of(self._engine)
        context = given if isinstance(given, trt.IExecutionContext) else None
        if context is None and not isinstance(given, trt.ICudaEngine):
            raise UsageError(f"a trt.ICudaEngine or a trt.IExecutionContext is needed, not {type(given).__name__}: was "
                             "the engine built?")  # fmt: skip
        self.engine = given if context is None else context.engine
        if context is None:
            set_budget(self.engine, self._budget())
        profile = self.optimization_profile
        if profile is None:
            profile = 0 if context is None else max(context.active_optimization_profile, 0)
        run = RunOptions(profile=profile, strategy=self.allocation_strategy or "static")  # type: ignore[arg-type]
        engine = Engine(self.engine, [], get_trt_logger(), MESSAGES, make_recorder(trt, MESSAGES))
        self._inner = Inner(RunnerSpec(kind="trt"), Execution(trt, engine, run, context), self.name)
        self._active_debug_listener: Any = None
        if hasattr(self.context, "set_all_tensors_debug_state"):
            self.context.set_all_tensors_debug_state(True)
            self.set_debug_listener(debug_listener() if self.debug_listener is None else self.debug_listener)

    def _budget(self) -> str | None:
        if self.weight_streaming_budget is not None:
            words = {-1: "auto", -2: "100%"}
            return words.get(self.weight_streaming_budget, str(self.weight_streaming_budget))
        return None if self.weight_streaming_percent is None else f"{self.weight_streaming_percent}%"

    @property
    def context(self) -> Any:
        """The `trt.IExecutionContext`. UsageError unless the runner is active."""
        return self._opened("context").execution.context

    def set_profile(self, index: int) -> None:
        """Use another optimization profile. UsageError if the engine has none of that number."""
        self._opened("set_profile()").execution.set_profile(index)

    def set_debug_listener(self, listener: Any) -> None:
        """Have a trt.IDebugListener told of tensors that are marked for debugging."""
        context = self._opened("set_debug_listener()").execution.context
        self._active_debug_listener = listener
        if not context.set_debug_listener(listener):
            raise LayerwiseError("Failed to set debug listener")

    def get_input_metadata_impl(self) -> TensorMetadata:
        return get_metadata_from_engine(self.engine, self.context, tensorrt().TensorIOMode.INPUT)

    def infer_impl(
        self,
        feed_dict: Mapping[str, Any],
        copy_outputs_to_host: bool | None = None,
        return_raw_buffers: bool | None = None,
    ) -> dict[str, Any]:
        """copy_outputs_to_host: False gives DeviceViews, which the next run overwrites. return_raw_buffers: outputs are
        FormattedArrays of bytes.
        """
        inner, on_host = self._opened("infer()"), copy_outputs_to_host is not False
        torch_out = any(is_tensor(getattr(value, "array", value)) for value in feed_dict.values())
        if isinstance(self._active_debug_listener, DebugTensors):
            self._active_debug_listener.polygraphy_debug_tensor_outputs.clear()
        feed = {name: self._array(name, value) for name, value in feed_dict.items()}
        in_host_memory = {t.name for t in inner.execution.tensors if t.host}
        names = None if on_host else [name for name in inner.outputs if name in in_host_memory]
        result = inner.infer(feed, names)
        self.inference_time = result.runtime
        outputs: dict[str, Any] = dict(result.outputs)
        if not on_host:
            there = inner.execution.on_device()
            outputs |= {name: DeviceView(at, shape, to_numpy(kind)) for name, (at, kind, shape) in there.items()}
        outputs = OrderedDict((name, self._shaped(name, outputs[name])) for name in inner.outputs)
        if isinstance(self._active_debug_listener, DebugTensors):
            outputs |= self._active_debug_listener.polygraphy_debug_tensor_outputs
        if return_raw_buffers:
            return OrderedDict((name, _raw(value)) for name, value in outputs.items())
        return to_torch(outputs) if torch_out and on_host else outputs

    def deactivate_impl(self) -> None:
        self._opened("deactivate()").close()
        self._inner = None
        del self.engine, self._active_debug_listener

    def _opened(self, what: str) -> Inner:
        if self._inner is None:
            raise UsageError(f"{self.name:35} | Must be activated prior to calling {what}")
        return self._inner

    def _last(self, name: str) -> bool:
        """Whether the engine has a tensor's channels last."""
        return bool(get_tensor_format(self.engine, self.context, name) == tensorrt().TensorFormat.HWC)

    def _array(self, name: str, value: Any) -> Any:
        """An input in host memory, in the shape that the engine calls it by."""
        shape = value.shape if isinstance(value, FormattedArray) else None
        array = value.array if isinstance(value, FormattedArray) else value
        if isinstance(array, DeviceView):
            array = array.numpy()
        array = to_array(array) if is_tensor(array) else array
        shape = tuple(array.shape if shape is None else shape)
        if name not in self._opened("infer()").outputs and self._is_input(name) and self._last(name):
            shape = get_chw_shape_from_hwc(shape)
        try:
            return array if shape == array.shape else array.reshape(shape)
        except ValueError:
            raise UsageError(f"input '{shown(name, 120)}': {array.size} elements are none of shape {shape}") from None

    def _is_input(self, name: str) -> bool:
        return any(tensor.name == name for tensor in self._opened("infer()").execution.tensors)

    def _shaped(self, name: str, value: Any) -> Any:
        """An output in the shape that a script sees."""
        if not self._last(name):
            return value
        shape = get_hwc_shape_from_chw(tuple(value.shape))
        return DeviceView(value.ptr, shape, value.dtype) if isinstance(value, DeviceView) else value.reshape(shape)


def _raw(value: Any) -> FormattedArray:
    if isinstance(value, DeviceView):
        return FormattedArray(DeviceView(value.ptr, (value.nbytes,), DataType.UINT8), value.shape)
    return FormattedArray(value.reshape(-1).view("uint8"), value.shape)
