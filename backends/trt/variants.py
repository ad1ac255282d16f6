"""A runner of kind "trt" as searches run it: parts of its model, or builds that repeat nothing. Imports no engine."""

from pathlib import Path

import msgspec

from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.trt.options import ENGINE_SUFFIXES, TrtOptions, short_lived, to_dict, trt_options


def of_part(spec: RunnerSpec) -> RunnerSpec:
    """The runner for parts of its model."""
    return msgspec.structs.replace(spec, name="", rename={}, options=to_dict(part_options(trt_options(spec.options))))


def part_options(options: TrtOptions) -> TrtOptions:
    """The options of a model as its parts have them: nothing of its inputs, outputs, profiles and files."""
    network = msgspec.structs.replace(
        options.network, outputs=[], exclude_outputs=[], mark_debug=[], mark_unfused=False, tensor_dtypes={},
        tensor_formats={},
    )  # fmt: skip
    run = msgspec.structs.replace(options.run, profile=0, cuda_graph=False, contexts=1)
    return msgspec.structs.replace(
        short_lived(options), engine=None, profiles=[], shapes={}, network=network, run=run, part=True
    )


def watched(spec: RunnerSpec) -> RunnerSpec:
    """The runner with an engine that shows, while it runs, what no fusion swallowed, and says what its layers are."""
    options = short_lived(trt_options(spec.options))
    network = msgspec.structs.replace(options.network, mark_unfused=True)
    config = msgspec.structs.replace(options.config, profiling_verbosity="DETAILED")
    run = msgspec.structs.replace(options.run, cuda_graph=False, contexts=1)
    return msgspec.structs.replace(
        spec, options=to_dict(msgspec.structs.replace(options, network=network, config=config, run=run))
    )


def built_anew(spec: RunnerSpec) -> RunnerSpec:
    """The runner with an engine of its own each time it is opened, no timings taken over. Any other kind as it is."""
    if spec.kind != "trt":
        return spec
    return msgspec.structs.replace(
        spec, options=to_dict(msgspec.structs.replace(trt_options(spec.options), fresh=True))
    )


def loads_engine(spec: RunnerSpec, model: str) -> bool:
    """Whether the runner loads an engine (its own, or one that is given as the model) instead of building one."""
    if spec.kind != "trt":
        return False
    return trt_options(spec.options).engine is not None or Path(model).suffix.lower() in ENGINE_SUFFIXES
