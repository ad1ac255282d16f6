"""Translates our options to an IBuilderConfig, using only names of enumerators.

Reduced precision is requested by builder flags on a weakly typed network of 10, or by types in the graph.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from layerwise._tool.backends.builds import OF_PROCESS
from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.runner import Loadable
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.trt.building.typing import data_type
from layerwise._tool.backends.trt.capabilities import able, lacks, member
from layerwise._tool.backends.trt.library import tensorrt
from layerwise._tool.backends.trt.options import ConfigOptions, TrtOptions, trt_options

_FLAGS = {
    "sparse_weights": "SPARSE_WEIGHTS",
    "version_compatible": "VERSION_COMPATIBLE",
    "exclude_lean_runtime": "EXCLUDE_LEAN_RUNTIME",
    "refittable": "REFIT",
    "strip_plan": "STRIP_PLAN",
    "allow_gpu_fallback": "GPU_FALLBACK",
    "weight_streaming": "WEIGHT_STREAMING",
    "direct_io": "DIRECT_IO",
    "disable_compilation_cache": "DISABLE_COMPILATION_CACHE",
    "error_on_timing_cache_miss": "ERROR_ON_TIMING_CACHE_MISS",
    "safety_restricted": "SAFETY_SCOPE",
}
_ENUMS = {
    "tiling": ("tiling_optimization_level", "TilingOptimizationLevel", "--tiling-optimization-level"),
    "hardware_compatibility": (
        "hardware_compatibility_level",
        "HardwareCompatibilityLevel",
        "--hardware-compatibility-level",
    ),
    "profiling_verbosity": ("profiling_verbosity", "ProfilingVerbosity", "--profiling-verbosity"),
    "runtime_platform": ("runtime_platform", "RuntimePlatform", "--runtime-platform"),
    "engine_capability": ("engine_capability", "EngineCapability", "--engine-capability"),
}
_USUAL = {"profiling_verbosity": "DETAILED"}
PRECISIONS = ("fp16", "bf16", "int8", "fp8")


def check_options(options: ConfigOptions) -> None:
    """Raise UsageError for options that contradict each other on any version."""
    if options.exclude_lean_runtime and not options.version_compatible:
        raise UsageError("--exclude-lean-runtime goes with --version-compatible")
    if options.allow_gpu_fallback and not options.use_dla:
        raise UsageError("--allow-gpu-fallback goes with --use-dla")
    for option, value in (("--quantile", options.quantile), ("--regression-cutoff", options.regression_cutoff)):
        if value is not None and not 0 <= value <= 1:
            raise UsageError(f"{option} {value}: 0 to 1")
    level = options.optimization_level
    if level is not None and not 0 <= level <= 5:
        raise UsageError(f"--builder-optimization-level {level}: 0 to 5")
    if options.max_aux_streams is not None and options.max_aux_streams < 0:
        raise UsageError(f"--max-aux-streams {options.max_aux_streams}: 0 or more")


def apply(
    trt: Any, builder: Any, config: Any, options: ConfigOptions, *, by_flags: bool, tell: Callable[[str], None]
) -> None:
    """Set every option on a builder config. by_flags: reduced precision by flags, for weakly typed networks on 10.

    `tell` gets messages about removed tactic sources. UsageError for a name or a combination that this version lacks.
    """
    check_options(options)
    flags = trt.BuilderFlag
    (config.set_flag if options.tf32 else config.clear_flag)(flags.TF32)
    for name in wanted_flags(trt, options, by_flags=by_flags):
        config.set_flag(member(flags, name, "the builder flag"))
    for field, (attribute, enum, option) in _ENUMS.items():
        value = getattr(options, field) or _USUAL.get(field)
        if value is not None:
            setattr(config, attribute, member(getattr(trt, enum), value, option))
    for pool, size in options.pool_limits.items():
        config.set_memory_pool_limit(member(trt.MemoryPoolType, pool, "--pool-limit"), size)
    if options.optimization_level is not None:
        config.builder_optimization_level = options.optimization_level
    if options.max_aux_streams is not None:
        config.max_aux_streams = options.max_aux_streams
    if options.use_dla:
        _use_dla(trt, builder, config, options, tell)
    _sets(trt, config, options, tell)


def wanted_flags(trt: Any, options: ConfigOptions, *, by_flags: bool) -> Iterator[str]:
    """Return names of the builder flags that the options ask for."""
    for field, flag in _FLAGS.items():
        if getattr(options, field):
            yield flag
    if not by_flags:
        return
    for field in PRECISIONS:
        if getattr(options, field):
            if not able(trt, f"{field}_flag"):
                raise UsageError(lacks(trt, f"{field}_flag"))
            yield field.upper()
    if options.precision_constraints is not None:
        yield f"{options.precision_constraints.upper()}_PRECISION_CONSTRAINTS"


def _sets(trt: Any, config: Any, options: ConfigOptions, tell: Callable[[str], None]) -> None:
    if options.tactic_sources is not None:
        _set_tactic_sources(trt, config, options.tactic_sources, tell)
    for name in options.preview_features or ():
        config.set_preview_feature(member(trt.PreviewFeature, name, "--preview-features"), True)
    if options.preview_features is not None:
        chosen = {name.strip().lower() for name in options.preview_features}
        for name, feature in trt.PreviewFeature.__members__.items():
            if name.lower() not in chosen:
                config.set_preview_feature(feature, False)
    for name in options.quantization_flags or ():
        if not able(trt, "quantization_flags"):
            raise UsageError(lacks(trt, "quantization_flags"))
        config.set_quantization_flag(member(trt.QuantizationFlag, name, "--quantization-flags"))


def _set_tactic_sources(trt: Any, config: Any, names: Sequence[str], tell: Callable[[str], None]) -> None:
    """Allow only these tactic sources; if all named ones were removed from this version, leave the default."""
    gone = [name for name in names if _is_gone(trt, name)]
    found = {member(trt.TacticSource, name, "--tactic-sources") for name in names if name not in gone}
    if gone:
        kept = "those that are named" if found else f"all that there are ({', '.join(trt.TacticSource.__members__)})"
        tell(f"--tactic-sources {', '.join(gone)}: {lacks(trt, 'external_tactics')}. Used instead: {kept}.")
    if found or not names:
        config.set_tactic_sources(sum(1 << int(source) for source in found))


def _is_gone(trt: Any, name: str) -> bool:
    return name.strip().upper() in ("CUBLAS", "CUBLAS_LT", "CUDNN") and not able(trt, "external_tactics")


def _use_dla(trt: Any, builder: Any, config: Any, options: ConfigOptions, tell: Callable[[str], None]) -> None:
    """On 10, as DLA requires: layer precisions are preferred, and no GPU reformatting without GPU fallback."""
    if not builder.num_DLA_cores and not options.allow_gpu_fallback:
        raise UsageError("--use-dla: TensorRT finds no DLA core on this machine (--allow-gpu-fallback goes on without)")
    if not builder.num_DLA_cores:
        tell("--use-dla: TensorRT finds no DLA core on this machine; everything runs on the GPU.")
    if not (options.fp16 or options.int8):
        tell("--use-dla: DLA computes in FP16 and INT8 alone, and neither is asked for.")
    config.default_device_type = trt.DeviceType.DLA
    config.DLA_core = 0
    if able(trt, "prefer_precisions"):
        config.set_flag(trt.BuilderFlag.PREFER_PRECISION_CONSTRAINTS)
        if not options.allow_gpu_fallback:
            config.set_flag(trt.BuilderFlag.DIRECT_IO)


def by_flags(trt: Any, options: TrtOptions) -> bool:
    """Return whether the builder chooses reduced precision: on 10, unless the network is to be strongly typed."""
    return able(trt, "fp16_flag") and not (options.network.strongly_typed or options.config.graph_precision)


def reduces(options: TrtOptions) -> bool:
    """Return whether any precision below FP32 is requested."""
    config = options.config
    return config.fp16 or config.bf16 or config.int8 or config.fp8


def in_graph(
    trt: Any, model: Loadable, options: TrtOptions, tell: Callable[[str], None]
) -> AbstractContextManager[Loadable]:
    """Yield the model with the requested precision written into its graph, and report that way.

    UsageError for FP8 if the model does not contain it, and for FP16 and bfloat16 together.
    """
    config = options.config
    if config.fp16 and config.bf16:
        raise UsageError("--fp16 and --bf16 together: in a strongly typed network a node has one type; choose one")
    wanted = options.network
    if not (reduces(options) or wanted.layer_precisions or wanted.tensor_dtypes):
        return nullcontext(model)
    assert OF_PROCESS.reduced is not None, "nobody has handed over what writes precision into a graph"
    return OF_PROCESS.reduced(model, options, tell)


def engine_facts(runner: RunnerSpec) -> dict[str, Any]:
    """Return builder flags, memory pools with limits in bytes, and layer types by name, for repro_trt.py.

    The accompanying model already has the precision written into its graph. UsageError for what a script
    cannot repeat: a user-defined config, and TensorRT 10's calibration.
    """
    trt, options = tensorrt(), trt_options(runner.options)
    flags, config = by_flags(trt, options), options.config
    if config.config_script or config.config_postprocess or options.network.postprocess:
        raise UsageError("a bundle cannot hold scripts that change the network or its config")
    if config.int8 and flags:
        raise UsageError("a bundle cannot hold TensorRT 10's calibration; with --strongly-typed the model holds it")
    precisions = options.network.layer_precisions if flags else {}
    return {
        "flags": [*(["TF32"] if config.tf32 else []), *wanted_flags(trt, config, by_flags=flags)],
        "strongly_typed": not flags,
        "layers": {name: data_type(trt, kind, "--layer-precisions").name for name, kind in precisions.items()},
        "optimization_level": config.optimization_level,
        "pools": {name.upper(): size for name, size in config.pool_limits.items()},
    }
