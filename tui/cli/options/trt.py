"""Options of TensorRT, and those of TensorFlow: accepted, so that command lines carry over."""

from argparse import Namespace
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path
from typing import Any

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.sizes import parse_size
from layerwise._tool.backends.specs import FeedSpec
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.trt.options import ProfileSpec, Shapes, TrtOptions
from layerwise._tool.tui.cli import values
from layerwise._tool.tui.cli.options.common import MODEL, compared, means_all
from layerwise._tool.tui.cli.options.option import (
    WRITTEN,
    Group,
    Joint,
    Option,
    at,
    filled,
    flag,
    glued,
    many_words,
    read,
)
from layerwise._tool.tui.cli.options.run import DATA
from layerwise._tool.tui.cli.parser import positive

PRECISIONS = ("--fp16", "--bf16", "--fp8", "--int8")
LINE = ("profiles", "config", "network", "run")
"""In this order TensorRT's options are written; others follow."""
_SIZES = ((1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K"))


def _config(name: str, of: Callable[..., Option] = flag, **settings: Any) -> Option:
    """An option of the builder config whose field, and argument of CreateConfig, is called as itself."""
    return of(f"--{name.replace('_', '-')}", field=f"config.{name}", script=f"CreateConfig.{name}", **settings)


def _value(*flags: str, **settings: Any) -> Option:
    return Option(*flags, **{"metavar": "VALUE", "script": WRITTEN, **settings})


def _list(*flags: str, parse: Callable[[list[list[str]]], Any] | None = None, **settings: Any) -> Option:
    """An option with any number of values, that may be repeated."""
    settings = {"metavar": "VALUE", "script": WRITTEN, "parse": parse or _names, **settings}
    return Option(*flags, nargs="*", action="append", **settings)


def _names(given: list[list[str]] | None) -> list[str]:
    return [name for names in given or [] for name in names]


def _outputs(given: list[list[str]]) -> list[str]:
    names = _names(given)
    return ["*"] if means_all(names) else names


def _number(option: str, kind: Callable[[str], Any] = float, what: str = "a number") -> Callable[[str], Any]:
    def parse(text: str) -> Any:
        try:
            return kind(text)
        except ValueError:
            raise UsageError(f"{option} {shown(text, 40)}: {what} is needed") from None

    return parse


def _whole(option: str) -> Callable[[str], Any]:
    return _number(option, int, "a whole number")


def _pairs(items: list[str], option: str) -> dict[str, str]:
    found = {}
    for item in items:
        name, colon, value = item.rpartition(":")
        if not (colon and name and value):
            raise UsageError(f"{option}: '{shown(item, 80)}' is not NAME:VALUE")
        found[name] = value
    return found


def _pair_words(found: dict[str, str]) -> list[str]:
    return [f"{name}:{value}" for name, value in found.items()]


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


def _profile_words(options: TrtOptions) -> list[str]:
    parts = [(part, getattr(profile, part)) for profile in options.profiles for part in ("min", "opt", "max")]
    words = [(part, values.format_shapes({name: [shape] for name, shape in shapes.items()})) for part, shapes in parts]
    return [word for part, shapes in words for word in many_words(f"--trt-{part}-shapes", shapes)]


def _calibration(args: Namespace) -> FeedSpec | None:
    """The inputs that INT8 is calibrated with: those that are run."""
    if not args.int8:
        return None
    feeds = filled(compared(), read((MODEL, DATA), args)).feeds
    return filled(feeds, {"iterations": None, "backend_module": "numpy"})


def _constraints(args: Namespace) -> str | None:
    """prefer or obey; `LAYER:TYPE` pairs are of --layer-precisions and mean prefer."""
    words = args.precision_constraints or []
    plain = [word for word in words if ":" not in word]
    if len(plain) > 1 or any(word not in ("prefer", "obey", "none") for word in plain):
        raise UsageError("--precision-constraints: prefer, obey, none, or LAYER:TYPE")
    if plain:
        return None if plain[0] == "none" else str(plain[0])
    return "prefer" if words else None


def _layer_precisions(args: Namespace) -> dict[str, str]:
    pairs = [word for word in args.precision_constraints or [] if ":" in word]
    return _pairs([*_names(args.layer_precisions), *pairs], "--layer-precisions")


def _dtypes(args: Namespace) -> dict[str, str]:
    every = {} if args.all_tensor_dtypes is None else {"": args.all_tensor_dtypes}
    return every | _pairs(_names(args.tensor_dtypes), "--tensor-dtypes")


def _formats(args: Namespace) -> dict[str, list[str]]:
    pairs = _pairs(_names(args.tensor_formats), "--tensor-formats")
    found = {name: text.strip("[]").split(",") for name, text in pairs.items()}
    every = args.all_tensor_formats
    return found if every is None else {"": _names(every), **found}


def _onnx_flags(args: Namespace) -> list[str]:
    dla = ["ENABLE_UINT8_AND_ASYMMETRIC_QUANTIZATION_DLA"] if args.enable_uint8_asymmetric_quantization_dla else []
    return _names(args.onnx_flags) + dla


def _pools(args: Namespace) -> dict[str, int]:
    found = {pool: parse_size(size) for pool, size in _pairs(_names(args.pool_limit), "--pool-limit").items()}
    return found if args.workspace is None else found | {"workspace": parse_size(args.workspace)}


def _pool_words(options: TrtOptions) -> list[str]:
    limits = {name: _size_word(size) for name, size in options.config.pool_limits.items()}
    workspace = limits.pop("workspace", None)
    return [*many_words("--pool-limit", _pair_words(limits)), *(["--workspace", workspace] if workspace else [])]


def _size_word(size: int) -> str:
    whole = (f"{size // unit}{suffix}" for unit, suffix in _SIZES if size and not size % unit)
    return next(whole, str(size))


def _function(args: Namespace) -> str | None:
    """The function of a network script: after the path, by --trt-network-func, or load_network."""
    path, name = values.parse_script(args.model_file or "", args.trt_network_func or "load_network")
    return name if path.endswith(".py") or args.model_type == "trt-network-script" else None


def _reuse(args: Namespace) -> bool:
    if args.reuse_engine and args.fresh_engine:
        raise UsageError("--reuse-engine and --fresh-engine exclude each other")
    return bool(args.reuse_engine)


def _cache_file(args: Namespace) -> str | None:
    """--timing-cache is written, and read where it is there."""
    there = args.timing_cache is not None and Path(args.timing_cache).is_file()
    return args.load_timing_cache or (args.timing_cache if there else None)


def _joint(
    option: Option, field: str, read: Callable[[Namespace], Any], show: Callable[[Any], Any] = list,
    script: str = WRITTEN,
) -> Joint:  # fmt: skip
    """An option whose field others change too. show: from the field's value to words."""

    def write(options: TrtOptions) -> list[str]:
        value = at(options, field)
        shown = [] if value is None else show(value)
        name = option.flags[0]
        return glued(name, shown) if isinstance(shown, str) else many_words(name, shown)

    return Joint(field, option, read=read, write=write, script=script)


TRT = Group(
    "TensorRT",
    *(_config(name) for name in (
        "fp16", "bf16", "fp8", "int8", "sparse_weights", "version_compatible", "exclude_lean_runtime",
        "error_on_timing_cache_miss", "disable_compilation_cache",
    )),
    flag("--trt-safety-restricted", field="config.safety_restricted", script="CreateConfig.restricted"),
    *(_config(name) for name in (
        "refittable", "strip_plan", "use_dla", "allow_gpu_fallback", "weight_streaming", "direct_io",
    )),
    flag("--plugin-instancenorm", field="network.plugin_instancenorm", script=WRITTEN),
    flag("--enable-uint8-asymmetric-quantization-dla"),
    flag("--decomposable-attentions", field="network.decomposable_attentions", script=WRITTEN),
    flag("--strongly-typed", field="network.strongly_typed", script=WRITTEN),
    flag("--mark-unfused-tensors-as-debug-tensors", field="network.mark_unfused", script=WRITTEN),
    _value("--calibration-cache", field="config.calibration_cache"),
    _value("--calib-base-cls", "--calibration-base-class", field="config.calibrator"),
    _value("--quantile", field="config.quantile", parse=_number("--quantile")),
    _value("--regression-cutoff", field="config.regression_cutoff", parse=_number("--regression-cutoff")),
    _joint(_value("--load-timing-cache"), "load_timing_cache", _cache_file, str),
    _value("--save-tactics", "--save-tactic-replay", field="save_tactics"),
    _value("--load-tactics", "--load-tactic-replay", field="load_tactics"),
    _value("--trt-config-script", field="config.config_script"),
    _value("--trt-config-postprocess-script", "--trt-cpps", field="config.config_postprocess"),
    _value("--builder-optimization-level", field="config.optimization_level",
           parse=_whole("--builder-optimization-level"), script="CreateConfig.builder_optimization_level"),
    _value("--hardware-compatibility-level", field="config.hardware_compatibility",
           script="CreateConfig.hardware_compatibility_level"),
    _config("max_aux_streams", _value, parse=_whole("--max-aux-streams")),
    _config("profiling_verbosity", _value),
    _config("runtime_platform", _value),
    _value("--tiling-optimization-level", field="config.tiling", script="CreateConfig.tiling_optimization_level"),
    _value("--all-tensor-dtypes", "--all-tensor-datatypes"),
    _value("--save-engine", field="save_engine"),
    _joint(_value("--save-timing-cache"), "save_timing_cache",
           lambda args: args.save_timing_cache or args.timing_cache, str),
    _value("--load-runtime", field="run.runtime"),
    _value("--dla-workspace-allocation-strategy", field="run.dla_workspace"),
    _value("--optimization-profile", field="run.profile", parse=_whole("--optimization-profile"),
           script="TrtRunner.optimization_profile"),
    _value("--weight-streaming-budget", field="run.budget", parse=values.parse_budget),
    _config("tactic_sources", _list),
    Joint("config.pool_limits", _list("--pool-limit", "--memory-pool-limit"), read=_pools, write=_pool_words,
          script="CreateConfig.memory_pool_limits"),
    _config("preview_features", _list),
    _config("quantization_flags", _list),
    _list("--plugins", field="network.plugins"),
    _joint(_list("--onnx-flags"), "network.onnx_flags", _onnx_flags),
    _list("--trt-outputs", field="network.outputs", parse=_outputs),
    _list("--trt-exclude-outputs", field="network.exclude_outputs"),
    _list("--trt-outputs-by-type", field="network.output_types"),
    _joint(_list("--layer-precisions"), "network.layer_precisions", _layer_precisions, _pair_words),
    _joint(_list("--tensor-dtypes", "--tensor-datatypes"), "network.tensor_dtypes", _dtypes, _pair_words),
    _joint(_list("--tensor-formats"), "network.tensor_formats", _formats,
           lambda found: [f"{name}:[{','.join(many)}]" for name, many in found.items()]),
    _list("--all-tensor-formats"),
    _list("--trt-network-postprocess-script", "--trt-npps", field="network.postprocess"),
    _list("--mark-debug", field="network.mark_debug"),
    Joint("profiles", *(_list(f"--trt-{part}-shapes") for part in ("min", "opt", "max")),
          read=_profiles, write=_profile_words),
    _joint(Option("--precision-constraints", action="append", metavar="{prefer,obey,none}"),
           "config.precision_constraints", _constraints, str, "CreateConfig.precision_constraints"),
    Option("--allocation-strategy", field="run.strategy", choices=("static", "profile", "runtime"),
           script="TrtRunner.allocation_strategy"),
    flag("--fp32", own=True, help="no reduced precision (the default)"),
    _value("--workspace", own=True),
    _value("--timing-cache", own=True),
    _joint(_value("--trt-network-func", own=True), "network.function", _function, str),
    _config("engine_capability", _value, own=True),
    Option("--exclude-tactics", own=True, field="exclude_tactics", metavar="FILE",
           help="tactics of this file are not used (--save-tactics)"),
    flag("--fresh-engine", own=True, field="fresh", script=WRITTEN,
         help="build anew, whatever the workspace has kept"),
    Joint("reuse", flag("--reuse-engine", own=True,
          help="take the engine that the workspace has kept although a script, plugin or calibrator took part in it"),
          read=_reuse, write=lambda options: ["--reuse-engine"] if options.reuse else [], script=WRITTEN),
    flag("--trt-cuda-graph", own=True, field="run.cuda_graph", help="launch each run as a CUDA graph"),
    Option("--trt-contexts", own=True, field="run.contexts", type=positive, default=1, metavar="N",
           help="so many contexts run each feed at once, on their own streams; all must give the same"),
    Joint("config.tf32", read=lambda args: bool(args.tf32), script="CreateConfig.tf32",
          write=lambda options: ["--tf32"] if options.config.tf32 else []),
    Joint("config.calibration", read=_calibration, write=lambda options: []),
    description="How engines are built and run (--trt, --trt-engine, convert).",
    plain=TrtOptions,
)  # fmt: skip

_TF_FLAGS = "--tftrt,--use-tftrt --dynamic-op --freeze-graph --allow-growth --xla"
_TF_VALUES = """--minimum-segment-size --ckpt --save-pb --save-tensorboard --gpu-memory-fraction --save-timeline
--opset"""
TENSORFLOW = Group(
    "TensorFlow",
    *(flag(*flags.split(",")) for flags in _TF_FLAGS.split()),
    *(Option(name, metavar="VALUE") for name in _TF_VALUES.split()),
    Option("--tf-outputs", nargs="+", metavar="NAME"),
    description="Accepted; models must be converted with tf2onnx.",
)
