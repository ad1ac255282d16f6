"""Builds and times the engine of a model."""

import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from statistics import median

import onnx

from layerwise._tool.backends.bench.loop import BenchPlan, measure
from layerwise._tool.backends.bench.timed import Setup
from layerwise._tool.backends.bench.trt import open_subject
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.runner import Loadable
from layerwise._tool.backends.scripts import load_script
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.trt.library import cudart, tensorrt
from layerwise._tool.backends.trt.options import NetworkOptions, TrtOptions, to_dict
from layerwise._tool.debugtools.autotune.spec import AutotuneSpec
from layerwise._tool.debugtools.autotune.strategies import Times
from layerwise._tool.debugtools.bench.spec import BenchSpec
from layerwise._tool.debugtools.bench.subjects import feed_for
from layerwise._tool.surgery.feeds.planned import planned

_PLAN = BenchPlan(warm_up=0.0, warm_up_runs=2, duration=0.0, iterations=10)  # as Polygraphy runs them


def _structure(spec: AutotuneSpec) -> onnx.ModelProto:
    options = spec.model_options
    with ModelFile(spec.model, options.external_data_dir, options.ignore_external_data) as file:
        return file.structure()


class EngineTimer:
    """Times models with the plugins of a spec registered. Timings of tactics are shared by all builds.

    cache: where they are kept if the spec names no file. Raises MissingDependency without TensorRT, UsageError or
    LayerwiseError for a script of plugins that is missing or fails.
    """

    def __init__(self, spec: AutotuneSpec, cache: Path, warn: Callable[[str], None]) -> None:
        tensorrt(), cudart()
        for script in spec.python_plugins:
            load_script(Path(script).absolute())
        self._bench = BenchSpec(model=spec.model, feeds=planned(spec.feeds, lambda: _structure(spec), warn))
        file = (spec.timing_cache or str(cache)) if spec.use_timing_cache else None
        network = NetworkOptions(plugins=spec.plugin_libraries)
        options = TrtOptions(network=network, fresh=True, load_timing_cache=file, save_timing_cache=file)
        self._runner = RunnerSpec(kind="trt", options=to_dict(options))
        self._warned: set[str] = set()
        self._warn = warn

    def time(self, model: Loadable) -> Times:
        """Build the model's engine and time it. Raises as `backends.trt.open_trt`, UsageError for unfit inputs."""
        started = time.perf_counter()
        with closing(open_subject(self._runner, model, Setup(transfers=False), "trt")) as subject:
            feed = feed_for(self._bench, subject.inputs, None, self._warn_once)
            streams = subject.streams(feed, 1)
            seconds = time.perf_counter() - started
            latencies = [(end - start) * 1000 for start, end, *_ in measure(streams, _PLAN).timings()]
            return Times(median(latencies), subject.memory(), seconds)

    def _warn_once(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            self._warn(text)
