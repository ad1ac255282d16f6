"""What is the same in all iterations: the tensors that both sides have, and how each side's graph is cut up."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from backends.errors import UsageError
from debugtools.compare.ahead import Ahead
from debugtools.compare.memory import Limits
from debugtools.compare.sides import ModelSide, SavedSide, Side
from debugtools.compare.store import ArrayStore
from debugtools.compare.stream import SessionPool
from debugtools.locate.local import LocalRuns
from debugtools.locate.part import Part, held
from debugtools.locate.points import find_points
from debugtools.locate.reference import Reference
from debugtools.locate.walk import Walk
from surgery.explode import Exploder
from surgery.regions import Regions
from surgery.sizes import Estimate, estimates

if TYPE_CHECKING:
    from surgery.cut import Segment

Array = NDArray[Any]
Feed = Mapping[str, Array]
Sizes = Mapping[str, Estimate]


class Grounds:
    """The common ground of a suspect and a reference.

    feeds: of an iteration like all others, as each side takes it. limits: how much may be held in memory.
    UsageError if there is no tensor that both have.
    """

    def __init__(self, suspect: ModelSide, reference: Side, feeds: tuple[Feed, Feed], limits: Limits) -> None:
        self.suspect, self.reference, self.part, self._limits = suspect, reference, Part.of(suspect), limits
        known = _sizes(self.part, feeds[0])
        opaque = {name for name, estimate in known.items() if estimate.opaque}
        self.points = find_points(suspect, reference, opaque)
        if not self.points:
            raise UsageError("the sides have no tensor in common: names must match exactly; map others with --rename")
        self._plan = self.part.cut.segments(self.points, limits.segment, known)
        self.exploder = Exploder(self.part.cut, [t for t, point in self.points.items() if point.unblocked is None])
        self._regions = self.exploder.regions if not suspect.observed.executed else self._original_regions()
        self._streamed = [point.name for point in self.points.values() if reference.has(point.name)]
        self._reference_plan = self._cut_reference(feeds[1], known)

    def region(self, name: str) -> tuple[int, ...]:
        """Positions, in the suspect's model, of the nodes that make a tensor from tensors that both sides have."""
        return self._regions.of(self.suspect.own(name)).nodes

    @contextmanager
    def walk(
        self, iteration: int, feeds: tuple[Feed, Feed], pools: tuple[SessionPool, SessionPool], spill: Path
    ) -> Iterator[Walk]:
        """Go through one iteration. pools: of the suspect's and the reference's sessions. spill: for what waits."""
        with ExitStack() as stack:
            store = ArrayStore(self._limits.waiting, spill)
            stack.callback(store.close)
            mine = self.part.stream(self._plan, feeds[0], pools[0])
            theirs, fetch = self._reference_stream(feeds[1], pools[1]), self._fetcher(iteration)
            first, second = (stack.enter_context(Ahead(s, self._limits.ahead, held)) for s in (mine, theirs))
            reference = Reference(second, self._streamed if self._reference_plan else (), fetch, store)
            local = LocalRuns(self.part, self.exploder)
            yield Walk(self.part.cut, self._plan, first, feeds[0], self.points, reference, local, self.exploder.regions)

    def _original_regions(self) -> Regions:
        cuts = [self.suspect.own(point.name) for point in self.points.values() if point.unblocked is None]
        return Regions(self.suspect.model.cut, cuts)

    def _cut_reference(self, feed: Feed, known: Sizes) -> "Sequence[Segment]":
        side = self.reference
        if not isinstance(side, ModelSide):
            return ()
        part = Part.of(side)
        if not _alike(self.part, part):
            known = _sizes(part, feed)
        return part.cut.segments((side.made[side.own(name)] for name in self._streamed), self._limits.segment, known)

    def _reference_stream(self, feed: Feed, pool: SessionPool) -> Iterator[Feed]:
        side = self.reference
        return side.stream(self._reference_plan, feed, pool) if isinstance(side, ModelSide) else iter(())

    def _fetcher(self, iteration: int) -> Any:
        side = self.reference
        if isinstance(side, SavedSide):
            return partial(side.fetch, iteration)
        assert isinstance(side, ModelSide)
        return lambda name: side.model.file.array(side.own(name))


def _sizes(part: Part, feed: Feed) -> Sizes:
    return estimates(part.cut.model, {name: array.shape for name, array in feed.items()})


def _alike(a: Part, b: Part) -> bool:
    """Whether two graphs have the same tensors, made by the same operators: their sizes are planned once."""
    return a.cut is b.cut or _makers(a) == _makers(b)


def _makers(part: Part) -> dict[str, str]:
    return {name: part.cut.nodes[i].op_type for name, i in part.cut.maker.items()}
