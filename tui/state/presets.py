"""Ten ready comparisons to start from."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from layerwise._tool.backends.shell import shell_word
from layerwise._tool.tui.state.run_form import RunForm, SideForm


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
           values={"marks": "outputs only", "val_range": "[-1,1]"}),
)  # fmt: skip


def preset(name: str) -> Preset:
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
