"""The `layerwise run …` line that is equivalent to a CompareSpec: the app shows and yanks it, job cards print it."""

import json
from collections.abc import Iterable
from typing import Any

import msgspec

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.specs import FeedSpec, ModelOptions, RunnerSpec
from layerwise._tool.backends.trt.options import trt_options
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec, ToleranceSpec
from layerwise._tool.tui.cli import values
from layerwise._tool.tui.cli.request.line_trt import option_words, runner_words
from layerwise._tool.tui.cli.request.to_runners import parse_runner

_LEVEL_NAMES = {
    "disable": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "layout": "layout",
    "all": "ORT_ENABLE_ALL",
}
_FLAG_OF_KIND = {"onnxrt": "--onnxrt", "reference": "--onnx", "pluginref": "--pluginref", "trt": "--trt"}
_SHARED = (
    "providers",
    "provider_options",
    "tf32",
    "graph_optimization_level",
    "threads",
    "inter_threads",
    "custom_ops",
)


def command_line(spec: CompareSpec) -> list[str]:
    """The argv (command name first, unquoted) whose `run` gives `spec` again."""
    flagged = _trt_flags(spec.runners)
    if flagged:
        line = _line(spec, flagged)
        if _runners_of(line) == spec.runners:
            return line
    return _line(spec, _runners(spec.runners))


def _trt_flags(runners: list[RunnerSpec]) -> list[str]:
    """The runners as flags, TensorRT's options among them; none where two engines differ, or there is none."""
    if not any(runner.kind == "trt" and runner.options for runner in runners):
        return []
    try:
        first, *others = [trt_options(runner.options) for runner in runners if runner.kind == "trt"]
    except UsageError:
        return []
    plain = [msgspec.structs.replace(runner, options={}) if runner.kind == "trt" else runner for runner in runners]
    words = _runners(plain)
    if "--runner" in words or any(other != first for other in others):
        return []
    named = [part for word in words for part in (runner_words(first) if word == "--trt" else [word])]
    return [*named, *option_words(first)]


def _runners_of(line: list[str]) -> list[RunnerSpec] | None:
    """The runners that `run` makes of a line; None where it refuses it."""
    from layerwise._tool.tui.cli.request.parser import parser
    from layerwise._tool.tui.cli.request.to_spec import to_request

    try:
        return to_request(parser().parse_args(line[2:]), converts=True).spec.runners
    except UsageError:
        return None


def _line(spec: CompareSpec, runners: list[str]) -> list[str]:
    model = spec.model
    first = [model] if model and not model.startswith("-") else []
    last = ["--", model] if model and model.startswith("-") else []
    return [
        "layerwise",
        "run",
        *first,
        *runners,
        *_many("--rename", values.format_names_map(spec.rename) if spec.rename else []),
        *_model(spec.model_options),
        *_marks(spec.marks),
        *_option("--observe", spec.observe, "auto"),
        *_feeds(spec.feeds),
        *_comparison(spec),
        *_tolerance(spec.tolerance),
        *_outputs(spec),
        *last,
    ]


def _comparison(spec: CompareSpec) -> list[str]:
    marked = bool(spec.marks.everything or spec.marks.names or spec.marks.op_types)
    statistics = (
        {}
        if spec.statistics is not marked
        else {"--statistics": spec.statistics, "--no-statistics": not spec.statistics}
    )
    return [
        *(_many("--compare", spec.metrics) if spec.metrics != ["simple"] else []),
        *_flags(
            {
                "--validate": spec.validate,
                "--fail-fast": spec.fail_fast,
                "--no-shape-check": not spec.shape_check,
                "--check-average": spec.check_average,
                "--sequential-runners": spec.sequential,
                **statistics,
            }
        ),
        *_many("--postprocess", values.format_map(spec.postprocess, str)),
        *_option("--postprocess-func-script", spec.postprocess_script),
        *_option("--compare-func-script", spec.compare_script),
        *_option("--memory-budget", spec.memory_budget),
        *_option("--warm-up", spec.warm_up, 0),
    ]


def _outputs(spec: CompareSpec) -> list[str]:
    paths = {
        "--save-inputs": spec.save_inputs,
        "--save-input-blob": spec.save_input_blob,
        "--save-outputs": spec.save_outputs,
        "--save-accuracy-results": spec.save_accuracy,
        "--save-heatmaps": spec.save_heatmaps,
        "--save-error-metrics-plot": spec.save_error_plots,
    }
    return [word for option, path in paths.items() for word in _option(option, path)]


def _runners(runners: list[RunnerSpec]) -> list[str]:
    reference = _reference_model(runners)
    plain = runners if reference is None else [*runners[:-1], msgspec.structs.replace(runners[-1], model=None)]
    if reference is not None and plain[0] == plain[-1]:
        plain = plain[:1]
    shared = _shared_options(plain)
    if shared is None or not _saved_last(plain):
        return [word for runner in runners for word in ("--runner", runner_word(runner))]
    files = [str(runner.results) for runner in plain if runner.kind == "saved"]
    return [
        *(_FLAG_OF_KIND[runner.kind] for runner in plain if runner.kind != "saved"),
        *_option("--reference-model", reference),
        *_engine_options(shared),
        *_many("--load-outputs", files),
    ]


def _reference_model(runners: list[RunnerSpec]) -> str | None:
    if len(runners) != 2 or runners[0].model is not None or runners[1].kind not in _FLAG_OF_KIND:
        return None
    return runners[1].model


def _shared_options(runners: list[RunnerSpec]) -> RunnerSpec | None:
    """A runner that carries the engine options all of them share, or None where plain flags cannot say it."""
    carriers = [runner for runner in runners if runner.kind == "onnxrt"] or [RunnerSpec(kind="onnxrt")]
    if not carriers[0].custom_ops:
        with_ops = [runner for runner in runners if runner.kind == "reference" and runner.custom_ops]
        carriers = (
            carriers if not with_ops else [msgspec.structs.replace(carriers[0], custom_ops=with_ops[0].custom_ops)]
        )
    return carriers[0] if all(_as_flag(runner, carriers[0]) == runner for runner in runners) else None


def _as_flag(runner: RunnerSpec, shared: RunnerSpec) -> RunnerSpec | None:
    """What the plain flag of this runner would be parsed as."""
    if runner.kind == "onnxrt":
        return RunnerSpec(kind="onnxrt", **{name: getattr(shared, name) for name in _SHARED})
    if runner.kind == "reference":
        return RunnerSpec(kind="reference", custom_ops=shared.custom_ops)
    if runner.kind == "saved" and runner.results is not None:
        return RunnerSpec(kind="saved", results=runner.results, results_index=-1)
    return RunnerSpec(kind=runner.kind) if runner.kind in ("pluginref", "trt") else None


def _saved_last(runners: list[RunnerSpec]) -> bool:
    kinds = [runner.kind == "saved" for runner in runners]
    return kinds == sorted(kinds)


def runner_word(runner: RunnerSpec) -> str:
    """What follows `--runner`: `onnxrt,providers=cuda,tf32=false` where that says it all, else JSON."""
    fields = msgspec.to_builtins(runner)
    kind = fields.pop("kind")
    short = ",".join([kind, *(f"{name.replace('_', '-')}={_short(value)}" for name, value in fields.items())])
    try:
        if parse_runner(short) == runner:
            return short
    except UsageError:
        pass
    return json.dumps(msgspec.to_builtins(runner), ensure_ascii=False)


def _short(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "+".join(map(str, value)) if isinstance(value, list) else str(value)


def _engine_options(shared: RunnerSpec) -> list[str]:
    level = shared.graph_optimization_level
    return [
        *_many("--providers", shared.providers),
        *_many("--provider-options", values.format_provider_options(shared.provider_options)),
        *_option("--graph-optimization-level", _LEVEL_NAMES[level] if level else None),
        *_option("--threads", shared.threads),
        *_option("--inter-threads", shared.inter_threads),
        *_many("--custom-ops", shared.custom_ops),
        *_flags({"--tf32": shared.tf32 is True, "--no-tf32": shared.tf32 is False}),
    ]


def _model(options: ModelOptions) -> list[str]:
    return [
        *_option("--external-data-dir", options.external_data_dir),
        *_flags(
            {
                "--ignore-external-data": options.ignore_external_data,
                "--fp-to-fp16": options.fp16,
                "--skip-shape-inference": not options.shape_inference,
            }
        ),
        *_option("--save-onnx", options.save_onnx),
        *_option("--save-external-data", options.save_external_data),
        *_option("--external-data-size-threshold", options.external_data_size_threshold),
    ]


def _marks(marks: MarkSpec) -> list[str]:
    names, types = ("--onnx-outputs", "--onnx-outputs-by-type") if marks.only else ("--mark", "--mark-type")
    return [
        *_flags({"--mark-all": marks.everything}),
        *_many(names, marks.names),
        *_many(types, marks.op_types),
        *_many("--exclude-outputs", marks.exclude),
    ]


def _feeds(feeds: FeedSpec) -> list[str]:
    script = values.format_script(feeds.script, feeds.function, "load_data") if feeds.script else None
    return [
        *_option("--seed", feeds.seed, 1),
        *_many("--val-range", values.format_ranges(feeds.val_range)),
        *_many("--input-shapes", values.format_shapes(feeds.shapes)),
        *_option("--iterations", feeds.iterations),
        *_many("--load-inputs", feeds.files),
        *_option("--data-loader-script", script),
        *_option("--data-loader-backend-module", feeds.backend_module, "numpy"),
    ]


def _tolerance(rules: ToleranceSpec) -> list[str]:
    maps: dict[str, dict[str, Any]] = {
        "--atol": rules.atol,
        "--rtol": rules.rtol,
        "--error-quantile": rules.quantile,
        "--index-tolerance": rules.index_tolerance,
        "--l2-threshold": rules.l2,
        "--cosine-similarity-threshold": rules.cosine,
        "--psnr-threshold": rules.psnr,
        "--snr-threshold": rules.snr,
        "--lpips-threshold": rules.lpips,
    }
    return [
        *_flags({"--infinities-compare-equal": rules.infinities_compare_equal}),
        *(_option("--tolerance", "auto") if rules.auto else []),
        *_many("--check-error-stat", values.format_map(rules.stat, str)),
        *(word for option, rule in maps.items() for word in _many(option, values.format_map(rule))),
    ]


def _flags(flags: dict[str, bool]) -> list[str]:
    return [flag for flag, on in flags.items() if on]


def _option(option: str, value: object, default: object = None) -> list[str]:
    if value is None or value == default:
        return []
    text = str(value)
    return [f"{option}={text}"] if text.startswith("-") else [option, text]


def _many(option: str, items: Iterable[str]) -> list[str]:
    """One option with all its values; values of which one looks like an option are each glued to their own."""
    words = list(items)
    if any(word.startswith("-") for word in words):
        return [f"{option}={word}" for word in words]
    return [option, *words] if words else []
