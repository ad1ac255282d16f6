"""The comparison of a baseline as its file keeps it: with paths from the file's folder, and what must stay as it is."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from layerwise._tool.backends.errors import BadFile, UsageError
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.wording import in_words
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec, compares_layers, unsaved

_SCRIPT = ".py:"
_FREE = ("model", "memory_budget", "sequential", "warm_up", "figures", "all_figures", "fail_fast")
"""Fields of a request that change no number."""


def layered(spec: CompareSpec) -> CompareSpec:
    """The request of a baseline: all layers where none are named, and no files. UsageError without two sides."""
    if len(spec.runners) < 2 and not any(runner.results_index == -1 for runner in spec.runners):
        raise UsageError("a baseline needs two sides: --onnxrt with --reference-model GOOD.onnx, or --onnxrt --onnx")
    if spec.check_average or spec.compare_script:
        raise UsageError("a baseline keeps the errors of layers: leave out --check-average and --compare-func-script")
    marks = spec.marks if compares_layers(spec) else MarkSpec(everything=True, exclude=spec.marks.exclude)
    return replace(unsaved(spec), marks=marks, statistics=False, fail_fast=False)


def kept(spec: CompareSpec, folder: Path) -> dict[str, Any]:
    """The request as a file in `folder` keeps it."""
    moved = _moved(spec, lambda path: Path(os.path.relpath(path, folder)).as_posix())
    found: dict[str, Any] = msgspec.to_builtins(moved)
    return found


def read_request(found: dict[str, Any], file: Path) -> CompareSpec:
    """The request that a file keeps. BadFile if it is none."""
    try:
        spec = msgspec.convert(found, CompareSpec)
    except msgspec.ValidationError as error:
        raise BadFile(file, f"the comparison in it does not fit: {in_words(error, 200)}") from None
    folder = file.parent
    return _moved(spec, lambda path: os.path.normpath(folder / path))


def with_models(spec: CompareSpec, model: str | None, reference: str | None) -> CompareSpec:
    """The request with other models for suspect and reference, None for the one that it has. UsageError where it has
    no such model.
    """
    runners = list(spec.runners)
    if reference is not None:
        if len(runners) != 2 or runners[1].kind == "saved":
            raise UsageError("--reference-model: the second side of this baseline runs no model")
        runners[1] = replace(runners[1], model=reference)
    if model is not None and runners[0].model is not None:
        runners[0] = replace(runners[0], model=model)
    elif model is not None:
        if spec.model is None:
            raise UsageError(f"{shown(model, 200)}: the first side of this baseline runs no model")
        spec = replace(spec, model=model)
    return replace(spec, runners=runners)


def without_paths(spec: CompareSpec) -> CompareSpec:
    """The request of models and inputs that are made anew each time: it does not say where they are."""
    runners = [replace(runner, model=None, results=None) for runner in spec.runners]
    return replace(spec, model=None, runners=runners, feeds=replace(spec.feeds, files=[], script=None))


def names_models(spec: CompareSpec) -> bool:
    """Whether a request says what to run."""
    return bool(spec.model or any(runner.model or runner.results for runner in spec.runners))


def other_settings(then: CompareSpec, now: CompareSpec) -> list[str]:
    """What differs of all that the numbers hang on, in words; models and inputs are not among it."""
    was, has = _settings(then), _settings(now)
    return [
        f"{name.replace('_', ' ')}: {_word(was.get(name))}, now {_word(has.get(name))}"
        for name in dict.fromkeys([*was, *has])
        if was.get(name) != has.get(name)
    ]


def _settings(spec: CompareSpec) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(spec)
    for name in _FREE:
        found.pop(name, None)
    feeds = found.pop("feeds", {})
    found |= {f"inputs' {name}": value for name, value in feeds.items() if name not in ("files", "script", "function")}
    for place, runner in enumerate(found.pop("runners", [])):
        side = ("the suspect's", "the reference's")[place] if place < 2 else f"side {place}'s"
        free = ("name", "model", "threads", "inter_threads", "results")
        found |= {f"{side} {name}": value for name, value in runner.items() if name not in free}
    return {name: value for name, value in found.items() if not name.startswith("save_")}


def _word(value: Any) -> str:
    return "not given" if value is None else shown(str(value), 80)


def _moved(spec: CompareSpec, place: Callable[[str], str]) -> CompareSpec:
    """The request with each path in it put elsewhere."""

    def path(text: str | None) -> str | None:
        if not text:
            return text
        head, colon, function = text.rpartition(_SCRIPT)
        return f"{place(f'{head}.py')}:{function}" if colon else place(text)

    def paths(texts: list[str]) -> list[str]:
        return [place(text) for text in texts]

    def runner(side: RunnerSpec) -> RunnerSpec:
        return replace(
            side, model=path(side.model), results=path(side.results), custom_ops=paths(side.custom_ops)
        )  # fmt: skip

    options = replace(spec.model_options, external_data_dir=path(spec.model_options.external_data_dir))
    feeds = replace(spec.feeds, files=paths(spec.feeds.files), script=path(spec.feeds.script))
    return replace(
        spec, model=path(spec.model), model_options=options, runners=[runner(side) for side in spec.runners],
        feeds=feeds, postprocess_script=path(spec.postprocess_script),
        align=spec.align if spec.align in ("auto", "names") else place(spec.align),
    )  # fmt: skip
