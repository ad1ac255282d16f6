"""From our option names to an IBuilderConfig, by names of enumerators alone."""

from collections.abc import Iterator
from typing import Any

from backends.errors import UsageError
from backends.trt.capabilities import able, lacks, member
from backends.trt.options import ConfigOptions

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
PRECISIONS = ("fp16", "bf16", "int8", "fp8")


def check_options(options: ConfigOptions) -> None:
    """UsageError for options that contradict each other on any version."""
    if options.exclude_lean_runtime and not options.version_compatible:
        raise UsageError("--exclude-lean-runtime goes with --version-compatible")
    if options.allow_gpu_fallback and not options.use_dla:
        raise UsageError("--allow-gpu-fallback goes with --use-dla")
    level = options.optimization_level
    if level is not None and not 0 <= level <= 5:
        raise UsageError(f"--builder-optimization-level {level}: 0 to 5")
    if options.max_aux_streams is not None and options.max_aux_streams < 0:
        raise UsageError(f"--max-aux-streams {options.max_aux_streams}: 0 or more")


def apply(trt: Any, builder: Any, config: Any, options: ConfigOptions, *, by_flags: bool) -> None:
    """Set every option on a builder config. by_flags: reduced precision by flags, as weakly typed networks on 10.

    UsageError for a name or a combination that this version does not have.
    """
    check_options(options)
    flags = trt.BuilderFlag
    (config.set_flag if options.tf32 else config.clear_flag)(flags.TF32)
    for name in wanted_flags(trt, options, by_flags=by_flags):
        config.set_flag(member(flags, name, "the builder flag"))
    for field, (attribute, enum, option) in _ENUMS.items():
        value = getattr(options, field)
        if value is not None:
            setattr(config, attribute, member(getattr(trt, enum), value, option))
    for pool, size in options.pool_limits.items():
        config.set_memory_pool_limit(member(trt.MemoryPoolType, pool, "--pool-limit"), size)
    if options.optimization_level is not None:
        config.builder_optimization_level = options.optimization_level
    if options.max_aux_streams is not None:
        config.max_aux_streams = options.max_aux_streams
    if options.use_dla:
        _use_dla(trt, builder, config)
    _sets(trt, config, options)


def wanted_flags(trt: Any, options: ConfigOptions, *, by_flags: bool) -> Iterator[str]:
    """Names of the builder flags that the options ask for."""
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


def _sets(trt: Any, config: Any, options: ConfigOptions) -> None:
    if options.tactic_sources is not None:
        sources = [_tactic_source(trt, name) for name in options.tactic_sources]
        config.set_tactic_sources(sum(1 << int(source) for source in set(sources)))
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


def _tactic_source(trt: Any, name: str) -> Any:
    if name.strip().upper() in ("CUBLAS", "CUBLAS_LT", "CUDNN") and not able(trt, "external_tactics"):
        raise UsageError(f"--tactic-sources {name}: {lacks(trt, 'external_tactics')}; "
                         f"there are {', '.join(trt.TacticSource.__members__)}")  # fmt: skip
    return member(trt.TacticSource, name, "--tactic-sources")


def _use_dla(trt: Any, builder: Any, config: Any) -> None:
    if not builder.num_DLA_cores:
        raise UsageError("--use-dla: TensorRT finds no DLA core on this machine")
    config.default_device_type = trt.DeviceType.DLA
    config.DLA_core = 0
