"""The TensorRT runner: an engine, built or loaded, with one execution context."""

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.filesystem.files import open_regular
from layerwise._tool.backends.results.inference import IterationResult
from layerwise._tool.backends.runner import Loadable, RunnerBase, check_feed_types, check_names
from layerwise._tool.backends.specs import ENGINE_SUFFIXES, RunnerSpec
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.trt.building.builder import build_engine
from layerwise._tool.backends.trt.inference.engine import Engine, load_engine, set_budget
from layerwise._tool.backends.trt.inference.execution import Execution
from layerwise._tool.backends.trt.library import tensorrt
from layerwise._tool.backends.trt.logger import Messages
from layerwise._tool.backends.trt.options import TrtOptions


class TrtRunner(RunnerBase):
    """One engine with one execution context. told: what its build had to say. others: further contexts that run each
    feed at the same time, on streams of their own.
    """

    def __init__(
        self, spec: RunnerSpec, execution: Execution, name: str, told: Sequence[str] = (),
        others: Sequence[Execution] = (),
    ) -> None:  # fmt: skip
        self.spec, self.name = spec, name
        self._execution: Execution | None = execution
        self._others = list(others)
        self._told = list(told)
        self._tensors = {tensor.name: tensor for tensor in execution.tensors}
        self.inputs = [tensor.info() for tensor in execution.tensors if tensor.is_input]
        self.outputs = [tensor.name for tensor in execution.tensors if not tensor.is_input]

    @property
    def execution(self) -> Execution:
        """The context, its engine and its buffers. UsageError once the runner is closed."""
        if self._execution is None:
            raise UsageError(f"{self.name} is closed")
        return self._execution

    def infer(self, feed: Mapping[str, Array], outputs: Sequence[str] | None = None) -> IterationResult:
        """Run once, as `Runner.infer` says; the time is that of copies and execution together, in all contexts.

        UsageError for a shape outside the profile, with the profile that would take it. LayerwiseError where another
        context gives other bits.
        """
        execution = self.execution
        names = self.outputs if outputs is None else list(outputs)
        check_names(feed, [info.name for info in self.inputs], names, self.outputs)
        feed = {name: self._narrowed(name, array) for name, array in feed.items()}
        check_feed_types(feed, self.inputs)
        start = time.perf_counter()
        for each in (execution, *self._others):
            each.begin(feed)
        found = execution.finish(names)
        alike = [each.finish(names) for each in self._others]
        runtime = time.perf_counter() - start
        for number, other in enumerate(alike):
            _check_alike(found, other, number + 2)
        return IterationResult({name: found[name] for name in names}, runtime, self.name)

    def _narrowed(self, name: str, array: Array) -> Array:
        """TensorRT has no float64: where the model does, the engine takes float32."""
        array = np.asarray(array)
        if array.dtype == np.float64 and self._tensors[name].dtype == "float32":
            return array.astype(np.float32)
        return array

    def notes(self) -> list[str]:
        """Return what the build had to say: what was filled in, which way precision went."""
        return list(self._told)

    def close(self) -> None:
        for each in (self._execution, *self._others):
            if each is not None:
                each.close()
        self._execution, self._others = None, []


def _check_alike(found: Mapping[str, Array], other: Mapping[str, Array], number: int) -> None:
    """Contexts that run at once must not disturb each other."""
    for name, array in found.items():
        if array.tobytes() != other[name].tobytes():
            raise LayerwiseError(f"context {number}, running at the same time, gives another '{shown(name, 80)}' than "
                                 "context 1 from the same input: the engine's contexts disturb each other, or it is "
                                 "not deterministic")  # fmt: skip


def opened_now(spec: RunnerSpec, model: Loadable, options: TrtOptions, name: str) -> TrtRunner:
    """Build or load the engine, and a runner over it."""
    trt, messages = tensorrt(), Messages()
    file = path = engine_path(options, model)
    if path is not None:
        data, source, told = read_engine(path), str(path), list[str]()
    else:
        built = build_engine(model, options, messages=messages)
        data, source, told, file = built.data, "the engine just built", built.told, built.path
    engine = load_engine(trt, data, source, messages, options.run, options.network.plugins)
    restore_weights(trt, engine, model, told.append)
    if engine.engine.streamable_weights_size or not options.config.weight_streaming:
        set_budget(engine.engine, options.run.budget)
    elif options.run.budget:
        told.append("--weight-streaming-budget has no effect: the engine has no weights to stream.")
    runner = runner_of(spec, engine, options, name, told)
    runner.engine_file = None if file is None else str(file.absolute())
    return runner


def engine_path(options: TrtOptions, model: Loadable) -> Path | None:
    """The engine that is loaded rather than built; None where one is built."""
    path = Path(options.engine) if options.engine else model.path
    return path if path is not None and (options.engine or path.suffix.lower() in ENGINE_SUFFIXES) else None


def runner_of(spec: RunnerSpec, engine: Engine, options: TrtOptions, name: str, told: Sequence[str] = ()) -> TrtRunner:
    """A runner over an engine that is loaded. UsageError for less than one context."""
    if options.run.contexts < 1:
        raise UsageError(f"--trt-contexts {options.run.contexts}: at least 1")
    first, *others = [Execution(tensorrt(), engine, options.run) for _ in range(options.run.contexts)]
    return TrtRunner(spec, first, name, told, others)


def read_engine(path: Path) -> bytes:
    """The bytes of an engine file. BadFile if it cannot be read, or is no regular file."""
    with os.fdopen(open_regular(path), "rb") as stream:
        return stream.read()


def restore_weights(trt: Any, engine: Engine, model: Loadable, tell: Any) -> None:
    """Refit an engine that lacks weights from `model`; any other is left as it is.

    LayerwiseError where there is no model to take them from, or it does not have them.
    """
    if not engine.engine.refittable:
        return
    refitter = trt.Refitter(engine.engine, engine.logger)
    missing = refitter.get_missing_weights()
    if not missing:
        return
    if model.data is None and (model.path is None or model.path.suffix.lower() != ".onnx"):
        raise LayerwiseError(
            f"the engine was built with --strip-plan and lacks {len(missing)} weight(s) ({shown(missing[0], 60)}, …): "
            "give the ONNX model that it was built of as well (run MODEL.onnx --trt-engine ENGINE)"
        )
    engine.messages.reason("")
    parser = trt.OnnxParserRefitter(refitter, engine.logger)
    if not parser.refit_from_bytes(model.read(), model.beside()) or not refitter.refit_cuda_engine():
        raise LayerwiseError(f"the engine cannot be refitted: {shown(engine.messages.reason('it says no more'), 500)}")
    tell(f"{len(missing)} weight(s) that the engine lacked are taken from the model.")
