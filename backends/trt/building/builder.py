"""Builds engines: from network, config and profiles to a serialised engine."""

import threading
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from layerwise._tool.backends.builds import OF_PROCESS, Progress
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.filesystem.files import atomic_write
from layerwise._tool.backends.filesystem.permissions import make_folder
from layerwise._tool.backends.runner import Loadable
from layerwise._tool.backends.scripts import call_script
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.trt.building import config as configs
from layerwise._tool.backends.trt.building.calibration import calibrated
from layerwise._tool.backends.trt.building.config import by_flags, in_graph
from layerwise._tool.backends.trt.building.network import Network, made_by, mark_outputs, parse_onnx, script_network
from layerwise._tool.backends.trt.building.profiles import Filled, add_profiles, filled, network_inputs
from layerwise._tool.backends.trt.building.typing import set_types
from layerwise._tool.backends.trt.library import load_plugins, tensorrt
from layerwise._tool.backends.trt.logger import Messages, make_logger, make_recorder
from layerwise._tool.backends.trt.options import TrtOptions
from layerwise._tool.backends.trt.store import EngineKey, Store, code_of
from layerwise._tool.backends.trt.tactics.record import save_timing_cache, use_timing_cache
from layerwise._tool.backends.trt.tactics.selection import recording

_AT_ONCE = 0.5


@dataclass
class Built:
    """A serialised engine. seconds: build time, 0 if it was cached; told: messages for the user; path: of its file, if
    it has one.
    """

    data: bytes
    seconds: float
    cached: bool
    told: list[str] = field(default_factory=list)
    path: Path | None = None


def build_engine(
    model: Loadable,
    options: TrtOptions,
    *,
    progress: Progress | None = None,
    messages: Messages | None = None,
    store: Store | None = None,
) -> Built:
    """Build the engine that the options describe, or return the cached one from the workspace, and say that.

    If user code takes part, the engine is built, since what that code reads is unknown, unless `options.reuse` is set.

    `progress` (None: the process-wide listener) may raise to end the build; the exception is re-raised
    here. Raises MissingDependency without TensorRT, UsageError for options that do not match the model or the version,
    LayerwiseError with TensorRT's own reasons.
    """
    return Builder(model, options, progress, messages or Messages(), store).run()


class Builder:
    """One build, from the model to the serialised engine."""

    def __init__(
        self, model: Loadable, options: TrtOptions, progress: Progress | None, messages: Messages, store: Store | None
    ) -> None:
        configs.check_options(options.config)
        self.trt = tensorrt()
        self.model, self.options, self.messages = model, options, messages
        self._recording = recording(self.trt, options)
        self.store = None if options.fresh or self._recording.wanted else store or Store(self.trt)
        self._code = code_of(model, options)
        read = options.reuse and all(path.is_file() for path in self._code)  # not: a library found by its bare name
        self._reuses = self.store is not None and (read or not self._code)
        self.told: list[str] = []
        self._build = Build(progress)
        self._calibrator: Any = None
        self._logger, self._recorder = make_logger(self.trt, messages), make_recorder(self.trt, messages)

    def run(self) -> Built:
        """Return the engine, saved if the options say so."""
        load_plugins(self.trt, self._logger, self.options.network.plugins)
        built = self._reused(self.store) if self.store and self._reuses else self._built()
        if self.options.save_engine:
            save_engine(built.data, Path(self.options.save_engine))
            built.path = Path(self.options.save_engine)
        return built

    def _reused(self, store: Store) -> Built:
        """Return the engine from the store, else build it and store it.

        It is stored under what was read before it was built, unless that is something else by now.
        """
        key = store.key(self.model, self.options)
        known = None if self._writes() else store.find(key, self.options)
        if known is not None:
            self._say_reused(key)
            return Built(known, 0.0, True, self.told, store.place(key, self.options))
        built = self._built()
        after = store.key(self.model, self.options)
        if after.holds(key):
            store.keep(after, self.options, built.data)
            built.path = store.place(after, self.options)
        return built

    def _say_reused(self, key: EngineKey) -> None:
        self.told.append(f"The engine is reused: it was built before of {key.text()}. (--fresh-engine builds anew.)")
        if self._code:
            names = shown(", ".join(path.name for path in self._code), 200)
            self.told.append(f"--reuse-engine: the key holds {names} and what is imported and named there; what else "
                             "they read may have changed.")  # fmt: skip

    def _writes(self) -> bool:
        """Return whether a file is requested that only a build writes."""
        config = self.options.config
        calibrates = config.int8 and config.calibration_cache and not Path(config.calibration_cache).is_file()
        return bool(self.options.save_timing_cache or calibrates)

    def _built(self) -> Built:
        start = time.perf_counter()
        network = self._network()
        data = self.serialised(network)
        return Built(data, time.perf_counter() - start, False, self.told)

    def network(self) -> Network:
        """Return the network alone, with plugins loaded."""
        load_plugins(self.trt, self._logger, self.options.network.plugins)
        return self._network()

    def _network(self) -> Network:
        options = self.options.network
        typed = options.strongly_typed or self.options.config.graph_precision or not by_flags(self.trt, self.options)
        if options.function:
            network = script_network(
                self.trt, self._logger, str(self.model.path), options.function, strongly_typed=typed
            )
        else:
            with self._lowered() as model:
                network = parse_onnx(self.trt, self._logger, self.messages, model, options, strongly_typed=typed)
        for script in options.postprocess:
            call_script(script, "postprocess", network.network)
        besides = made_by(self.trt, network.network, options.output_types)
        mark_outputs(network.network, options.outputs, options.exclude_outputs, besides)
        set_types(self.trt, network.network, self.options, self.told.append)
        return network

    def _lowered(self) -> AbstractContextManager[Loadable]:
        if by_flags(self.trt, self.options):
            return nullcontext(self.model)
        return in_graph(self.trt, self.model, self.options, self.told.append)

    def serialised(self, network: Network) -> bytes:
        """Return the engine of a network, which may have been changed since. LayerwiseError as `build_engine`."""
        config = self._config(network)
        config.progress_monitor = monitor = make_monitor(self.trt, self._build)
        self.messages.reason("")
        network.builder.error_recorder = self._recorder
        plan = network.builder.build_serialized_network(network.network, config)
        while plan is not None and self._recording.again(config):
            plan = network.builder.build_serialized_network(network.network, config)
        del monitor
        if error := self._build.error or getattr(self._calibrator, "error", None) or self._recording.error:
            raise error
        if plan is None:
            reason = shown(self.messages.reason("it says no more"), 2000)
            raise LayerwiseError(f"TensorRT cannot build the engine: {reason}")
        self._recording.save(config, self.told.append)
        if self.options.save_timing_cache:
            save_timing_cache(config, Path(self.options.save_timing_cache))
        if self.store:
            save_timing_cache(config, self.store.timing_cache)
        return bytes(memoryview(plan))

    def _config(self, network: Network) -> Any:
        wanted, builder = self.options.config, network.builder
        if wanted.config_script:
            config = call_script(wanted.config_script, "load_config", builder, network.network)
        else:
            config = builder.create_builder_config()
            by_flag = by_flags(self.trt, self.options)
            configs.apply(self.trt, builder, config, wanted, by_flags=by_flag, tell=self.told.append)
            inputs = network_inputs(network.network)
            profiles = add_profiles(builder, config, self._profiles(network), inputs)
            if wanted.int8 and by_flags(self.trt, self.options):
                self._calibrator = calibrated(self.trt, network.network, config, wanted, profiles, self.told.append)
        self._recording.attach(config, self.messages)
        if not self._recording.gives_cache:
            self._timing(config)
        if wanted.config_postprocess:
            call_script(wanted.config_postprocess, "postprocess_config", builder, network.network, config)
        return config

    def _profiles(self, network: Network) -> list[Filled]:
        inputs = network_inputs(network.network)
        return filled(self.options.profiles, self.options.shapes, inputs, self.told.append)

    def _timing(self, config: Any) -> None:
        named = Path(self.options.load_timing_cache) if self.options.load_timing_cache else None
        kept = [self.store.timing_cache] if self.store and named is None else []
        if named is not None and not named.is_file():
            self.told.append(f"there is no timing cache {shown(str(named))} yet: the build starts with an empty one")
        use_timing_cache(config, [*([named] if named else []), *kept], self.messages, named)


def save_engine(data: bytes, path: Path) -> None:
    """Write an engine atomically. LayerwiseError if that fails."""
    try:
        make_folder(path.parent)
        atomic_write(path, data)
    except OSError as error:
        raise LayerwiseError(f"{shown(str(path))} cannot be written: {error.strerror}") from None


class Build:
    """Phases of a build as reported by TensorRT's progress monitor, from any of its threads.

    Whatever `progress` raises (also a job's cancellation) ends the build at its next step; it is kept in `error`, since
    an exception must not pass through TensorRT. progress: None is the process-wide listener.
    """

    def __init__(self, progress: Progress | None = None) -> None:
        self.error: BaseException | None = None
        self._progress = progress or OF_PROCESS.progress
        self._from = 0.0 if progress else time.monotonic() + _AT_ONCE
        self._lock = threading.Lock()
        self._phases: dict[str, tuple[str, int]] = {}

    def start(self, phase: str, parent: str | None, steps: int) -> None:
        with self._lock:
            above = self._phases.get(parent or "", ("", 0))[0]
            self._phases[phase] = (f"{above} > {phase}" if above else phase, steps)

    def step(self, phase: str, step: int) -> bool:
        """Report a completed step; return whether to continue."""
        with self._lock:
            path, steps = self._phases.get(phase, (phase, 0))
            if self.error is None:
                self.error = self._told(step + 1, steps or None, path)
            return self.error is None

    def _told(self, done: float, total: float | None, text: str) -> BaseException | None:
        try:
            if time.monotonic() >= self._from:
                self._progress(done, total, text)
        except BaseException as error:
            return error
        return LayerwiseError("the build was given up") if OF_PROCESS.over else None

    def finish(self, phase: str) -> None:
        with self._lock:
            self._phases.pop(phase, None)


def make_monitor(trt: Any, build: Build) -> Any:
    """Return an IProgressMonitor that reports to `build`. Keep it until the build is over."""

    class Monitor(trt.IProgressMonitor):  # type: ignore[misc]
        def phase_start(self, phase_name: str, parent_phase: str | None, num_steps: int) -> None:
            build.start(phase_name, parent_phase, num_steps)

        def step_complete(self, phase_name: str, step: int) -> bool:
            return build.step(phase_name, step)

        def phase_finish(self, phase_name: str) -> None:
            build.finish(phase_name)

    return Monitor()
