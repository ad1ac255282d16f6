"""What is the same in all iterations: the tensors that both sides have, and how each side's graph is cut up."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from layerwise._tool.backends.arrays import Array, Feed
from layerwise._tool.backends.errors import UsageError
from layerwise._tool.debugtools.compare.memory import Limits
from layerwise._tool.debugtools.compare.observing.run_ahead import Ahead, segment_size
from layerwise._tool.debugtools.compare.observing.store import ArrayStore
from layerwise._tool.debugtools.compare.sides.saved_side import SavedSide
from layerwise._tool.debugtools.compare.sides.side import ModelSide, Side
from layerwise._tool.debugtools.compare.sides.stream import SessionPool, observing
from layerwise._tool.debugtools.locate.inside import NodePair
from layerwise._tool.debugtools.locate.part import LocalRuns, Part
from layerwise._tool.debugtools.locate.points import find_points
from layerwise._tool.debugtools.locate.walk import Reference, Seen, Walk
from layerwise._tool.surgery.cut.explode import Exploder, Regions
from layerwise._tool.surgery.cut.sizes import Estimate

if TYPE_CHECKING:
    from layerwise._tool.surgery.cut.segments import Segment

Sizes = Mapping[str, Estimate]


class LocatePlan:
    """The tensors that a suspect and a reference have in common, and the segments of both graphs.

    feeds: of an iteration like all others, as each side takes it. limits: how much may be held in memory.
    UsageError if there is no tensor that both have.
    """

    def __init__(self, suspect: ModelSide, reference: Side, feeds: tuple[Feed, Feed], limits: Limits) -> None:
        self._suspect, self._reference, self._part, self._limits = suspect, reference, Part.observed(suspect), limits
        mine = _sizes(self._part, feeds[0])
        theirs = self._reference_sizes(feeds[1], mine)
        self.points = find_points(suspect, reference, _opaque(mine), _opaque(theirs))
        if not self.points:
            raise UsageError("the sides have no tensor in common: names must match exactly; map others with --rename")
        self._plan = self._part.cut.segments(self.points, limits.segment, mine)
        self._exploder = Exploder(self._part.cut, self.points)
        self._regions = self._exploder.regions if not suspect.observed.executed else self._original_regions()
        self._streamed = [point.name for point in self.points.values() if reference.has(point.name)]
        self._reference_plan = self._cut_reference(theirs)
        self.same_runner = not suspect.observed.executed and same_runner(suspect, reference)

    def region(self, name: str) -> tuple[int, ...]:
        """Positions, in the suspect's model, of the nodes that make a tensor from tensors that both sides have."""
        return self._regions.of(self._suspect.own(name)).nodes

    def alike(self, name: str) -> bool:
        """Whether a tensor is made by one node of the same operator on both sides, and by the same runner."""
        pair = self.pair(name) if self.same_runner and len(self.region(name)) == 1 else None
        return pair is not None and (pair.node.domain, pair.node.op_type) == (pair.other.domain, pair.other.op_type)

    def pair(self, name: str) -> NodePair | None:
        """The nodes that make a tensor in both models, None if the reference runs none or has it as a weight."""
        side = self._reference
        if not isinstance(side, ModelSide) or side.own(name) not in side.model.cut.maker:
            return None
        mine, theirs = Part.model(self._suspect), Part.model(side)
        nodes = [
            part.cut.nodes[part.cut.maker[own]]
            for part, own in ((mine, self._suspect.own(name)), (theirs, side.own(name)))
        ]
        return NodePair(mine, theirs, nodes[0], nodes[1], lambda tensor: side.own(self._suspect.common(tensor)))

    @contextmanager
    def walk(
        self,
        iteration: int,
        feeds: tuple[Feed, Feed],
        pools: tuple[SessionPool, SessionPool],
        spill: Path,
        look: Callable[[Sequence[Seen]], None] | None = None,
    ) -> Iterator[Walk]:
        """Go through one iteration. pools: of the suspect's and the reference's sessions. spill: for what waits. look:
        as `Walk` takes it.
        """
        with ExitStack() as stack:
            store = ArrayStore(self._limits.waiting, spill)
            stack.callback(store.close)
            streams = self._part.stream(self._plan, feeds[0], pools[0]), self._reference_stream(feeds[1], pools[1])
            mine, theirs = (self._ahead(stream, stack) for stream in streams)
            streamed = self._streamed if isinstance(self._reference, ModelSide) else ()
            reference = Reference(theirs, streamed, self._fetcher(iteration), store)
            local = LocalRuns(self._part, self._exploder)
            regions = self._exploder.regions
            yield Walk(self._part.cut, self._plan, mine, feeds[0], self.points, reference, local, regions, look)

    def _ahead(self, stream: Iterator[Feed], stack: ExitStack) -> Iterator[Feed]:
        """A stream that runs ahead in a thread of its own, where memory allows."""
        return stack.enter_context(Ahead(stream, self._limits.ahead, segment_size)) if self._limits.ahead else stream

    def _original_regions(self) -> Regions:
        cuts = [self._suspect.own(point.name) for point in self.points.values()]
        return Regions(self._suspect.model.cut, cuts)

    def _reference_sizes(self, feed: Feed, mine: Sizes) -> Sizes:
        if not isinstance(self._reference, ModelSide):
            return {}
        part = Part.observed(self._reference)
        return mine if _alike(self._part, part) else _sizes(part, feed)

    def _cut_reference(self, known: Sizes) -> "list[Segment]":
        side = self._reference
        if not isinstance(side, ModelSide):
            return []
        wanted = [side.made[side.own(name)] for name in self._streamed]
        return side.observed.cut.segments(wanted, self._limits.segment, known)

    def _reference_stream(self, feed: Feed, pool: SessionPool) -> Iterator[Feed]:
        side = self._reference
        return side.stream(self._reference_plan, feed, pool) if isinstance(side, ModelSide) else iter(())

    def _fetcher(self, iteration: int) -> Callable[[str], Array]:
        side = self._reference
        if isinstance(side, SavedSide):
            return partial(side.fetch, iteration)
        assert isinstance(side, ModelSide)
        return lambda name: side.naming.laid(name, side.model.file.array(side.own(name)))


def same_runner(a: Side, b: Side) -> bool:
    """Whether two sides run models by the same backend with the same options, optimisation apart, so that alike nodes
    give the same bits: nodes of two exports are alike in what they compute, not in its order.
    """
    if not (isinstance(a, ModelSide) and isinstance(b, ModelSide)) or b.naming.aligned:
        return False
    first, second = (msgspec.structs.replace(observing(side.spec), model=None) for side in (a, b))
    return first == second


def _sizes(part: Part, feed: Feed) -> Sizes:
    return part.cut.estimates_for(feed)


def _opaque(known: Sizes) -> frozenset[str]:
    return frozenset(name for name, estimate in known.items() if estimate.opaque)


def _alike(a: Part, b: Part) -> bool:
    """Whether two graphs have the same tensors, made by the same operators: their sizes are planned once."""
    return a.cut is b.cut or _makers(a) == _makers(b)


def _makers(part: Part) -> dict[str, str]:
    return {name: part.cut.nodes[i].op_type for name, i in part.cut.maker.items()}
