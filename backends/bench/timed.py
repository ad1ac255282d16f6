"""What a bench times: a backend with a model and its inputs, ready to run repeatedly."""

import importlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from layerwise._tool.backends.arrays import Array, Feed
from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.runner import Loadable, Runner, open_runner
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.tensors import TensorInfo

Timing = tuple[float, ...]

_MODULES = {"onnxrt": "layerwise._tool.backends.bench.onnxrt", "trt": "layerwise._tool.backends.bench.trt"}


@dataclass(frozen=True)
class Setup:
    """How to run a backend.

    transfers: each run copies inputs from the host and outputs back. cuda_graph: replay a captured graph.
    """

    transfers: bool = True
    cuda_graph: bool = False


class Timed(Protocol):
    """One stream of runs. phases: those measured separately, of enqueue, h2d, compute and d2h."""

    phases: tuple[str, ...]

    def run(self) -> Timing:
        """Run once and wait. Return start and end (seconds of `time.perf_counter`), then the seconds of each phase."""
        ...

    def outputs(self) -> dict[str, Array]:
        """Return the outputs of the last run, on the host."""
        ...


class TimedSubject(Protocol):
    """A model in a backend, ready to be timed."""

    name: str
    inputs: list[TensorInfo]

    def streams(self, feed: Feed, count: int) -> Sequence[Timed]:
        """Return `count` streams that can run concurrently. UsageError if that is impossible."""
        ...

    def notes(self) -> list[str]:
        """Return caveats about the figures, one sentence each."""
        ...

    def close(self) -> None:
        """Release memory and devices."""
        ...


class RunnerTimed:
    """Any runner, timed from outside: a run is one `infer`, including data transfers."""

    phases: tuple[str, ...] = ("compute",)

    def __init__(self, runner: Runner, feed: Feed) -> None:
        self._runner, self._feed = runner, feed
        self._outputs: dict[str, Array] = {}

    def run(self) -> Timing:
        start = time.perf_counter()
        result = self._runner.infer(self._feed)
        end = time.perf_counter()
        self._outputs = dict(result.outputs)
        return start, end, end - start

    def outputs(self) -> dict[str, Array]:
        return self._outputs


class RunnerSubject:
    """A subject made from any runner, one stream at a time."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self.name, self.inputs = runner.name, runner.inputs

    def streams(self, feed: Feed, count: int) -> list[RunnerTimed]:
        if count != 1:
            raise UsageError(f"{self.name} runs one stream: --streams {count} needs onnxruntime or TensorRT")
        return [RunnerTimed(self._runner, feed)]

    def notes(self) -> list[str]:
        return self._runner.notes()

    def close(self) -> None:
        self._runner.close()


def open_subject(spec: RunnerSpec, model: Loadable, setup: Setup, name: str) -> TimedSubject:
    """Open the backend of `spec` on `model` for timing. Raises like `open_runner`; UsageError for an unsupported setup.

    A backend that can time the phases of a run has its own `open_subject` in a module; others are timed from outside.
    """
    module = _MODULES.get(spec.kind)
    if module is not None:
        opened: TimedSubject = importlib.import_module(module).open_subject(spec, model, setup, name)
        return opened
    if setup.cuda_graph:
        raise UsageError(f"{name} has no CUDA graphs: leave out --useCudaGraph")
    return RunnerSubject(open_runner(spec, model, name=name))
