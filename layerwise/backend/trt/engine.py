"""Engines: built, saved and loaded."""

from pathlib import Path
from typing import Any

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.trt.building import builder as build
from layerwise._tool.backends.trt.inference.engine import load_engine
from layerwise._tool.backends.trt.inference.runner import read_engine
from layerwise._tool.backends.trt.library import load_plugins, tensorrt
from layerwise._tool.backends.trt.options import RunOptions
from layerwise._tool.backends.trt.tactics.record import save_timing_cache
from layerwise.backend.base import BaseLoader, Lazy, immediate, value_of
from layerwise.backend.trt.config import CreateConfig
from layerwise.backend.trt.logger import MESSAGES, get_trt_logger
from layerwise.backend.trt.lowering import network_and_config
from layerwise.backend.trt.tactics import save_tactics
from layerwise.util.files import check_there


class EngineBytesFromNetwork(BaseLoader[Any]):
    """Builds a serialised engine, a trt.IHostMemory: `bytes(…)` or `memoryview(…)` of it are its bytes.

    network: (builder, network) or with the parser third, or a loader of it; config: a builder config or a loader that
    takes (builder, network), CreateConfig() by default; save_timing_cache: a file. LayerwiseError with TensorRT's own
    reasons where the build fails.
    """

    def __init__(
        self, network: Lazy[tuple[Any, ...]], config: Any = None, save_timing_cache: str | None = None
    ) -> None:
        self.network = network
        self.config = CreateConfig() if config is None else config
        self.save_timing_cache = self.timing_cache_path = save_timing_cache

    def call_impl(self) -> Any:
        builder, network, config = network_and_config(self.network, self.config)
        MESSAGES.reason("")
        plan = builder.build_serialized_network(network, config)
        _raise_kept(config)
        if plan is None:
            raise LayerwiseError(f"TensorRT cannot build the engine: {shown(MESSAGES.reason('it says no more'), 2000)}")
        save_tactics(config)
        if self.save_timing_cache:
            save_timing_cache(config, Path(self.save_timing_cache))
        return plan


class EngineFromBytes(BaseLoader[Any]):
    """An engine of its bytes. runtime: a `trt.Runtime`, or a loader of one, instead of TensorRT's full one.

    dla_workspace_allocation_strategy: trt.DLAWorkspaceAllocationStrategy, TensorRT 11. UsageError on 10.
    """

    def __init__(
        self, serialized_engine: Lazy[bytes], runtime: Any = None, dla_workspace_allocation_strategy: Any = None
    ) -> None:
        self.data = serialized_engine
        self.runtime = runtime
        self.strategy = dla_workspace_allocation_strategy

    def call_impl(self) -> Any:
        return _loaded(bytes(memoryview(value_of(self.data))), "the engine", self.runtime, self.strategy)


class EngineFromPath(BaseLoader[Any]):
    """An engine of a file, or of a loader of its path. Otherwise as EngineFromBytes."""

    def __init__(self, path: Lazy[str], runtime: Any = None, dla_workspace_allocation_strategy: Any = None) -> None:
        self.path = path
        self.runtime = runtime
        self.strategy = dla_workspace_allocation_strategy

    def call_impl(self) -> Any:
        path = value_of(self.path)
        check_there(path)
        return _loaded(read_engine(Path(path)), path, self.runtime, self.strategy)


class EngineFromNetwork(EngineBytesFromNetwork):
    """Builds an engine, ready to run: the arguments of EngineBytesFromNetwork, and the runtime of EngineFromBytes."""

    def __init__(
        self,
        network: Lazy[tuple[Any, ...]],
        config: Any = None,
        save_timing_cache: str | None = None,
        runtime: Any = None,
        dla_workspace_allocation_strategy: Any = None,
    ) -> None:
        super().__init__(network, config, save_timing_cache)
        self.runtime = runtime
        self.strategy = dla_workspace_allocation_strategy

    def call_impl(self) -> Any:
        return _loaded(bytes(memoryview(super().call_impl())), "the engine just built", self.runtime, self.strategy)


class LoadRuntime(BaseLoader[Any]):
    """A `trt.Runtime` of the library of a lean runtime. LayerwiseError if TensorRT cannot load it."""

    def __init__(self, path: str) -> None:
        self.path = path

    def call_impl(self) -> Any:
        MESSAGES.reason("")
        runtime = tensorrt().Runtime(get_trt_logger()).load_runtime(self.path)
        if runtime is None:
            raise LayerwiseError(f"{shown(self.path)} cannot be loaded: {MESSAGES.reason('it says no more')}")
        return runtime


class BufferFromEngine(BaseLoader[Any]):
    """Serialises an engine into TensorRT's own memory, a trt.IHostMemory."""

    def __init__(self, engine: Any) -> None:
        self.engine = engine

    def call_impl(self) -> Any:
        plan = value_of(self.engine).serialize()
        if plan is None:
            raise LayerwiseError(f"TensorRT cannot serialise the engine: {MESSAGES.reason('it says no more')}")
        return plan


class BytesFromEngine(BaseLoader[bytes]):
    """Serialises an engine."""

    def __init__(self, engine: Any) -> None:
        self.engine = engine

    def call_impl(self) -> bytes:
        return bytes(memoryview(BufferFromEngine(self.engine)()))


class SaveEngine(BaseLoader[Any]):
    """Writes an engine to a file, whole or not at all, and returns it."""

    def __init__(self, engine: Any, path: str) -> None:
        self.engine = engine
        self.path = path

    def call_impl(self) -> Any:
        engine = value_of(self.engine)
        build.save_engine(BytesFromEngine(engine)(), Path(self.path))
        return engine


def _raise_kept(config: Any) -> None:
    """Raise what went wrong in a calibrator or selector of ours, which TensorRT cannot pass on."""
    calibrator = getattr(config, "int8_calibrator", None)
    tactics = getattr(getattr(config, "algorithm_selector", None), "tactics", None)
    for kept in (calibrator, tactics):
        if error := getattr(kept, "error", None):
            raise error


def _loaded(data: bytes, source: object, runtime: Any, strategy: Any) -> Any:
    trt = tensorrt()
    load_plugins(trt, get_trt_logger(), [])
    if runtime is None:
        workspace = None if strategy is None else str(getattr(strategy, "name", strategy))
        return load_engine(trt, data, source, MESSAGES, RunOptions(dla_workspace=workspace)).engine
    MESSAGES.reason("")
    given = value_of(runtime)
    if strategy is not None:
        given.dla_workspace_allocation_strategy = strategy
    engine = given.deserialize_cuda_engine(data)
    if engine is None:
        raise LayerwiseError(f"{shown(str(source))} cannot be loaded: {MESSAGES.reason('it says no more')}")
    return engine


engine_bytes_from_network = immediate(EngineBytesFromNetwork)
engine_from_bytes = immediate(EngineFromBytes)
engine_from_path = immediate(EngineFromPath)
engine_from_network = immediate(EngineFromNetwork)
load_runtime = immediate(LoadRuntime)
bytes_from_engine = immediate(BytesFromEngine)
buffer_from_engine = immediate(BufferFromEngine)
save_engine = immediate(SaveEngine)
