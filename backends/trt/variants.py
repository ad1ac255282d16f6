"""Variants of a runner of kind "trt" for searches: parts of its model, or independent builds. Imports no engine."""

from pathlib import Path

import msgspec

from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.trt.options import ENGINE_SUFFIXES, TrtOptions, short_lived, to_dict, trt_options


def of_part(spec: RunnerSpec) -> RunnerSpec:
    """Return the runner for parts of its model."""
    return msgspec.structs.replace(spec, name="", rename={}, options=to_dict(part_options(trt_options(spec.options))))


def part_options(options: TrtOptions) -> TrtOptions:
    """Return a model's options for its parts: without inputs, outputs, profiles and files."""
    network = msgspec.structs.replace(
        options.network, outputs=[], exclude_outputs=[], mark_debug=[], mark_unfused=False, tensor_dtypes={},
        tensor_formats={},
    )  # fmt: skip
    run = msgspec.structs.replace(options.run, profile=0, cuda_graph=False, contexts=1)
    return msgspec.structs.replace(
        short_lived(options), engine=None, profiles=[], shapes={}, network=network, run=run, part=True
    )


def watched(spec: RunnerSpec) -> RunnerSpec:
    """Return the runner with an engine that exposes unfused tensors while it runs, and detailed layer information."""
    options = short_lived(trt_options(spec.options))
    network = msgspec.structs.replace(options.network, mark_unfused=True)
    config = msgspec.structs.replace(options.config, profiling_verbosity="DETAILED")
    run = msgspec.structs.replace(options.run, cuda_graph=False, contexts=1)
    return msgspec.structs.replace(
        spec, options=to_dict(msgspec.structs.replace(options, network=network, config=config, run=run))
    )


def built_anew(spec: RunnerSpec) -> RunnerSpec:
    """Return the runner with a new engine each time it is opened, without cached timings. Other kinds are unchanged."""
    if spec.kind != "trt":
        return spec
    return msgspec.structs.replace(
        spec, options=to_dict(msgspec.structs.replace(trt_options(spec.options), fresh=True))
    )


def loads_engine(spec: RunnerSpec, model: str) -> bool:
    """Return whether the runner loads an engine (its own, or one given as the model) instead of building one."""
    if spec.kind != "trt":
        return False
    return trt_options(spec.options).engine is not None or Path(model).suffix.lower() in ENGINE_SUFFIXES
