"""Times TensorRT: copies, enqueueing and computing separately, one context per stream, CUDA graphs, layers by
IProfiler.

One ordinary run of the runner sets everything up; the timed runs reuse its context and addresses.
"""

import time
from typing import Any

import numpy as np

from layerwise._tool.backends.arrays import Array, Feed
from layerwise._tool.backends.bench.onnxrt_profile import LayerTime
from layerwise._tool.backends.bench.timed import Setup, Timing
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.runner import Loadable, open_runner
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.tensors import packed_nbytes
from layerwise._tool.backends.trt.inference.late import LateRunner
from layerwise._tool.backends.trt.inference.memory import CapturedRun, device_form
from layerwise._tool.backends.trt.inference.runner import TrtRunner, runner_of
from layerwise._tool.backends.trt.library import tensorrt
from layerwise._tool.backends.trt.options import trt_options


class TrtTimed:
    """One context with its stream. With transfers, each run copies inputs and outputs, as separate phases.

    enqueue: host time to launch, included in compute.
    """

    def __init__(self, runner: TrtRunner, feed: Feed, setup: Setup) -> None:
        self._runner, self._feed = runner, feed
        found = runner.infer(feed)
        self._execution = runner.execution
        self._stream, self._context = self._execution.stream, self._execution.context
        self._transfers = setup.transfers
        computing = ("enqueue", "compute")
        self.phases: tuple[str, ...] = ("h2d", *computing, "d2h") if setup.transfers else computing
        on_device = [tensor for tensor in self._execution.tensors if not tensor.host]
        self._inputs = [(self._at(tensor.name), device_form(np.asarray(feed[tensor.name])))
                        for tensor in on_device if tensor.is_input]  # fmt: skip
        self._outputs = [
            (np.empty(packed_nbytes(tensor.dtype, found.outputs[tensor.name].shape), np.uint8), self._at(tensor.name))
            for tensor in on_device if not tensor.is_input
        ]  # fmt: skip
        self._graph = CapturedRun(self._stream, self._enqueue) if setup.cuda_graph else None

    def _at(self, name: str) -> int:
        return int(self._context.get_tensor_address(name))

    def run(self) -> Timing:
        start = time.perf_counter()
        if self._transfers:
            for address, array in self._inputs:
                self._stream.to_device(address, array)
            self._stream.wait()
        copied = time.perf_counter()
        self._launch()
        launched = time.perf_counter()
        self._stream.wait()
        computed = time.perf_counter()
        if not self._transfers:
            return start, computed, launched - copied, computed - copied
        for array, address in self._outputs:
            self._stream.to_host(array, address)
        self._stream.wait()
        end = time.perf_counter()
        return start, end, copied - start, launched - copied, computed - copied, end - computed

    def _enqueue(self) -> bool:
        return bool(self._context.execute_async_v3(int(self._stream.handle)))

    def _launch(self) -> None:
        if self._graph is not None:
            self._graph.launch()
        elif not self._enqueue():
            raise LayerwiseError("TensorRT cannot run the engine again")

    def outputs(self) -> dict[str, Array]:
        return self._runner.infer(self._feed).outputs  # type: ignore[return-value]


class TrtSubject:
    """One engine, built or loaded; each stream has its own context."""

    def __init__(self, spec: RunnerSpec, model: Loadable, setup: Setup, name: str) -> None:
        opened = open_runner(spec, model, name=name)
        self.name, self._spec, self._setup = name, spec, setup
        self._late = opened if isinstance(opened, LateRunner) else None
        self._runners = [opened] if isinstance(opened, TrtRunner) else []
        self.inputs = opened.inputs

    def streams(self, feed: Feed, count: int) -> list[TrtTimed]:
        if self._late is not None and [self._late.built_for(feed)] != self._runners[:1]:
            self._close_runners()
            self._runners = [self._late.built_for(feed)]
        first, options = self._runners[0], trt_options(self._spec.options)
        while len(self._runners) < count:
            self._runners.append(runner_of(self._spec, first.execution.engine, options, self.name))
        return [TrtTimed(runner, feed, self._setup) for runner in self._runners[:count]]

    def layers(self, feed: Feed, runs: int, skip: int) -> list[LayerTime]:
        """Return the engine's layers in order, timed by its profiler, without the first `skip` runs."""
        timed = TrtTimed(self._runners[0], feed, Setup())
        context, seen = self._runners[0].execution.context, _profiler()
        context.profiler = seen
        for run in range(runs):
            seen.run = run - skip
            timed.run()
        context.profiler = None
        return [LayerTime(name, calls=runs - skip, runs_ms=[times.get(run, 0.0) for run in range(runs - skip)])
                for name, times in seen.layers.items()]  # fmt: skip

    def information(self) -> str:
        """Return the engine inspector's layer information as JSON, complete if the engine was built with detailed
        profiling verbosity.
        """
        execution = self._runners[0].execution
        inspector = execution.engine.engine.create_engine_inspector()
        inspector.execution_context = execution.context
        return str(inspector.get_engine_information(tensorrt().LayerInformationFormat.JSON))

    def memory(self) -> int:
        """Return the bytes on the device that a context of the engine needs, without inputs and outputs."""
        return int(self._runners[0].execution.engine.engine.device_memory_size_v2)

    def notes(self) -> list[str]:
        return (self._late or self._runners[0]).notes()

    def close(self) -> None:
        self._close_runners()
        if self._late is not None:
            self._late.close()

    def _close_runners(self) -> None:
        while self._runners:
            self._runners.pop().close()


def open_subject(spec: RunnerSpec, model: Loadable, setup: Setup, name: str) -> TrtSubject:
    """Build or load the engine for timing. Raises like `backends.trt.open_trt`."""
    return TrtSubject(spec, model, setup, name)


def _profiler() -> Any:
    """TensorRT's profiler. `layers` maps name -> run -> milliseconds; `run` is the current one, negative for none."""
    base = tensorrt().IProfiler

    class Layers(base):  # type: ignore[misc, valid-type]
        def __init__(self) -> None:
            base.__init__(self)
            self.run = 0
            self.layers: dict[str, dict[int, float]] = {}

        def report_layer_time(self, layer_name: str, ms: float) -> None:
            if self.run >= 0:
                times = self.layers.setdefault(layer_name, {})
                times[self.run] = times.get(self.run, 0.0) + ms

    return Layers()
