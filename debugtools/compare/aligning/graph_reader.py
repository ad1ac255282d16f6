"""Goes through sides' graphs, unfused, for their tensors and the fingerprints of these."""

from collections.abc import Collection, Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext
from typing import TYPE_CHECKING

import msgspec

from layerwise._tool.backends.arrays import Array, Feed
from layerwise._tool.backends.errors import LayerwiseError, MissingDependency
from layerwise._tool.backends.specs import NO_PACKING, RunnerSpec
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.align.graph import AlignGraph
from layerwise._tool.debugtools.align.side_data import SideData, collect
from layerwise._tool.debugtools.align.told_by_values import told_by_values
from layerwise._tool.debugtools.compare.aligning.graphs import align_graph, digest, structure
from layerwise._tool.debugtools.compare.aligning.weights import WeightPrints
from layerwise._tool.debugtools.compare.memory import Limits, limits
from layerwise._tool.debugtools.compare.observing.run_ahead import Ahead, segment_size
from layerwise._tool.debugtools.compare.sides.side import ModelSide
from layerwise._tool.debugtools.compare.sides.stream import GraphStream, SessionPool

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


def streamed(side: ModelSide, feed: Feed, limit: int, names: Collection[str] | None = None) -> Iterator[Feed]:
    """Give the tensors `names` (the side's own; None: all) of a side's model segment by segment, by its own names.

    feed: as the side takes it. limit: bytes of a segment. What a TensorRT side computes is computed by onnxruntime
    here: each part would be an engine to build.
    """
    cut = side.model.cut
    known = cut.estimates_for(feed)
    wanted = [name for name in (cut.maker if names is None else names) if not (name in known and known[name].opaque)]
    spec = side.spec
    if spec.kind not in ("onnxrt", "reference", "pluginref", "torch"):
        spec = RunnerSpec(kind="onnxrt", model=spec.model)
    if spec.kind == "onnxrt":
        spec = spec.setting(*NO_PACKING)
    plan = cut.segments(wanted, limit, known)
    chosen = frozenset(wanted)
    with closing(SessionPool(keep=False)) as pool:
        folder = side.model.file.folder
        for made in GraphStream(cut, plan, msgspec.structs.replace(spec, name=""), side.name, folder, feed, pool):
            yield {name: array for name, array in made.items() if name in chosen}


class GraphReader:
    """Gives the tensors and the fingerprints of sides' graphs. budget: bytes that the process may hold."""

    def __init__(self, context: "JobContext", budget: int | None) -> None:
        self._context, self._budget = context, budget
        self._graphs: dict[int, AlignGraph] = {}
        self._base: SideData | None = None
        self._begun: dict[int, tuple[Feed, Iterator[Feed]]] = {}
        self._weights = WeightPrints()

    def limits(self) -> Limits:
        """What may be held from now on."""
        return limits(self._budget)

    def graph(self, side: ModelSide) -> AlignGraph:
        """A side's graph as aligning sees it."""
        if side.index not in self._graphs:
            self._graphs[side.index] = align_graph(side)
        return self._graphs[side.index]

    @contextmanager
    def running(self, base: ModelSide, side: ModelSide, feed: Feed) -> Iterator[None]:
        """Both sides run, in threads if memory is not bounded, for `data`; those that have not begun yet begin."""
        sides = [side] if self._base is not None else [base, side]
        with ExitStack() as stack:
            for each in [each for each in sides if each.index not in self._begun]:
                self._begun[each.index] = stack.enter_context(self._open(each, feed))
                stack.callback(self._begun.pop, each.index)
            yield

    def data(self, base: ModelSide, side: ModelSide) -> tuple[SideData, SideData]:
        """The fingerprints of the comparison's side, made once for all, and of another one, both `running`; of large
        weights only where other values do not tell.
        """
        if self._base is None:
            self._base = self._collected(base, *self._begun[base.index])
        found = self._base, self._collected(side, *self._begun[side.index])
        return found if told_by_values(*found) else self.with_weights(base, side, found)

    def with_weights(
        self, base: ModelSide, side: ModelSide, data: tuple[SideData, SideData]
    ) -> tuple[SideData, SideData]:
        """The same with the fingerprints of all weights."""
        self._base = self._weighted(base, data[0])
        return self._base, self._weighted(side, data[1])

    def base_data(self, base: ModelSide, feed: Feed) -> SideData:
        """The fingerprints of the comparison's side, all weights included."""
        if self._base is None:
            with self._open(base, feed) as (fed, segments):
                self._base = self._collected(base, fed, segments)
        self._base = self._weighted(base, self._base)
        return self._base

    def _weighted(self, side: ModelSide, data: SideData) -> SideData:
        weights = self._weights.of(side.model.file, structure(side), data.prints)
        return msgspec.structs.replace(data, prints={**data.prints, **weights})

    def tensors(self, side: ModelSide, feed: Feed, names: Collection[str] | None = None) -> Iterator[Feed]:
        """A side's tensors `names` (None: all) as far as it comes: where it fails, names and structure have to do
        behind.
        """
        try:
            yield from streamed(side, _fed(side, feed), self.limits().segment, names)
        except MissingDependency:
            raise
        except LayerwiseError as error:
            self._context.log(f"aligning sees {shown(side.name, 80)} up to where it fails: {error}", "verbose")

    @contextmanager
    def _open(self, side: ModelSide, feed: Feed) -> Iterator[tuple[Feed, Iterator[Feed]]]:
        """A side's feed and its tensors, made in a thread if memory is not bounded."""
        segments, ahead = self.tensors(side, feed), self.limits().ahead // 2
        with Ahead(segments, ahead, segment_size) if ahead else nullcontext(segments) as made:
            yield _fed(side, feed), made

    def _collected(self, side: ModelSide, fed: Feed, segments: Iterator[Feed]) -> SideData:
        """The fingerprints of a side's inputs, small weights and tensors."""

        def tensors() -> Iterator[tuple[str, Array]]:
            yield from fed.items()
            for made in segments:
                yield from made.items()

        graph, weights = self.graph(side), self._weights.small(side.model.file, structure(side))
        return collect(graph, tensors(), digest(graph), weights)


def _fed(side: ModelSide, feed: Feed) -> Feed:
    return side.fit(feed, lambda text: None)  # the plain run says it
