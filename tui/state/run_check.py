"""From the Run form's text to the comparison that it means, or to what is wrong with which field."""

from argparse import ArgumentTypeError
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, get_args

import msgspec

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.specs import MOST_SEED, FeedSpec, RunnerSpec
from layerwise._tool.backends.tensors import TensorInfo
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec, MetricName
from layerwise._tool.tui.cli import values
from layerwise._tool.tui.cli.options.option import Option, filled
from layerwise._tool.tui.state.run_fields import choices, declared
from layerwise._tool.tui.state.run_form import RunForm
from layerwise._tool.tui.state.run_inputs import PREFIX, Pin, parse_pin, with_pins
from layerwise._tool.tui.state.run_reader import Reader, count, file_path, module, trt_runner, whole, words
from layerwise._tool.tui.state.session import NO_MODEL


class Checked(msgspec.Struct):
    """What a form means: the comparison, or what is wrong with which field (key "" for the whole).

    feeds: what is given for the inputs, where none of that is wrong.
    """

    spec: CompareSpec | None
    problems: dict[str, str]
    feeds: FeedSpec | None = None


def check(form: RunForm, model: Path | None, marks: list[str], inputs: Sequence[TensorInfo] = ()) -> Checked:
    """Check every field. `model`: the open model; `inputs`: its own; `marks`: tensors marked in Graph."""
    reader = Reader(form)
    options = [option for section in ("feeds", "marks", "compare") for option in declared(form, section)]
    found = {option.field: _given(reader, option) for option in options if option.field}
    found |= _script(reader) if form.source == "script" else {}
    found["tolerance.auto"] = form.tolerance == "by dtype"
    spec = filled(CompareSpec(strict_names=True), {field: value for field, value in found.items() if value is not None})
    if form.source == "synthetic":
        spec = filled(spec, {"feeds": with_pins(spec.feeds, _pins(reader, inputs), inputs)})
    runners = [_runner(reader, form, number, spec.feeds) for number in range(len(form.sides))]
    chosen = _marks(reader, form, marks)
    needs_model = any(side.kind != "saved" and not side.model for side in form.sides)
    if needs_model and model is None:
        reader.problems[""] = NO_MODEL
    if len(form.sides) < 2:
        reader.problems.setdefault("", "one side is a run, not a comparison: press a to add another")
    given = spec.feeds if reader.problems.keys().isdisjoint(_of_feeds(form, inputs)) else None
    if reader.problems:
        return Checked(None, reader.problems, given)
    whole = {"model": str(model) if model else None, "runners": runners, "marks": chosen}
    return Checked(filled(spec, whole), {}, given)


def _of_feeds(form: RunForm, inputs: Sequence[TensorInfo]) -> set[str]:
    """The fields on which the values of the inputs hang."""
    keys = {option.form.key for option in declared(form, "feeds") if option.form is not None}
    return keys - {"seed", "iterations"} | {PREFIX + info.name for info in inputs}


def _pins(reader: Reader, inputs: Sequence[TensorInfo]) -> dict[str, Pin]:
    """What is given for single inputs."""
    found = {info.name: reader.read(PREFIX + info.name, partial(parse_pin, info=info)) for info in inputs}
    return {name: pin for name, pin in found.items() if pin is not None}


def _given(reader: Reader, option: Option) -> Any:
    """The value of an option's field; None where the form says nothing, or something wrong, of it."""
    assert option.form is not None
    return reader.read(option.form.key, _OWN.get(option.form.key) or partial(_typed, option))


def _typed(option: Option, text: str) -> Any:
    if not text.strip() or text == next(iter(choices(option)), None):
        return None
    given: Any = option.on if option.on is not None else text if option.single else words(text)
    if "type" in option.settings:
        given = _converted(option.settings["type"], given)
    return given if option.parse is None else option.parse(given)


def _converted(kind: Callable[[str], Any], given: Any) -> Any:
    try:
        return kind(given) if isinstance(given, str) else [kind(word) for word in given]
    except ArgumentTypeError as error:
        raise UsageError(str(error)) from None


def _runner(reader: Reader, form: RunForm, number: int, feeds: FeedSpec) -> RunnerSpec:
    side, key = form.sides[number], f"side.{number}"
    if side.kind == "saved":
        return RunnerSpec(kind="saved", results=reader.read(f"{key}.results", file_path))
    if side.kind == "torch":
        return RunnerSpec(kind="torch", model=reader.read(f"{key}.model", module))
    model = reader.read(f"{key}.model", lambda text: file_path(text) if text.strip() else None)
    if side.kind == "trt":
        return trt_runner(reader, number, side, model, feeds)
    if side.kind != "onnxrt":
        return RunnerSpec(kind=side.kind, model=model)  # type: ignore[arg-type]
    providers = [] if side.provider == "cpu" else side.provider.split()
    level = None if side.level == "default" else side.level
    tf32 = False if "cuda" in providers and side.tf32 == "off" else None
    return RunnerSpec(kind="onnxrt", model=model, providers=providers, graph_optimization_level=level, tf32=tf32)  # type: ignore[arg-type]


def _marks(reader: Reader, form: RunForm, marked: list[str]) -> MarkSpec:
    exclude = (reader.read("exclude", words) if form.marks != "outputs only" else None) or []
    if form.marks == "everything":
        return MarkSpec(everything=True, exclude=exclude)
    if form.marks == "op types":
        return MarkSpec(
            op_types=reader.read("op_types", _some("op types, as in: MatMul Softmax")) or [], exclude=exclude
        )
    if form.marks == "names":
        return MarkSpec(
            names=reader.read("names", _some("tensor names or globs, as in: *Softmax*")) or [],
            exclude=exclude,
        )
    if form.marks == "marked in Graph" and not marked:
        reader.problems["marks"] = "nothing is marked: press space on nodes of the Graph screen"
    return MarkSpec(names=sorted(marked) if form.marks == "marked in Graph" else [], exclude=exclude)


def _bounds(text: str) -> dict[str, float]:
    return values.parse_map(words(text), _bound, "a tolerance")


def _bound(text: str) -> float:
    value = values.bound(text)
    if value < 0:
        raise ValueError(text)
    return value


def _metrics(text: str) -> list[MetricName]:
    names = words(text.replace("+", " ").replace(",", " "))
    known = get_args(MetricName)
    wrong = [name for name in names if name not in known]
    if wrong or not names:
        raise UsageError(f"some of: {' '.join(known)}")
    return names  # type: ignore[return-value]


def _some(example: str) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        found = words(text.replace(",", " "))
        if not found:
            raise UsageError(example)
        return found

    return parse


def _files(text: str) -> list[str]:
    paths = words(text)
    if not paths:
        raise UsageError("files of feed dicts: .json, .safetensors, .npz")
    return [file_path(path) for path in paths]


def _script(reader: Reader) -> dict[str, str | None]:
    path, function = reader.read("script", _script_function) or (None, None)
    return {"feeds.script": path, "feeds.function": function}


def _script_function(text: str) -> tuple[str, str]:
    path, function = values.parse_script(text.strip(), "load_data")
    if not path.endswith(".py"):
        raise UsageError("a Python file with load_data(), or file.py:function")
    return file_path(path), function


def _seed(text: str) -> int:
    value = whole(text)
    if not 0 <= value <= MOST_SEED:
        raise UsageError(f"give 0 to {MOST_SEED}")
    return value


def _pairing(text: str) -> str | None:
    word = text.strip()
    return word or None if word in ("", "auto", "names") else file_path(word)


_OWN: dict[str, Callable[[str], Any]] = {
    "seed": _seed,
    "align": _pairing,
    "iterations": lambda text: count(text) if text.strip() else None,
    "files": _files,
    "metrics": _metrics,
    "atol": _bounds,
    "rtol": _bounds,
}
