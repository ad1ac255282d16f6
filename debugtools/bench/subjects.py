"""Opens the subjects of a BenchSpec with their inputs in place."""

import sys
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.bench.timed import Setup, TimedSubject, open_subject
from layerwise._tool.backends.errors import BadFile, UsageError
from layerwise._tool.backends.feeds.sources import make_feeds
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.runner import Loadable
from layerwise._tool.backends.specs import ENGINE_SUFFIXES, FeedSpec, InputPlan, RunnerSpec
from layerwise._tool.backends.tensors import TensorInfo
from layerwise._tool.backends.text import counted, shown
from layerwise._tool.debugtools.bench.spec import BenchSpec

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext

Warn = Callable[[str], None]


def runner_label(spec: RunnerSpec) -> str:
    """Return a runner's label in tables: its name, else its kind and providers, with its own model's name if any."""
    providers = "+".join(shown(provider, 40).lower() for provider in spec.providers) or "cpu"
    kind = f"onnxrt {providers}" if spec.kind == "onnxrt" else {"reference": "onnx"}.get(spec.kind, spec.kind)
    told = [f"level {spec.graph_optimization_level}"] if spec.graph_optimization_level else []
    told += [counted(spec.threads, "thread")] if spec.threads else []
    told += ["no tf32"] if spec.tf32 is False else []
    told += [shown(Path(spec.model).name, 60)] if spec.model else []
    return spec.name or ", ".join([kind, *told])


def labels(specs: Sequence[RunnerSpec]) -> list[str]:
    """Return a label for each runner; duplicates are numbered."""
    plain = [runner_label(spec) for spec in specs]
    return [f"{name} #{plain[: i + 1].count(name)}" if plain.count(name) > 1 else name for i, name in enumerate(plain)]


def open_model(spec: BenchSpec, runner: RunnerSpec) -> Loadable:
    """Open the model of a runner, its weights left in the file; an engine is passed through. Raises BadFile."""
    path, options = runner.model or spec.model, spec.model_options
    if runner.kind == "trt" and Path(path).suffix.lower() != ".onnx":
        return Loadable(path=Path(path))
    with ModelFile(path, options.external_data_dir, options.ignore_external_data) as file:
        return Loadable(data=file.structure_bytes(), folder=file.folder)


def open_bench(spec: BenchSpec, runner: RunnerSpec, name: str) -> TimedSubject:
    """Open one runner for timing, according to the spec."""
    return open_subject(runner, open_model(spec, runner), Setup(spec.transfers, spec.cuda_graph), name)


def feed_for(spec: BenchSpec, inputs: Sequence[TensorInfo], batch: int | None, warn: Warn) -> dict[str, Array]:
    """Return the one feed dict that is run repeatedly. UsageError if it, or the batch size, does not match."""
    feeds = spec.feeds if batch is None else with_batch(spec.feeds, inputs, batch)
    found = list(islice(make_feeds(feeds, inputs, warn), 2))
    if not found:
        raise UsageError("there are no inputs to run with")
    if len(found) > 1:
        warn("the first feed dict is run again and again; the others are not used")
    return {name: _raw(spec.raw_inputs[name], array) if name in spec.raw_inputs else array
            for name, array in found[0].items()}  # fmt: skip


def with_batch(feeds: FeedSpec, inputs: Sequence[TensorInfo], batch: int) -> FeedSpec:
    """Return the feeds with `batch` as the first dimension of every input where that is dynamic.

    UsageError if none is, or if inputs are given rather than generated.
    """
    if feeds.plan:
        return msgspec.structs.replace(feeds, plan=[_planned_batch(plan, batch) for plan in feeds.plan])
    if feeds.files or feeds.script:
        raise UsageError("batch sizes need inputs that are made: leave out --load-inputs and --data-loader-script")
    dynamic = [info for info in inputs if info.shape and not _fixed(info.shape[0])]
    if not dynamic:
        listed = ", ".join(f"{shown(info.name, 60)} {list(info.shape or ())}" for info in inputs)
        raise UsageError(f"batch sizes need an input whose first dimension is dynamic; the inputs: {listed}")
    shapes = dict(feeds.shapes)
    for info in dynamic:
        given = shapes.get(info.name, [[dim if _fixed(dim) else 1 for dim in info.shape or ()]])
        shapes[info.name] = [[batch, *given[0][1:]]]
    return msgspec.structs.replace(feeds, shapes=shapes)


def _planned_batch(plan: InputPlan, batch: int) -> InputPlan:
    if not plan.declared or _fixed(plan.declared[0]):
        return plan
    return msgspec.structs.replace(plan, shapes=[[batch, *shape[1:]] for shape in plan.shapes])


def plan_feeds(spec: BenchSpec, context: "JobContext") -> BenchSpec:
    """Return the spec with a plan of the inputs, where that is asked for and the model is one with a graph."""
    if spec.feeds.made != "auto" or Path(spec.model).suffix.lower() in (*ENGINE_SUFFIXES, ".py"):
        return spec
    from layerwise._tool.surgery.feeds.planned import planned  # with onnx

    options = spec.model_options
    with ModelFile(spec.model, options.external_data_dir, options.ignore_external_data) as file:
        feeds = planned(spec.feeds, file.structure, context.warn, context.log, context.row)
    return msgspec.structs.replace(spec, feeds=feeds)


def _fixed(dim: object) -> bool:
    return isinstance(dim, int) and dim >= 0


def _raw(path: str, like: Array) -> Array:
    try:
        values = np.fromfile(path, like.dtype)
    except OSError as error:
        raise BadFile(path, error.strerror or str(error)) from None
    if values.size != like.size:
        raise BadFile(path, f"holds {values.size} values of {like.dtype}, the input takes {list(like.shape)}")
    return values.reshape(like.shape)


def describe(spec: BenchSpec, runner: RunnerSpec) -> dict[str, Any]:
    """Describe the machine and settings of the measurements."""
    from layerwise._tool.backends.bench.environment import environment

    return {"model": runner.model or spec.model, **environment(), "python": sys.version.split()[0]}
