"""Runners: from parsed options to RunnerSpecs, and back to the words of a command line."""

import json
from argparse import Namespace
from typing import Any, get_args, get_type_hints

import msgspec

from layerwise._tool.backends.dumps.rule import parse_rule, rule_words
from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.specs import RunnerKind, RunnerSpec
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.torch.options import TorchOptions, kind_of, torch_options
from layerwise._tool.backends.torch.options import to_dict as torch_dict
from layerwise._tool.backends.trt.options import NetworkOptions, TrtOptions, to_dict
from layerwise._tool.backends.trt.options import trt_options as options_of_runner
from layerwise._tool.backends.wording import in_words
from layerwise._tool.tui.cli import values
from layerwise._tool.tui.cli.options.option import filled, glued, line, many_words, read
from layerwise._tool.tui.cli.options.run import ONNXRT, optimization_level
from layerwise._tool.tui.cli.options.torch import TORCH
from layerwise._tool.tui.cli.options.trt import LINE, PRECISIONS, TRT
from layerwise._tool.tui.cli.request.parser import completed

_PLAIN = RunnerSpec(kind="onnxrt")
_FLAG_OF_KIND = {"onnxrt": "--onnxrt", "reference": "--onnx", "pluginref": "--pluginref", "trt": "--trt"}


def make_runners(args: Namespace) -> list[RunnerSpec]:
    """RunnerSpecs in the order typed, those of --load-outputs after them, the one of --reference-model last."""
    runners = [_runner(kind, given, args) for kind, given in args.runners]
    rule = parse_rule(args.dump_rule)
    if rule is not None and not args.load_outputs:
        raise UsageError("--dump-rule says how dumps are read: name one with --load-outputs")
    runners += [RunnerSpec(kind="saved", results=path, results_index=-1, dump=rule) for path in args.load_outputs]
    return _with_reference(runners, args.reference_model)


def trt_options(args: Namespace) -> TrtOptions:
    """TensorRT's options among parsed ones. UsageError for what is none."""
    args = completed(args)
    if args.fp32 and any(getattr(args, name.removeprefix("--")) for name in PRECISIONS):
        raise UsageError("--fp32 means no reduced precision: leave out --fp16, --bf16, --int8 and --fp8")
    return filled(TrtOptions(), read((TRT,), args))


def _runner(kind: str, given: list[str] | None, args: Namespace) -> RunnerSpec:
    if kind == "json" and given:
        return parse_runner(given[0])
    if kind == "reference":
        return RunnerSpec(kind="reference", custom_ops=args.custom_ops)
    if kind == "pluginref":
        return RunnerSpec(kind="pluginref")
    if kind == "trt":
        return _trt_runner(args, given[0] if given else None)
    if kind == "torch" and given:
        kind_of(given[0])
        return RunnerSpec(
            kind="torch", model=given[0], options=torch_dict(filled(TorchOptions(), read((TORCH,), args)))
        )
    return filled(_PLAIN, read((ONNXRT,), args))


def _with_sizes(options: TrtOptions, args: Namespace) -> TrtOptions:
    """What --input-shapes say of inputs that the profiles leave out is their range."""
    if not options.profiles:
        return options
    shapes = values.parse_shapes(args.input_shapes)
    return msgspec.structs.replace(
        options, shapes={name: many[0] for name, many in shapes.items() if len(many) == 1} | options.shapes
    )


def _trt_runner(args: Namespace, engine: str | None) -> RunnerSpec:
    """The runner of `--trt`, or of `--trt-engine ENGINE`."""
    options = _with_sizes(trt_options(args), args)
    if engine is not None:
        plugins = NetworkOptions(plugins=options.network.plugins)
        options = TrtOptions(engine=engine, run=options.run, network=plugins)
    return RunnerSpec(kind="trt", options=to_dict(options))


def _with_reference(runners: list[RunnerSpec], reference: str | None) -> list[RunnerSpec]:
    if reference is None:
        return runners
    if runners and runners[-1].kind == "torch":
        raise UsageError(
            "--reference-model is a model for the last runner; --torch has its own: put it before the others"
        )
    if not runners or runners[-1].kind == "saved" or len(runners) > 2:
        raise UsageError(
            "--reference-model needs one runner, which then runs both models (--onnxrt, say), or two: the second runs "
            "the reference."
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
        raise UsageError(f"--runner {shown(text, 120)}: {in_words(error, 200)} (kinds: {kinds})") from None


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


def runner_words(runners: list[RunnerSpec]) -> list[str]:
    """The runners as flags with the options they share, each spelt out by --runner where that cannot say it."""
    reference = _reference_model(runners)
    plain = runners if reference is None else [*runners[:-1], msgspec.structs.replace(runners[-1], model=None)]
    if reference is not None and plain[0] == plain[-1]:
        plain = plain[:1]
    shared = _shared_options(plain)
    if shared is None or not _saved_last(plain):
        return [word for runner in runners for word in ("--runner", runner_word(runner))]
    saved = [runner for runner in plain if runner.kind == "saved"]
    files = [str(runner.results) for runner in saved]
    rules = [runner.dump for runner in saved]
    if any(rule != rules[0] or parse_rule(rule_words(rule)) != rule for rule in rules):
        return [word for runner in runners for word in ("--runner", runner_word(runner))]
    return [
        *(word for runner in plain if runner.kind != "saved" for word in _flag_words(runner)),
        *([] if reference is None else glued("--reference-model", reference)),
        *line((ONNXRT,), shared),
        *next((line((TORCH,), torch_options(runner.options)) for runner in plain if runner.kind == "torch"), []),
        *many_words("--load-outputs", files),
        *many_words("--dump-rule", rule_words(rules[0] if rules else None)),
    ]


def _flag_words(runner: RunnerSpec) -> list[str]:
    return glued("--torch", runner.model or "") if runner.kind == "torch" else [_FLAG_OF_KIND[runner.kind]]


def trt_words(runners: list[RunnerSpec]) -> list[str]:
    """The runners as flags, TensorRT's options among them; none where two engines differ, or there is none."""
    if not any(runner.kind == "trt" and runner.options for runner in runners):
        return []
    try:
        first, *others = [options_of_runner(runner.options) for runner in runners if runner.kind == "trt"]
    except UsageError:
        return []
    plain = [msgspec.structs.replace(runner, options={}) if runner.kind == "trt" else runner for runner in runners]
    words = runner_words(plain)
    if "--runner" in words or any(other != first for other in others):
        return []
    named = ["--trt"] if first.engine is None else ["--trt-engine", first.engine]
    flags = [part for word in words for part in (named if word == "--trt" else [word])]
    return [*flags, *line((TRT,), first, LINE)]


def _reference_model(runners: list[RunnerSpec]) -> str | None:
    if len(runners) != 2 or runners[0].model is not None or runners[1].kind not in _FLAG_OF_KIND:
        return None
    return runners[1].model


def _shared_options(runners: list[RunnerSpec]) -> RunnerSpec | None:
    """A runner that carries the engine options all of them share, or None where plain flags cannot say it."""
    carriers = [runner for runner in runners if runner.kind == "onnxrt"] or [_PLAIN]
    if not carriers[0].custom_ops:
        with_ops = [runner for runner in runners if runner.kind == "reference" and runner.custom_ops]
        carriers = (
            carriers if not with_ops else [msgspec.structs.replace(carriers[0], custom_ops=with_ops[0].custom_ops)]
        )
    modules = [runner.options for runner in runners if runner.kind == "torch"]
    if any(options != modules[0] for options in modules):
        return None
    return carriers[0] if all(_as_flag(runner, carriers[0]) == runner for runner in runners) else None


def _as_flag(runner: RunnerSpec, shared: RunnerSpec) -> RunnerSpec | None:
    """What the plain flag of this runner would be parsed as."""
    if runner.kind == "onnxrt":
        return filled(_PLAIN, {item.field: getattr(shared, item.field) for item in ONNXRT.items})
    if runner.kind == "reference":
        return RunnerSpec(kind="reference", custom_ops=shared.custom_ops)
    if runner.kind == "saved" and runner.results is not None:
        return RunnerSpec(kind="saved", results=runner.results, results_index=-1, dump=runner.dump)
    if runner.kind == "torch" and runner.model:
        options = _as_written(runner.options)
        return None if options is None else RunnerSpec(kind="torch", model=runner.model, options=options)
    return RunnerSpec(kind=runner.kind) if runner.kind in ("pluginref", "trt") else None


def _as_written(options: dict[str, Any]) -> dict[str, Any] | None:
    """A module's options as flags give them; None where they are none."""
    try:
        return torch_dict(torch_options(options))
    except UsageError:
        return None


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
