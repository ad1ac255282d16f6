"""Which fields the Run form shows, and what may stand in them."""

import importlib.util
from dataclasses import dataclass
from typing import get_args

from layerwise._tool.debugtools.compare.spec import Stat
from layerwise._tool.tui.state.presets import PRESETS
from layerwise._tool.tui.state.run_form import (
    BUILDER_LEVELS,
    KINDS,
    LEVELS,
    MARKS,
    OBSERVE,
    PRECISIONS,
    PROVIDERS,
    SOURCES,
    TF32,
    TOLERANCES,
    YES_NO,
    RunForm,
    SideForm,
    get,
    put,
)  # fmt: skip


@dataclass(frozen=True)
class Field:
    """One line of the form: a choice with options, typed without; `empty` says what no text means."""

    key: str
    section: str
    label: str
    options: tuple[str, ...] = ()
    empty: str = ""
    hint: str = ""


def fields(form: RunForm) -> list[Field]:
    """The fields that matter for what is chosen so far, in order."""
    found = [Field("preset", "preset", "", hint="enter lists them")]
    for number in range(len(form.sides)):
        found += _side(form, number)
    return [*found, *_feeds(form), *_marks(form), *_compare(form)]


def repaired(form: RunForm) -> RunForm:
    """A form whose choices are all among the options, as a file of another version may not have them."""
    if form.preset and form.preset not in {found.name for found in PRESETS}:
        form = put(form, "seed", form.seed)
    for _ in range(2):  # what one choice is decides which others there are
        for field in fields(form):
            if field.options and get(form, field.key) not in field.options:
                form = put(form, field.key, field.options[0])
    return form


def _side(form: RunForm, number: int) -> list[Field]:
    side, key = form.sides[number], f"side.{number}."
    last = number == len(form.sides) - 1 and number > 0
    hint = "the reference" if last else ""
    if side.kind == "trt" and importlib.util.find_spec("tensorrt") is None:
        hint = "install 'layerwise[trt]'"
    found = [Field(key + "kind", f"side {number + 1}", "backend", KINDS, hint=hint)]
    if side.kind == "saved":
        return [*found, Field(key + "results", "", "saved outputs", hint="a file of --save-outputs")]
    if side.kind == "onnxrt":
        found.append(Field(key + "provider", "", "provider", PROVIDERS))
        if "cuda" in side.provider:
            found.append(Field(key + "tf32", "", "TF32", TF32, hint="on moves results by about 1e-3"))
        found.append(Field(key + "level", "", "graph optimisation", LEVELS))
    if side.kind == "trt":
        found += _trt(side, key)
    return [*found, Field(key + "model", "", "model", empty="this model", hint="or another file")]


def _trt(side: SideForm, key: str) -> list[Field]:
    """TensorRT's fields: how an engine is built, unless one is given; how it is run."""
    engine = Field(key + "engine", "", "engine", empty="built from the model", hint="or a file: .engine .plan")
    run = [
        Field(key + "profile", "", "profile", empty="0", hint="the number of the one to run"),
        Field(key + "cuda_graph", "", "CUDA graph", YES_NO, hint="one launch for each run"),
        Field(key + "contexts", "", "contexts", empty="1", hint="run at once, must agree"),
    ]
    streaming = Field(key + "streaming", "", "stream weights", empty="no", hint="what stays: 50% 512M auto")
    if side.engine:
        return [engine, *run, streaming]
    shapes = {"min": "input:[1,128]", "opt": "; begins a next profile", "max": ""}
    return [
        engine,
        Field(key + "precision", "", "precision", PRECISIONS),
        Field(key + "workspace", "", "workspace", empty="all there is", hint="2G"),
        Field(key + "builder_level", "", "builder level", BUILDER_LEVELS, hint="5 searches longest"),
        *(Field(f"{key}{part}_shapes", "", f"{part} shapes", empty="as fed", hint=hint)
          for part, hint in shapes.items()),
        *(run if side.min_shapes or side.opt_shapes or side.max_shapes else run[1:]),
        streaming,
        Field(key + "fresh", "", "build anew", YES_NO, hint="else the workspace's own"),
    ]  # fmt: skip


def _feeds(form: RunForm) -> list[Field]:
    found = [Field("source", "feeds", "from", SOURCES)]
    if form.source == "files":
        found.append(Field("files", "", "files", hint=".json .safetensors .npz"))
    elif form.source == "script":
        found.append(Field("script", "", "script", hint="file.py or file.py:function"))
    else:
        found.append(Field("seed", "", "seed"))
        found.append(Field("val_range", "", "values", empty="[0,1]", hint="[-1,1] or input:[0,255]"))
        found.append(Field("shapes", "", "input shapes", empty="as declared", hint="input:[1,3,224,224]"))
    empty = "1" if form.source == "synthetic" else "all that are there"
    return [*found, Field("iterations", "", "iterations", empty=empty)]


def _marks(form: RunForm) -> list[Field]:
    found = [Field("marks", "marks", "tensors", MARKS)]
    if form.marks == "op types":
        found.append(Field("op_types", "", "op types", hint="MatMul Softmax"))
    if form.marks == "names":
        found.append(Field("names", "", "names", hint="*Softmax* or exact names"))
    if form.marks != "outputs only":
        found.append(Field("exclude", "", "except", empty="none", hint="names or globs"))
        found.append(Field("observe", "", "observe", OBSERVE, hint=_observe_hint(form.observe)))
    return found


def _observe_hint(observe: str) -> str:
    hints = {
        "executed": "as the runner really runs it",
        "every": "every tensor, unfused",
        "marked": "all marked at once, as Polygraphy",
    }
    return hints.get(observe, "")


def _compare(form: RunForm) -> list[Field]:
    found = [Field("tolerance", "compare", "tolerance", TOLERANCES)]
    if form.tolerance == "fixed":
        found.append(Field("atol", "", "absolute", hint="1e-5 or output:1e-3"))
        found.append(Field("rtol", "", "relative", hint="1e-5 or output:1e-3"))
    return [
        *found,
        Field("stat", "", "statistic", get_args(Stat)),
        Field("metrics", "", "metrics", hint="simple l2 cosine_similarity psnr snr"),
        Field("validate", "", "stop at NaN, Inf", YES_NO),
        Field("fail_fast", "", "stop at first failure", YES_NO),
        Field("memory", "", "memory budget", empty="no limit", hint="2G"),
    ]
