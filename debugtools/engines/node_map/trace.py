"""Runs the engine of a whole model and observes its unfused tensors and its layers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.runner import Runner, open_runner
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.trt.inference.inner import run_watched
from layerwise._tool.backends.trt.inference.late import LateRunner
from layerwise._tool.backends.trt.inference.runner import TrtRunner
from layerwise._tool.backends.trt.inspect.engine import engine_view
from layerwise._tool.backends.trt.library import tensorrt
from layerwise._tool.backends.trt.options import watched
from layerwise._tool.debugtools.compare.observing.store import ArrayStore, LazyArrays
from layerwise._tool.debugtools.compare.sides.engine import full_side
from layerwise._tool.debugtools.compare.sides.executed import Print, fingerprint, original_prints, print_distance
from layerwise._tool.debugtools.compare.sides.side import ModelSide, ObservedGraph
from layerwise._tool.debugtools.engines.node_map.layers import Mapped, map_layers

NEAR = 0.25  # of the largest value: FP16, and more than one fault, stay below
CLEAR = 0.25
_ALIKE = 1e-9


@dataclass(frozen=True)
class Match:
    """The tensor recognised for a value. distance: relative to the largest value. alike: others with equal values."""

    name: str
    distance: float
    alike: tuple[str, ...] = ()


class NamedPrints:
    """Tensors with names and fingerprints. One that was matched is not used again if another is as good."""

    def __init__(self, prints: Mapping[str, Print]) -> None:
        self._by_shape: dict[tuple[int, ...], dict[str, Print]] = {}
        for name, found in prints.items():
            if _tells(found):
                self._by_shape.setdefault(_squeezed(found.shape), {})[name] = found
        self._taken: set[str] = set()

    def find(self, array: Array) -> Match | None:
        """Return the tensor that an array is; None if none is near, or several are."""
        mine = fingerprint(np.squeeze(array))
        if mine is None or not _tells(mine):
            return None
        there = self._by_shape.get(mine.shape, {})
        near = sorted((print_distance(mine, Print(mine.shape, other.values)), name) for name, other in there.items())
        if not near or near[0][0] > NEAR:
            return None
        distance, name = near[0]
        alike = [other for _, other in near if _same(there[name], there[other])]
        apart = next((found for found, other in near if other not in alike), np.inf)
        if distance > CLEAR * apart:
            return None
        free = [other for other in there if other in alike and other not in self._taken]
        chosen = free[0] if free else name
        self._taken.add(chosen)
        return Match(chosen, float(distance), tuple(other for other in alike if other != chosen))


def _same(a: Print, b: Print) -> bool:
    return print_distance(Print((), a.values), Print((), b.values)) <= _ALIKE


def _tells(found: Print) -> bool:
    return bool(np.isfinite(found.values).all()) and float(np.ptp(found.values)) > 0


def _squeezed(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size for size in shape if size != 1)


@dataclass
class EngineTrace:
    """limit: bytes of tensors in memory; the rest goes to `folder`.

    tensors: the model's tensors seen in the engine -> TensorRT's names. by_value: those among them recognised
    only by value. unknown: TensorRT's names of tensors that are not the model's.
    """

    side: ModelSide
    folder: Path
    limit: int
    tensors: dict[str, str] = field(default_factory=dict)
    by_value: set[str] = field(default_factory=set)
    unknown: list[str] = field(default_factory=list)
    layers: list[Mapped] = field(default_factory=list)
    _seen: ArrayStore | None = None
    _fed: Mapping[str, Array] | None = None
    _runner: Runner | None = None
    _named: TrtRunner | None = None

    def begin(self, feed: Mapping[str, Array]) -> ObservedGraph:
        """Run the engine once; return the graph in which to observe the side. LayerwiseError if it does not run."""
        self._run(feed)
        names: dict[str, Any] = {own: (own, None) for own in self.tensors}
        graph = ObservedGraph(self.side.model.cut, self.side.model.file.folder, executed=True, names=names)
        graph.unmatched = [f"{name}: no tensor of the model has these values" for name in self.unknown]
        graph.values = self.values
        return graph

    def values(self, feed: Mapping[str, Array]) -> Mapping[str, Array]:
        """Return the observed tensors, by the model's names, for this feed."""
        if feed is not self._fed:
            self._run(feed)
        store, names = self._seen, self.tensors
        assert store is not None
        return LazyArrays(names, lambda own: store.get(names[own]))

    def close(self) -> None:
        """Release the engine and the tensors."""
        if self._runner is not None:
            self._runner.close()
        if self._seen is not None:
            self._seen.close()
        self._runner = self._seen = None

    def _run(self, feed: Mapping[str, Array]) -> None:
        built, seen = self._engine(feed), list[str]()
        if self._seen is not None:
            self._seen.close()
        store = self._seen = ArrayStore(self.limit, self.folder)
        self._fed = feed

        def take(name: str, array: Array) -> None:
            store.put(name, array)
            seen.append(name)

        for name, array in run_watched(built, feed, take).outputs.items():
            if name not in store:
                take(name, array)
        if built is not self._named:  # its names are its own
            self._name_all(built, seen, feed)

    def _engine(self, feed: Mapping[str, Array]) -> TrtRunner:
        """Return the engine, rebuilt only if another shape requires it."""
        if self._runner is None:
            self._runner = open_runner(_whole(self.side.spec), self.side.model.whole(), name=self.side.name)
        built = self._runner.built_for(feed) if isinstance(self._runner, LateRunner) else self._runner
        if not isinstance(built, TrtRunner):
            raise UsageError("only an engine of TensorRT can be watched")
        return built

    def _name_all(self, built: TrtRunner, seen: list[str], feed: Mapping[str, Array]) -> None:
        self._named = built
        self.by_value, self.unknown = set(), []
        self._name(seen, feed)
        view = engine_view(tensorrt(), built.execution.engine)
        renamed = {theirs: own for own, theirs in self.tensors.items() if own in self.by_value}
        self.layers = map_layers(view.layers[0] if view.layers else [], self.side.model.cut, renamed)

    def _name(self, seen: list[str], feed: Mapping[str, Array]) -> None:
        """Determine which of the model's tensors were observed."""
        maker = self.side.model.cut.maker
        self.tensors = {name: name for name in seen if name in maker}
        others = [name for name in seen if name not in maker]
        if not others:
            return
        assert self._seen is not None
        prints = original_prints(full_side(self.side), feed)
        known = NamedPrints({name: found for name, found in prints.items() if name not in self.tensors})
        for name in others:
            match = known.find(self._seen.get(name))
            if match is None:
                self.unknown.append(name)
            else:
                self.tensors[match.name] = name
                self.by_value.add(match.name)


def _whole(spec: RunnerSpec) -> RunnerSpec:
    return msgspec.structs.replace(watched(spec), name="", model=None)
