"""Engines from bytes, and what they take and give."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from layerwise._tool.backends.errors import BadFile, LayerwiseError, UsageError
from layerwise._tool.backends.tensors import TensorInfo
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.trt.capabilities import able, lacks, member
from layerwise._tool.backends.trt.library import load_plugins
from layerwise._tool.backends.trt.logger import Messages, make_logger, make_recorder
from layerwise._tool.backends.trt.options import RunOptions

NUMPY_NAMES = {
    "FLOAT": "float32", "HALF": "float16", "BF16": "bfloat16", "FP8": "float8_e4m3fn", "INT8": "int8",
    "UINT8": "uint8", "INT32": "int32", "INT64": "int64", "BOOL": "bool", "INT4": "int4", "FP4": "float4_e2m1fn",
    "E8M0": "float8_e8m0fnu",
}  # fmt: skip
"""TensorRT's DataType -> our name of the type."""


@dataclass
class Engine:
    """An engine and what it must not outlive: runtimes, the logger and the error recorder."""

    engine: Any
    runtimes: list[Any]
    logger: Any
    messages: Messages
    recorder: Any


@dataclass(frozen=True)
class EngineTensor:
    """An input or output of an engine; -1 in `shape` is a size that is not fixed. host: it lies in host memory."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    is_input: bool
    host: bool

    def info(self) -> TensorInfo:
        """As runners describe their inputs."""
        return TensorInfo(self.name, self.dtype, tuple(None if size == -1 else size for size in self.shape))


def load_engine(
    trt: Any, data: bytes, source: object, messages: Messages, run: RunOptions, plugins: Sequence[str] = ()
) -> Engine:
    """Deserialise an engine, with TensorRT's own plugins and those of these libraries.

    BadFile names `source` and TensorRT's own reason, another version for one.
    """
    logger, recorder = make_logger(trt, messages), make_recorder(trt, messages)
    load_plugins(trt, logger, plugins)
    runtimes = [trt.Runtime(logger)]
    if run.runtime:
        runtimes.append(_lean(runtimes[0], run.runtime, messages))
    runtimes[-1].engine_host_code_allowed = True
    runtimes[-1].error_recorder = recorder
    if run.dla_workspace is not None:
        _dla_workspace(trt, runtimes[-1], run.dla_workspace)
    messages.reason("")
    engine = runtimes[-1].deserialize_cuda_engine(data)
    if engine is None:
        raise BadFile(source, shown(messages.reason("not an engine that this TensorRT can load"), 1000))
    return Engine(engine, runtimes, logger, messages, recorder)


def _dla_workspace(trt: Any, runtime: Any, name: str) -> None:
    if not able(trt, "dla_workspace"):
        raise UsageError(f"--dla-workspace-allocation-strategy: {lacks(trt, 'dla_workspace')}")
    strategies = trt.DLAWorkspaceAllocationStrategy
    runtime.dla_workspace_allocation_strategy = member(strategies, name, "--dla-workspace-allocation-strategy")


def _lean(runtime: Any, library: str, messages: Messages) -> Any:
    if not Path(library).is_file():
        raise BadFile(library, "there is no such runtime library")
    found = runtime.load_runtime(library)
    if found is None:
        raise BadFile(library, shown(messages.reason("TensorRT cannot load this runtime"), 500))
    return found


def io_tensors(trt: Any, engine: Any) -> list[EngineTensor]:
    """The inputs and outputs of an engine in its order."""
    names = [engine.get_tensor_name(i) for i in range(engine.num_io_tensors)]
    return [
        EngineTensor(
            name,
            NUMPY_NAMES[engine.get_tensor_dtype(name).name],
            tuple(engine.get_tensor_shape(name)),
            engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT,
            engine.get_tensor_location(name) == trt.TensorLocation.HOST,
        )
        for name in names
    ]


def set_budget(engine: Any, text: str | None) -> int | None:
    """Set how many bytes of streamed weights stay on the device: bytes, "50%" of them, or "auto"; the bytes set.

    UsageError for an engine that was not built for streaming, and for more than its weights take.
    """
    if text is None:
        return None
    whole = engine.streamable_weights_size
    if not whole:
        raise UsageError("--weight-streaming-budget: the engine was not built with --weight-streaming")
    wanted = _budget(engine, text, whole)
    if not 0 <= wanted <= whole:
        raise UsageError(f"--weight-streaming-budget {text}: 0 to {whole} bytes, which is what the weights take")
    engine.weight_streaming_budget_v2 = wanted
    if engine.weight_streaming_budget_v2 != wanted:
        raise LayerwiseError(f"TensorRT does not take a weight streaming budget of {wanted} bytes")
    return wanted


def _budget(engine: Any, text: str, whole: int) -> int:
    if text == "auto":
        return int(engine.get_weight_streaming_automatic_budget())
    try:
        if text.endswith("%"):
            return int(whole * float(text[:-1]) / 100)
        return min(int(text), whole)
    except ValueError:
        pass
    raise UsageError(f"--weight-streaming-budget {shown(text, 40)}: bytes, a percentage (50%) or auto")
