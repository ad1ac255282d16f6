"""Runners in the order they were typed, saved outputs after them, the reference model last."""

import json
from argparse import Namespace
from typing import Any, get_args, get_type_hints

import msgspec

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.specs import OptimizationLevel, RunnerKind, RunnerSpec
from layerwise._tool.backends.text import shown
from layerwise._tool.tui.cli import values
from layerwise._tool.tui.cli.request.to_trt import trt_runner

_LEVELS: dict[str, OptimizationLevel] = {
    "ort_disable_all": "disable",
    "ort_enable_basic": "basic",
    "ort_enable_extended": "extended",
    "ort_enable_layout": "layout",
    "ort_enable_all": "all",
    "0": "disable",
    "1": "basic",
    "2": "extended",
    "3": "layout",
    "99": "all",
}


def make_runners(args: Namespace) -> list[RunnerSpec]:
    """RunnerSpecs for the runner flags, --load-outputs and --reference-model of parsed options."""
    runners = [_runner(kind, given, args) for kind, given in args.runners]
    runners += [RunnerSpec(kind="saved", results=path, results_index=-1) for path in args.load_outputs]
    return _with_reference(runners, args.reference_model)


def optimization_level(text: str) -> OptimizationLevel:
    """onnxruntime's level from its enum name, its number, or our word for it."""
    word = text.strip().lower().removeprefix("graphoptimizationlevel.")
    if word in get_args(OptimizationLevel):
        return word  # type: ignore[return-value]
    try:
        return _LEVELS[word]
    except KeyError:
        raise UsageError(
            f"--graph-optimization-level {shown(text, 40)}: choose ORT_DISABLE_ALL, ORT_ENABLE_BASIC, "
            "ORT_ENABLE_EXTENDED or ORT_ENABLE_ALL"
        ) from None


def _runner(kind: str, given: list[str] | None, args: Namespace) -> RunnerSpec:
    if kind == "json" and given:
        return parse_runner(given[0])
    if kind == "reference":
        return RunnerSpec(kind="reference", custom_ops=args.custom_ops)
    if kind == "pluginref":
        return RunnerSpec(kind="pluginref")
    if kind == "trt":
        return trt_runner(args, given[0] if given else None)
    return RunnerSpec(kind="onnxrt", **onnxrt_options(args))


def onnxrt_options(args: Namespace) -> dict[str, Any]:
    """The options that every `--onnxrt` of a command line shares."""
    level = args.graph_optimization_level
    return {
        "providers": args.providers,
        "provider_options": values.parse_provider_options(args.provider_options),
        "tf32": args.tf32,
        "graph_optimization_level": optimization_level(level) if level else None,
        "threads": args.threads,
        "inter_threads": args.inter_threads,
        "custom_ops": args.custom_ops,
    }


def _with_reference(runners: list[RunnerSpec], reference: str | None) -> list[RunnerSpec]:
    if reference is None:
        return runners
    if not runners or runners[-1].kind == "saved" or len(runners) > 2:
        raise UsageError(
            "--reference-model needs one runner, which then runs both models, or two: the second runs the reference."
        )
    last = msgspec.structs.replace(runners[-1], model=reference)
    return [*runners[:1], last]


def parse_runner(text: str) -> RunnerSpec:
    """A runner from JSON (`{"kind": "onnxrt", …}`) or `KIND,OPTION=VALUE,…` (lists joined by `+`)."""
    fields = _json_fields(text) if text.lstrip().startswith("{") else _short_fields(text)
    try:
        return msgspec.convert(fields, RunnerSpec)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        kinds = ", ".join(get_args(RunnerKind))
        raise UsageError(f"--runner {shown(text, 120)}: {shown(str(error), 200)} (kinds: {kinds})") from None


def _json_fields(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise UsageError(f"--runner {shown(text, 120)} is not JSON: {error}") from None


def _short_fields(text: str) -> dict[str, Any]:
    kind, *pairs = text.split(",")
    fields: dict[str, Any] = {"kind": {"onnx": "reference"}.get(kind, kind)}
    for pair in pairs:
        key, _, value = pair.partition("=")
        fields[key.replace("-", "_")] = _field_value(key.replace("-", "_"), value)
    return fields


def _field_value(key: str, value: str) -> Any:
    hint = str(get_type_hints(RunnerSpec).get(key, ""))
    if key == "graph_optimization_level":
        return optimization_level(value)
    if "list" in hint:
        return value.split("+")
    if "bool" in hint or "int" in hint:
        return _scalar(value)
    return value


def _scalar(value: str) -> Any:
    try:
        return json.loads(value.lower())
    except ValueError:
        return value
