"""From parsed options to TensorRT's: build and run options of `run --trt` and `convert`, by Polygraphy's names."""

from argparse import Namespace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.sizes import parse_size
from layerwise._tool.backends.specs import FeedSpec, RunnerSpec
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.trt.options import (
    ConfigOptions,
    NetworkOptions,
    ProfileSpec,
    RunOptions,
    Shapes,
    TrtOptions,
    to_dict,
)
from layerwise._tool.tui.cli import values

SAME = (
    *("tf32", "fp16", "bf16", "fp8", "int8", "sparse_weights", "version_compatible", "exclude_lean_runtime"),
    *("refittable", "strip_plan", "use_dla", "allow_gpu_fallback", "weight_streaming", "direct_io"),
    *("disable_compilation_cache", "error_on_timing_cache_miss"),
)
RENAMED = {
    "safety_restricted": "trt_safety_restricted",
    "calibrator": "calib_base_cls",
    "tiling": "tiling_optimization_level",
    "hardware_compatibility": "hardware_compatibility_level",
    "profiling_verbosity": "profiling_verbosity",
    "runtime_platform": "runtime_platform",
    "config_script": "trt_config_script",
    "config_postprocess": "trt_config_postprocess_script",
}
_PRECISIONS = ("fp16", "bf16", "int8", "fp8")


def trt_runner(args: Namespace, engine: str | None = None) -> RunnerSpec:
    """The runner of `--trt`, or of `--trt-engine ENGINE`."""
    options = trt_options(args)
    if engine is not None:
        plugins = NetworkOptions(plugins=options.network.plugins)
        options = TrtOptions(engine=engine, run=options.run, network=plugins)
    return RunnerSpec(kind="trt", options=to_dict(options))


def trt_options(args: Namespace) -> TrtOptions:
    """TensorRT's options among parsed ones. UsageError for what is none."""
    return TrtOptions(
        profiles=_profiles(args),
        config=_config(args),
        network=_network(args),
        run=RunOptions(
            profile=_whole(args.optimization_profile, "--optimization-profile") or 0,
            strategy=args.allocation_strategy or "static",
            budget=values.parse_budget(args.weight_streaming_budget),
            runtime=args.load_runtime,
            dla_workspace=args.dla_workspace_allocation_strategy,
            cuda_graph=args.trt_cuda_graph,
            contexts=args.trt_contexts,
        ),
        save_engine=args.save_engine,
        load_timing_cache=args.load_timing_cache or _existing(args.timing_cache),
        save_timing_cache=args.save_timing_cache or args.timing_cache,
        save_tactics=args.save_tactics,
        load_tactics=args.load_tactics,
        exclude_tactics=args.exclude_tactics,
        fresh=args.fresh_engine,
    )


def input_shapes(args: Namespace) -> Shapes:
    """The shapes that --input-shapes names, the first of each input."""
    return {name: many[0] for name, many in values.parse_shapes(args.input_shapes).items()}


def _profiles(args: Namespace) -> list[ProfileSpec]:
    groups = [_groups(getattr(args, f"trt_{word}_shapes")) for word in ("min", "opt", "max")]
    return [ProfileSpec(min=low, opt=likely, max=high) for low, likely, high in zip_longest(*groups, fillvalue={})]


def _groups(given: list[list[str]] | None) -> list[Shapes]:
    """Each use of an option belongs to a profile of its own."""
    found = []
    for items in given or []:
        shapes = values.parse_shapes(items)
        twice = next((name for name, many in shapes.items() if len(many) > 1), None)
        if twice is not None:
            raise UsageError(f"'{shown(twice, 80)}' has two shapes in one profile: repeat the option for another one")
        found.append({name: many[0] for name, many in shapes.items()})
    return found


def _config(args: Namespace) -> ConfigOptions:
    if args.fp32 and any(getattr(args, name) for name in _PRECISIONS):
        raise UsageError("--fp32 means no reduced precision: leave out --fp16, --bf16, --int8 and --fp8")
    fields: dict[str, Any] = {name: bool(getattr(args, name)) for name in SAME}
    fields |= {ours: getattr(args, theirs) for ours, theirs in RENAMED.items()}
    return ConfigOptions(
        **fields,
        calibration=_calibration(args) if args.int8 else None,
        calibration_cache=args.calibration_cache,
        quantile=_number(args.quantile, "--quantile"),
        regression_cutoff=_number(args.regression_cutoff, "--regression-cutoff"),
        precision_constraints=_constraints(args.precision_constraints),
        engine_capability=args.engine_capability,
        pool_limits=_pools(args),
        optimization_level=_whole(args.builder_optimization_level, "--builder-optimization-level"),
        max_aux_streams=_whole(args.max_aux_streams, "--max-aux-streams"),
        tactic_sources=_names(args.tactic_sources),
        preview_features=_names(args.preview_features),
        quantization_flags=_names(args.quantization_flags),
    )


def _calibration(args: Namespace) -> FeedSpec:
    """The inputs that INT8 is calibrated with: those that are run."""
    script, function = None, "load_data"
    if args.data_loader_script:
        script, function = values.parse_script(args.data_loader_script, args.data_loader_func_name or "load_data")
    return FeedSpec(
        seed=args.seed,
        val_range=values.parse_ranges(args.val_range),
        shapes=values.parse_shapes(args.input_shapes),
        files=args.load_inputs,
        script=script,
        function=function,
    )


def _constraints(given: list[str] | None) -> Any:
    """prefer or obey; `LAYER:TYPE` pairs are of --layer-precisions and mean prefer."""
    words = given or []
    plain = [word for word in words if ":" not in word]
    if len(plain) > 1 or any(word not in ("prefer", "obey", "none") for word in plain):
        raise UsageError("--precision-constraints: prefer, obey, none, or LAYER:TYPE")
    if plain:
        return None if plain[0] == "none" else plain[0]
    return "prefer" if words else None


def _network(args: Namespace) -> NetworkOptions:
    pairs = [word for word in args.precision_constraints or [] if ":" in word]
    flags = _names(args.onnx_flags) or []
    flags += ["ENABLE_UINT8_AND_ASYMMETRIC_QUANTIZATION_DLA"] if args.enable_uint8_asymmetric_quantization_dla else []
    return NetworkOptions(
        strongly_typed=args.strongly_typed,
        onnx_flags=flags,
        plugin_instancenorm=args.plugin_instancenorm,
        decomposable_attentions=args.decomposable_attentions,
        plugins=_names(args.plugins) or [],
        outputs=_outputs(_names(args.trt_outputs) or []),
        exclude_outputs=_names(args.trt_exclude_outputs) or [],
        output_types=_names(args.trt_outputs_by_type) or [],
        mark_debug=_names(args.mark_debug) or [],
        mark_unfused=args.mark_unfused_tensors_as_debug_tensors,
        layer_precisions=_pairs([*(_names(args.layer_precisions) or []), *pairs], "--layer-precisions"),
        tensor_dtypes=_every(args.all_tensor_dtypes) | _pairs(_names(args.tensor_dtypes) or [], "--tensor-dtypes"),
        tensor_formats=_formats(args),
        postprocess=_names(args.trt_network_postprocess_script) or [],
        function=_function(args),
    )


def _function(args: Namespace) -> str | None:
    """The function of a network script: after the path, by --trt-network-func, or load_network."""
    model = args.model_file or ""
    path, name = values.parse_script(model, args.trt_network_func or "load_network")
    return name if path.endswith(".py") or args.model_type == "trt-network-script" else None


def _outputs(names: list[str]) -> list[str]:
    return ["*"] if names in (["*"], ["mark", "all"], ["mark all"]) else names


def _pairs(items: list[str], option: str) -> dict[str, str]:
    found = {}
    for item in items:
        name, colon, value = item.rpartition(":")
        if not (colon and name and value):
            raise UsageError(f"{option}: '{shown(item, 80)}' is not NAME:VALUE")
        found[name] = value
    return found


def _every(value: str | None) -> dict[str, str]:
    """A value for every input and output."""
    return {} if value is None else {"": value}


def _formats(args: Namespace) -> dict[str, list[str]]:
    pairs = _pairs(_names(args.tensor_formats) or [], "--tensor-formats")
    found = {name: text.strip("[]").split(",") for name, text in pairs.items()}
    every = _names(args.all_tensor_formats)
    return found if every is None else {"": every, **found}


def _pools(args: Namespace) -> dict[str, int]:
    pairs = _pairs(_names(args.pool_limit) or [], "--pool-limit")
    found = {pool: parse_size(size) for pool, size in pairs.items()}
    if args.workspace is not None:
        found["workspace"] = parse_size(args.workspace)
    return found


def _names(given: list[list[str]] | None) -> list[str] | None:
    return None if given is None else [name for names in given for name in names]


def _whole(text: str | None, option: str) -> int | None:
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"{option} {shown(text, 40)}: a whole number is needed") from None


def _number(text: str | None, option: str) -> float | None:
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"{option} {shown(text, 40)}: a number is needed") from None


def _existing(path: str | None) -> str | None:
    return path if path is not None and Path(path).is_file() else None
