"""The effect of edits on outputs: runs a model before and after edits on onnxruntime with the same feed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.feeds.sources import make_feeds
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.onnxrt.runner import open_onnxrt
from layerwise._tool.backends.reference.evaluate import tensor_infos
from layerwise._tool.backends.runner import Loadable
from layerwise._tool.backends.specs import FeedSpec, RunnerSpec
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.arithmetic.metrics import compare_arrays
from layerwise._tool.debugtools.compare.arithmetic.tolerance import Rule
from layerwise._tool.debugtools.compare.observing.canary import same_bits
from layerwise._tool.surgery.feeds.planned import planned
from layerwise._tool.surgery.history.tree import History
from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.types.incremental import settled

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext

Warn = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Moved:
    """One output that both models have. equal: bit for bit. largest: error, None if undefined."""

    name: str
    equal: bool
    passed: bool | None
    largest: float | None
    relative: float | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Effect:
    """Effect of edits on the outputs. gone and new: outputs that only one of the models has. empty: outputs of both
    without a single element to compare.
    """

    outputs: tuple[Moved, ...]
    gone: tuple[str, ...]
    new: tuple[str, ...]
    empty: tuple[str, ...] = ()

    @property
    def unmoved(self) -> bool:
        """True if the models have the same outputs, equal bit for bit, and something to compare."""
        return not (self.gone or self.new or self.nothing) and all(output.equal for output in self.outputs)

    @property
    def nothing(self) -> bool:
        """True if nothing was compared: no common output has an element."""
        return len(self.outputs) == len(self.empty)


def effect_of(
    before: Structure, after: Structure, feeds: FeedSpec | None = None, rule: Rule | None = None, warn: Warn = print
) -> Effect:
    """Run both on onnxruntime's CPU provider, unoptimised, with the first feed (random by default), and compare.

    An input that only `after` has is fed too; one of another shape gets its own. Loads onnxruntime, so call it only in
    a process that may crash. LayerwiseError naming the model that does not run.
    """
    feed = _feed(before, feeds or FeedSpec(), warn)
    known = {value.name: value for value in before.inputs}
    changed = [value for value in after.inputs if known.get(value.name) != value]
    if changed:
        made = FeedSpec() if feeds is None else FeedSpec(made=feeds.made)
        new_names, rest = {value.name for value in changed}, _feed(after, made, warn)
        own = {name: (rest if name in new_names else feed)[name] for name in after.input_names}
    else:
        own = {name: feed[name] for name in after.input_names}
    old, new = _run(before, feed, "before"), _run(settled(before, after), own, "after")
    common = [name for name in new if name in old]
    return Effect(
        tuple(_moved(name, new[name], old[name], rule or Rule()) for name in common),
        tuple(name for name in old if name not in new),
        tuple(name for name in new if name not in old),
        tuple(name for name in common if new[name].shape == old[name].shape and not new[name].size),
    )


def answer_effect(context: "JobContext", params: dict[str, Any]) -> dict[str, Any]:
    """Request to a warm worker. params: path, log (the history's file), at and to (ids of two of its entries).

    Answer: outputs (rows of `Moved`), gone, new, empty, unmoved, nothing, warnings.
    """
    warnings: list[str] = []
    with ModelFile(params["path"]) as file:
        history = History(Path(params["log"]), Structure.open(file))
        pair = history.structure_at(int(params["at"])), history.structure_at(int(params["to"]))
        effect = effect_of(*pair, feeds=msgspec.convert(params.get("feeds", {}), FeedSpec), warn=warnings.append)
    return {**msgspec.to_builtins(effect), "unmoved": effect.unmoved, "nothing": effect.nothing, "warnings": warnings}


def _feed(structure: Structure, feeds: FeedSpec, warn: Warn) -> Mapping[str, Array]:
    given = [value for value in structure.inputs if value.name not in structure.initializers]
    feeds = planned(feeds, structure.proto, warn)
    feed = next(iter(make_feeds(feeds, tensor_infos(given), warn)), None)
    if feed is None:
        raise UsageError("there is no feed dict to run the model with")
    return feed


def _run(structure: Structure, feed: Mapping[str, Array], when: str) -> Mapping[str, Array]:
    spec = RunnerSpec(kind="onnxrt", graph_optimization_level="disable")
    model = Loadable(data=structure.proto().SerializeToString(), folder=structure.folder)
    with open_onnxrt(spec, model, name=f"the model {when} the edit") as runner:
        return runner.infer(dict(feed)).outputs


def _moved(name: str, new: Array, old: Array, rule: Rule) -> Moved:
    equal = same_bits(new, old)
    result = compare_arrays(new, old, rule)
    required = result.required()
    largest, relative = (None, None) if required is None else (float(required[0]), float(required[1]))
    if largest is not None and not np.isfinite(largest):
        largest = None
    return Moved(name, equal, result.passed, largest, relative, shown(result.note, 200))
