"""TensorRT's options as the flags of a command line: what `to_trt` reads, written."""

from collections.abc import Iterable, Iterator

from layerwise._tool.backends.trt.options import (
    ConfigOptions,
    NetworkOptions,
    ProfileSpec,
    RunOptions,
    Shapes,
    TrtOptions,
)
from layerwise._tool.tui.cli import values
from layerwise._tool.tui.cli.request.to_trt import RENAMED, SAME

_SIZES = ((1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K"))


def runner_words(options: TrtOptions) -> list[str]:
    """What names the runner: `--trt`, or `--trt-engine` with its file."""
    return ["--trt"] if options.engine is None else ["--trt-engine", options.engine]


def option_words(options: TrtOptions) -> list[str]:
    """The flags of these options. What no flag says is left out."""
    own: dict[str, object] = {
        "--save-engine": options.save_engine, "--load-timing-cache": options.load_timing_cache,
        "--save-timing-cache": options.save_timing_cache, "--save-tactics": options.save_tactics,
        "--load-tactics": options.load_tactics, "--exclude-tactics": options.exclude_tactics,
    }  # fmt: skip
    return [
        *_profiles(options.profiles), *_config(options.config), *_network(options.network), *_run(options.run),
        *_values(own), *_flags({"--fresh-engine": options.fresh}),
    ]  # fmt: skip


def _profiles(profiles: list[ProfileSpec]) -> Iterator[str]:
    for profile in profiles:
        for part in ("min", "opt", "max"):
            shapes: Shapes = getattr(profile, part)
            yield from _many(f"--trt-{part}-shapes", values.format_shapes({name: [s] for name, s in shapes.items()}))


def _config(config: ConfigOptions) -> Iterator[str]:
    yield from _flags({_flag(name): getattr(config, name) for name in SAME})
    renamed = {_flag(theirs): getattr(config, ours) for ours, theirs in RENAMED.items()}
    yield from _flags({flag: value for flag, value in renamed.items() if value is True})
    yield from _values({flag: value for flag, value in renamed.items() if value not in (True, False)})
    alike = ("calibration_cache", "quantile", "regression_cutoff", "precision_constraints", "engine_capability",
             "max_aux_streams")  # fmt: skip
    yield from _values({_flag(name): getattr(config, name) for name in alike})
    yield from _values({"--builder-optimization-level": config.optimization_level})
    pools = [f"{name}:{_size(size)}" for name, size in config.pool_limits.items() if name != "workspace"]
    yield from _many("--pool-limit", pools)
    if "workspace" in config.pool_limits:
        yield from ("--workspace", _size(config.pool_limits["workspace"]))
    for name in ("tactic_sources", "preview_features", "quantization_flags"):
        found = getattr(config, name)
        if found is not None:
            yield from (_flag(name), *found)


def _network(network: NetworkOptions) -> Iterator[str]:
    alike = ("strongly_typed", "plugin_instancenorm", "decomposable_attentions")
    yield from _flags({_flag(name): getattr(network, name) for name in alike})
    yield from _flags({"--mark-unfused-tensors-as-debug-tensors": network.mark_unfused})
    for flag, found in {
        "--onnx-flags": network.onnx_flags, "--plugins": network.plugins, "--trt-outputs": network.outputs,
        "--trt-exclude-outputs": network.exclude_outputs, "--trt-outputs-by-type": network.output_types,
        "--mark-debug": network.mark_debug, "--trt-network-postprocess-script": network.postprocess,
        "--layer-precisions": _pairs(network.layer_precisions), "--tensor-dtypes": _pairs(network.tensor_dtypes),
        "--tensor-formats": [f"{name}:[{','.join(many)}]" for name, many in network.tensor_formats.items()],
    }.items():  # fmt: skip
        yield from _many(flag, found)
    yield from _values({"--trt-network-func": network.function})


def _run(run: RunOptions) -> Iterator[str]:
    yield from _values({
        "--optimization-profile": run.profile or None, "--weight-streaming-budget": run.budget,
        "--allocation-strategy": run.strategy if run.strategy != "static" else None, "--load-runtime": run.runtime,
        "--dla-workspace-allocation-strategy": run.dla_workspace,
        "--trt-contexts": run.contexts if run.contexts != 1 else None,
    })  # fmt: skip
    yield from _flags({"--trt-cuda-graph": run.cuda_graph})


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _flags(found: dict[str, bool]) -> Iterator[str]:
    return (flag for flag, on in found.items() if on)


def _values(found: dict[str, object]) -> Iterator[str]:
    for flag, value in found.items():
        if value is not None:
            yield from (flag, str(value))


def _many(flag: str, found: Iterable[str]) -> list[str]:
    words = list(found)
    return [flag, *words] if words else []


def _pairs(found: dict[str, str]) -> list[str]:
    return [f"{name}:{value}" for name, value in found.items()]


def _size(size: int) -> str:
    whole = ((f"{size // unit}{suffix}") for unit, suffix in _SIZES if size and not size % unit)
    return next(whole, str(size))
