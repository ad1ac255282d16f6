"""The Run form as plain text values, and ten ready comparisons to start from."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

import msgspec

from layerwise._tool.backends.settings import Tolerance
from layerwise._tool.backends.shell import shell_word
from layerwise._tool.backends.specs import OptimizationLevel, RunnerKind

PROVIDERS = ("cpu", "cuda", "tensorrt", "cuda cpu")
LEVELS = ("default", *get_args(OptimizationLevel))
KINDS = tuple(kind for kind in get_args(RunnerKind) if kind != "extension")
TF32 = ("on", "off")
PRECISIONS = ("fp32", "tf32", "fp16", "bf16", "int8", "fp16 int8")
BUILDER_LEVELS = ("default", "0", "1", "2", "3", "4", "5")
YES_NO = ("no", "yes")
SOURCES = ("synthetic", "files", "script")
MARKS = ("outputs only", "marked in Graph", "op types", "names", "everything")
TOLERANCES = ("by dtype", "fixed")


class SideForm(msgspec.Struct, omit_defaults=True):
    """One side of the comparison, as typed; from `precision` on: TensorRT's."""

    kind: str = "onnxrt"
    provider: str = "cpu"
    level: str = "default"
    model: str = ""
    results: str = ""
    tf32: str = "on"
    precision: str = "fp32"
    workspace: str = ""
    builder_level: str = "default"
    min_shapes: str = ""
    opt_shapes: str = ""
    max_shapes: str = ""
    profile: str = ""
    streaming: str = ""
    cuda_graph: str = "no"
    contexts: str = ""
    fresh: str = "no"
    engine: str = ""


class RunForm(msgspec.Struct, omit_defaults=True):
    """All values of the form, as typed, in its order. The last side is the reference. more: options of no name here."""

    preset: str = ""
    sides: list[SideForm] = msgspec.field(default_factory=lambda: [SideForm(), SideForm(level="disable")])
    source: str = "synthetic"
    made: str = "auto"
    seed: str = "1"
    val_range: str = ""
    shapes: str = ""
    iterations: str = ""
    files: str = ""
    script: str = ""
    marks: str = "everything"
    op_types: str = ""
    names: str = ""
    exclude: str = ""
    observe: str = "auto"
    tolerance: str = "by dtype"
    atol: str = "1e-5"
    rtol: str = "1e-5"
    stat: str = "elemwise"
    metrics: str = "simple"
    validate: str = "no"
    fail_fast: str = "no"
    memory: str = ""
    more: dict[str, str] = {}


def get(form: RunForm, key: str) -> str:
    """The text of a field: `seed`, or `side.0.kind`."""
    if key.startswith("side."):
        _, number, name = key.split(".")
        return str(getattr(form.sides[int(number)], name))
    return str(getattr(form, key)) if key in form.__struct_fields__ else form.more.get(key, "")


def put(form: RunForm, key: str, value: str) -> RunForm:
    """A copy of the form with one field changed; it is then no preset any more."""
    if key.startswith("side."):
        _, number, name = key.split(".")
        sides = list(form.sides)
        sides[int(number)] = msgspec.structs.replace(sides[int(number)], **{name: value})
        return msgspec.structs.replace(form, sides=sides, preset="")
    changed = {key: value} if key in form.__struct_fields__ else {"more": {**form.more, key: value}}
    return msgspec.structs.replace(form, **changed, preset="")


def add_side(form: RunForm) -> RunForm:
    """Another side, like the last."""
    last = msgspec.structs.replace(form.sides[-1])
    return msgspec.structs.replace(form, sides=[*form.sides, last], preset="")


def drop_side(form: RunForm, number: int) -> RunForm:
    """Without side `number`; one side always stays."""
    sides = [side for k, side in enumerate(form.sides) if k != number]
    return msgspec.structs.replace(form, sides=sides or form.sides, preset="")


def compared_text(form: RunForm, marks: int) -> str:
    """What a run of the form compares, in words; "" where it is what is marked. marks: how many tensors are."""
    if form.marks == "marked in Graph":
        return "" if marks else "R compares what is marked, so mark something first"
    chosen = {
        "everything": "R compares every tensor",
        "outputs only": "R compares the graph's outputs",
        "op types": f"R compares what {form.op_types or 'the op types of its form'} make",
        "names": f"R compares {form.names or 'the names of its form'}",
    }
    return chosen.get(form.marks, "")


def load_form(saved: Any) -> RunForm:
    """The form as a session kept it; a fresh one when that does not fit."""
    try:
        form = msgspec.convert(saved, RunForm)
    except msgspec.ValidationError:
        return RunForm()
    return form if form.sides else RunForm()


def first_form(tolerance: Tolerance) -> RunForm:
    """The form that a model begins with. tolerance: the user's own."""
    if tolerance.atol is None and tolerance.rtol is None:
        return RunForm(preset="layerwise")
    form = RunForm(tolerance="fixed")
    for name, value in msgspec.structs.asdict(tolerance).items():
        form = form if value is None else put(form, name, f"{value:g}")
    return form


def save_form(form: RunForm) -> dict[str, Any]:
    """The form as plain values, which the session keeps."""
    saved: dict[str, Any] = msgspec.to_builtins(form)
    return saved


@dataclass(frozen=True)
class Preset:
    """A start for the form. tensorrt: cannot run without it. batch: size of the first dynamic dimension."""

    name: str
    what: str
    tensorrt: bool = False
    sides: tuple[SideForm, ...] = (SideForm(), SideForm(level="disable"))
    values: dict[str, str] = field(default_factory=dict)
    batch: int = 0


Inputs = Sequence[tuple[str, Sequence[int | str | None] | None]]


def _trt(**options: str) -> tuple[SideForm, SideForm]:
    return SideForm(kind="trt", **options), SideForm()


PRESETS = (
    Preset("basic", "outputs only: optimised against unoptimised",
           values={"marks": "outputs only", "tolerance": "fixed"}),
    Preset("dynamic", "dynamic inputs get a size, three iterations", batch=2,
           values={"marks": "outputs only", "iterations": "3"}),
    Preset("INT8", "an INT8 engine against FP32", tensorrt=True, sides=_trt(precision="int8"),
           values={"tolerance": "fixed", "atol": "0.1", "rtol": "0.1"}),
    Preset("custom data", "your own inputs from a script's load_data()", values={"source": "script"}),
    Preset("layerwise", "every tensor, tolerance by dtype"),
    Preset("high optimisation", "an engine of builder level 5", tensorrt=True,
           sides=_trt(builder_level="5")),
    Preset("weight streaming", "an engine that streams weights", tensorrt=True, sides=_trt(streaming="50%")),
    Preset("debug script", "basic, to be written as a Python script (W)",
           values={"marks": "outputs only", "validate": "yes"}),
    Preset("batch", "a batch of 8 over ten iterations", batch=8,
           values={"marks": "outputs only", "iterations": "10"}),
    Preset("complex inputs", "shape and range of each input by name", batch=1,
           values={"made": "polygraphy", "marks": "outputs only", "val_range": "[-1,1]"}),
)  # fmt: skip


def preset(name: str) -> Preset:
    """A preset by its name. StopIteration if there is none."""
    return next(found for found in PRESETS if found.name == name)


def apply_preset(chosen: Preset, old: RunForm, inputs: Inputs) -> RunForm:
    """The preset's form; another model or saved outputs that the user had chosen for a side stay."""
    sides = []
    for number, side in enumerate(chosen.sides):
        kept = old.sides[number] if number < len(old.sides) else SideForm()
        sides.append(msgspec.structs.replace(side, model=kept.model, results=kept.results))
    values = dict(chosen.values)
    if chosen.batch:
        values["shapes"] = shapes_text(inputs, chosen.batch, everything=chosen.name == "complex inputs")
    if chosen.name == "complex inputs" and inputs:
        values["val_range"] = " ".join(f"{shell_word(name)}:[-1,1]" for name, _ in inputs)
    values.setdefault("script", old.script)
    return msgspec.structs.replace(RunForm(preset=chosen.name, sides=sides), **values)


def shapes_text(inputs: Inputs, size: int, everything: bool) -> str:
    """`name:[8,128]` for each input with dynamic dimensions (or for each): the first is `size`, others 1."""
    found = []
    for name, shape in inputs:
        if shape is None or not (everything or any(not isinstance(dim, int) for dim in shape)):
            continue
        dims = [dim if isinstance(dim, int) else (size if place == 0 else 1) for place, dim in enumerate(shape)]
        found.append(f"{shell_word(name)}:[{','.join(map(str, dims))}]")
    return " ".join(found)
