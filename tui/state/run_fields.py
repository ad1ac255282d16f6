"""Which fields the Run form shows, and what may stand in them."""

import importlib.util
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from layerwise._tool.backends.text import in_full
from layerwise._tool.tui.cli.options.option import Option, options_of
from layerwise._tool.tui.cli.request.parser import COMPARED
from layerwise._tool.tui.state.run_form import (
    BUILDER_LEVELS,
    KINDS,
    LEVELS,
    MARKS,
    PRECISIONS,
    PRESETS,
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
from layerwise._tool.tui.state.run_inputs import MOST, PREFIX, InputLine


@dataclass(frozen=True)
class Field:
    """One line of the form: a choice with options, typed without; `empty` says what no text means."""

    key: str
    section: str
    label: str
    options: tuple[str, ...] = ()
    empty: str = ""
    hint: str = ""

    @property
    def is_path(self) -> bool:
        """Whether a file or folder stands in it."""
        return self.key.rpartition(".")[2] in ("model", "results", "engine", "files", "script")

    def text(self, form: RunForm) -> str:
        """What stands in it."""
        return get(form, self.key) or (self.options[0] if self.options else "")


def declared(form: RunForm, section: str) -> list[Option]:
    """The options of `run` that the form has in a section now, in its order: what depends on a choice is first."""
    found = [(option, option.form) for option in options_of(*COMPARED) if option.form is not None]
    order = RunForm.__struct_fields__

    def place(key: str, when: str) -> tuple[int, int]:
        return ("!=" in when) + 2 * (not when), order.index(key) if key in order else len(order)

    found = [(option, line) for option, line in found if line.section == section and _shown(form, line.when)]
    return [option for option, line in sorted(found, key=lambda pair: place(pair[1].key, pair[1].when))]


def _shown(form: RunForm, when: str) -> bool:
    key, _, value = when.partition("=")
    return not when or (get(form, key.rstrip("!")) == value) is not key.endswith("!")


def _lines(form: RunForm, section: str) -> list[Field]:
    return [_line(form, option) for option in declared(form, section)]


def _line(form: RunForm, option: Option) -> Field:
    line = option.form
    assert line is not None
    hint = line.hint if isinstance(line.hint, str) else line.hint.get(get(form, line.key), "")
    empty = "all that are there" if line.key == "iterations" and form.source != "synthetic" else line.empty
    if form.made == "auto" and line.key in ("val_range", "shapes"):
        empty = "as chosen below"
    return Field(line.key, "", line.label, choices(option), empty, hint)


def choices(option: Option) -> tuple[str, ...]:
    """What may be chosen for an option, the default first; nothing where a text is typed."""
    if option.form is not None and option.form.choices:
        return option.form.choices
    return YES_NO if option.on is not None else option.settings.get("choices", ()) if option.single else ()


def fields(form: RunForm, inputs: Sequence[InputLine] = ()) -> list[Field]:
    """The fields that matter for what is chosen so far, in order. inputs: of the open model."""
    found = [Field("preset", "preset", "", hint="enter lists them")]
    for number in range(len(form.sides)):
        found += _side(form, number)
    return [
        *found,
        Field("source", "feeds", "from", SOURCES), *_lines(form, "feeds"),
        *(_inputs(form, inputs) if form.source == "synthetic" else ()),
        Field("marks", "marks", "tensors", MARKS), *_lines(form, "marks"),
        Field("tolerance", "compare", "tolerance", TOLERANCES), *_lines(form, "compare"),
    ]  # fmt: skip


def _inputs(form: RunForm, inputs: Sequence[InputLine]) -> Iterator[Field]:
    auto = form.made == "auto"
    for place, line in enumerate(inputs[:MOST]):
        empty = (line.chosen or line.unplanned) if auto else "dynamic dimensions 1, integers 0 or 1"
        yield Field(PREFIX + line.info.name, "" if place else "inputs", in_full(line.info.name), empty=empty,
                    hint=line.hint if auto else line.declared)  # fmt: skip
    if len(inputs) > MOST:
        yield Field(PREFIX, "", "more inputs", empty=f"{len(inputs) - MOST}, as planned",
                    hint="input shapes and values above give them others")  # fmt: skip


def repaired(form: RunForm) -> RunForm:
    """A form whose choices are all among the options, as a file of another version may not have them."""
    if form.preset and form.preset not in {found.name for found in PRESETS}:
        form = put(form, "seed", form.seed)
    for _ in range(2):  # what one choice is decides which others there are
        for field in fields(form):
            if field.options and field.text(form) not in field.options:
                form = put(form, field.key, field.options[0])
    return form


def _side(form: RunForm, number: int) -> list[Field]:
    side, key = form.sides[number], f"side.{number}."
    last = number == len(form.sides) - 1 and number > 0
    hint = "the reference" if last else ""
    if side.kind == "trt" and importlib.util.find_spec("tensorrt") is None:
        hint = "install 'layerwise[trt]'"
    if side.kind == "torch" and importlib.util.find_spec("torch") is None:
        hint = "install 'layerwise[torch]'"
    found = [Field(key + "kind", f"side {number + 1}", "backend", KINDS, hint=hint)]
    if side.kind == "saved":
        return [*found, Field(key + "results", "", "saved outputs", hint="a file of --save-outputs")]
    if side.kind == "torch":
        hint = "build.py:make, or a .pt2, or a Hugging Face folder"
        return [*found, Field(key + "model", "", "module", hint=hint)]
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
