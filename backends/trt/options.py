"""TensorRT's options as plain values: `RunnerSpec.options` for a runner of kind "trt". Imports no engine."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.specs import ENGINE_SUFFIXES, FeedSpec, RunnerSpec, Spec
from layerwise._tool.backends.wording import in_words

Shapes = dict[str, list[int]]


class ProfileSpec(Spec, frozen=True):
    """One optimization profile: input name -> shape. Missing ones are filled in when the network is known."""

    min: Shapes = {}
    opt: Shapes = {}
    max: Shapes = {}


class ConfigOptions(Spec, frozen=True):
    """How an engine is built; enumerators by name, as TensorRT spells them, in either case.

    pool_limits: MemoryPoolType -> bytes. tactic_sources, preview_features, quantization_flags: None leaves TensorRT's
    default. precision_constraints: how strictly 10 obeys layer_precisions. config_script: `file.py:function` that makes
    the whole config; config_postprocess: one that changes it.
    calibration: inputs for INT8 calibration; calibration_cache: read if it exists, written otherwise.
    graph_precision: reduce precision in the graph on TensorRT 10 too, as always on 11.
    """

    tf32: bool = False
    fp16: bool = False
    bf16: bool = False
    fp8: bool = False
    int8: bool = False
    graph_precision: bool = False
    precision_constraints: Literal["prefer", "obey"] | None = None
    calibration: FeedSpec | None = None
    calibration_cache: str | None = None
    calibrator: str | None = None
    quantile: float | None = None
    regression_cutoff: float | None = None
    sparse_weights: bool = False
    version_compatible: bool = False
    exclude_lean_runtime: bool = False
    refittable: bool = False
    strip_plan: bool = False
    use_dla: bool = False
    allow_gpu_fallback: bool = False
    weight_streaming: bool = False
    direct_io: bool = False
    disable_compilation_cache: bool = False
    error_on_timing_cache_miss: bool = False
    safety_restricted: bool = False
    pool_limits: dict[str, int] = {}
    optimization_level: int | None = None
    max_aux_streams: int | None = None
    tiling: str | None = None
    hardware_compatibility: str | None = None
    profiling_verbosity: str | None = None
    runtime_platform: str | None = None
    engine_capability: str | None = None
    tactic_sources: list[str] | None = None
    preview_features: list[str] | None = None
    quantization_flags: list[str] | None = None
    config_script: str | None = None
    config_postprocess: str | None = None


class NetworkOptions(Spec, frozen=True):
    """How the network is made.

    outputs: tensors that replace its outputs ("*": all); exclude_outputs: minus these; output_types: or the outputs of
    layers with these LayerTypes. mark_debug: tensors that a debug listener gets. layer_precisions, tensor_dtypes: name
    -> DataType; tensor_formats: name -> TensorFormats; in the latter two, "" is every input and output. postprocess:
    `file.py:function`, called with the network. function: makes the network, if the model is a script.
    """

    strongly_typed: bool = False
    onnx_flags: list[str] = []
    plugin_instancenorm: bool = False
    decomposable_attentions: bool = False
    plugins: list[str] = []
    outputs: list[str] = []
    exclude_outputs: list[str] = []
    output_types: list[str] = []
    mark_debug: list[str] = []
    mark_unfused: bool = False
    layer_precisions: dict[str, str] = {}
    tensor_dtypes: dict[str, str] = {}
    tensor_formats: dict[str, list[str]] = {}
    postprocess: list[str] = []
    function: str | None = None


class RunOptions(Spec, frozen=True):
    """How an engine is run. profile: its index. strategy: when device memory is allocated. budget: for weight
    streaming: bytes ("1073741824"), a percentage ("50%"), or "auto". runtime: the library of a lean runtime.
    dla_workspace: a DLAWorkspaceAllocationStrategy (11). cuda_graph: launch each run as a CUDA graph. contexts: how
    many run each feed concurrently, each on its own stream; their outputs must agree.
    """

    profile: int = 0
    strategy: Literal["static", "profile", "runtime"] = "static"
    budget: str | None = None
    runtime: str | None = None
    dla_workspace: str | None = None
    cuda_graph: bool = False
    contexts: int = 1


class TrtOptions(Spec, frozen=True):
    """All options of a runner of kind "trt", or of an engine to build.

    engine: an engine to load instead of building one. shapes: of inputs, unless a profile gives them.
    save_engine: where to save the engine, too. load_timing_cache, save_timing_cache: files in addition to the cache in
    the workspace. save_tactics, load_tactics: on 10 Polygraphy's replay files, on 11 editable timing caches;
    exclude_tactics: a replay whose tactics are not used (10). short_lived: the engine is one of many that a search
    tries. part: the model is part of the one that the options are for; nodes that it lacks are ignored.
    fresh: rebuild, and store nothing in the workspace, not even timings. reuse: take a stored engine although scripts,
    plugins or calibrators took part in it.
    """

    engine: str | None = None
    profiles: list[ProfileSpec] = []
    shapes: Shapes = {}
    config: ConfigOptions = ConfigOptions()
    network: NetworkOptions = NetworkOptions()
    run: RunOptions = RunOptions()
    save_engine: str | None = None
    load_timing_cache: str | None = None
    save_timing_cache: str | None = None
    save_tactics: str | None = None
    load_tactics: str | None = None
    exclude_tactics: str | None = None
    short_lived: bool = False
    part: bool = False
    fresh: bool = False
    reuse: bool = False


def trt_options(found: Mapping[str, Any]) -> TrtOptions:
    """Return the options that a RunnerSpec holds. UsageError for an unknown one.

    onnxruntime's option for a session that runs once (`arena`), which searches set, makes it short-lived: it then
    writes none of the user's files.
    """
    own = {name: value for name, value in found.items() if name != "arena"}
    try:
        options = msgspec.convert(own, TrtOptions)
    except msgspec.ValidationError as error:
        raise UsageError(f"TensorRT's options do not fit: {in_words(error)}") from None
    return short_lived(options) if found.get("arena") is False else options


def short_lived(options: TrtOptions) -> TrtOptions:
    """Return the options for an engine that a search tries: the user's files are not written."""
    return msgspec.structs.replace(
        options, short_lived=True, save_engine=None, save_timing_cache=None, save_tactics=None
    )


def to_dict(options: TrtOptions) -> dict[str, Any]:
    """Return the options as a RunnerSpec holds them, without defaults."""
    return {name: value for name, value in msgspec.to_builtins(options).items() if value != {}}


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


def check_anew(options: TrtOptions) -> None:
    """UsageError if the user wants an engine reused where what changes from build to build is searched."""
    if options.reuse:
        raise UsageError("--reuse-engine: what changes from build to build is searched here; every engine is built")


def built_anew(spec: RunnerSpec) -> RunnerSpec:
    """Return the runner with a new engine each time it is opened, without cached timings. Other kinds are unchanged."""
    if spec.kind != "trt":
        return spec
    return msgspec.structs.replace(
        spec, options=to_dict(msgspec.structs.replace(trt_options(spec.options), fresh=True, reuse=False))
    )


def loads_engine(spec: RunnerSpec, model: str) -> bool:
    """Return whether the runner loads an engine (its own, or one given as the model) instead of building one."""
    if spec.kind != "trt":
        return False
    return trt_options(spec.options).engine is not None or Path(model).suffix.lower() in ENGINE_SUFFIXES
