"""The sides of a comparison, made of its request."""

import time
from collections.abc import Mapping, Sequence

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.names import written_otherwise
from layerwise._tool.backends.runner import runner_name
from layerwise._tool.backends.saved import every_saved, open_saved
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.sides.models import Model, make_model
from layerwise._tool.debugtools.compare.sides.saved_side import SavedSide
from layerwise._tool.debugtools.compare.sides.side import ModelSide, Side
from layerwise._tool.debugtools.compare.spec import CompareSpec

Classes = Mapping[str, type[ModelSide]]


def make_sides(spec: CompareSpec, model: Model | None, classes: Classes | None = None) -> list[Side]:
    """Make the sides of a comparison, models opened, no session yet. classes: of kinds of runners with their own.

    UsageError if a runner lacks a model, or no side has a tensor that is renamed.
    """
    now = time.localtime()
    counts: dict[str, int] = {}
    models = {model.path: model} if model else {}
    sides: list[Side] = []
    runners = [runner for given in spec.runners for runner in every_saved(given)]
    for index, runner in enumerate(runners):
        number = counts.get(runner.kind, 0)
        counts[runner.kind] = number + 1
        name = runner_name(runner, number, now)
        if runner.kind == "saved":
            first = next((side for side in sides if isinstance(side, SavedSide)), None)
            sides.append(_saved_side(index, runner, {**spec.rename, **runner.rename}, model or first))
        else:
            sides.append(_make_side(index, runner, name, spec, model, models, classes or {}))
    _check_renames(spec, sides)
    return sides


def _check_renames(spec: CompareSpec, sides: Sequence[Side]) -> None:
    for name, own in spec.rename.items():
        if not any(side.knows(name) for side in sides):
            raise UsageError(f"--rename {shown(name, 80)}={shown(own, 80)}: no side has a tensor {shown(name, 80)}")
        if not any(side.knows(own) for side in sides if _may_rename(side.spec)):
            raise UsageError(f"--rename {shown(name, 80)}={shown(own, 80)}: no other side has a {shown(own, 80)}")


def _make_side(
    index: int, runner: RunnerSpec, name: str, spec: CompareSpec, model: Model | None, models: dict[str, Model],
    classes: Classes,
) -> Side:  # fmt: skip
    rename = {**spec.rename, **runner.rename} if _may_rename(runner) else dict(runner.rename)
    path = runner.model or (model.path if model else None)
    if path is None:
        raise UsageError(f"runner {shown(name, 80)} has no model to run: name one")
    if path not in models:
        models[path] = make_model(path, spec.model_options, runner.kind)
    return classes.get(runner.kind, ModelSide)(index, runner, name, rename, models[path])


def _may_rename(runner: RunnerSpec) -> bool:
    return runner.kind == "saved" or runner.model is not None


def _saved_side(index: int, runner: RunnerSpec, rename: dict[str, str], like: Model | SavedSide | None) -> SavedSide:
    """Saved outputs. like: what has the comparison's names, which a dump may have in another writing."""
    saved = open_saved(runner, name=runner.name)
    rename = {name: own for name, own in rename.items() if own in saved.outputs}
    found: dict[str, str] = {}
    if like is not None and saved.dump.foreign:
        taken = {*rename, *rename.values()}
        known = set(like.names(0) if isinstance(like, SavedSide) else like.tensors())
        found = written_otherwise(known - taken, [name for name in saved.outputs if name not in taken])
    side = SavedSide(index, runner, runner.name or saved.name, rename | found, saved)
    side.asked = rename
    if found:
        name, own = next(iter(found.items()))
        told = f"{shown(own, 120)} for {shown(name, 120)}"
        side.notes.append(f"{len(found)} names are taken as other writings of those compared: {told}, …")
    return side
