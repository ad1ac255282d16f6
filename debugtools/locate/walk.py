"""One iteration through both sides at once: each tensor with its reference and with its region's own result.

A region whose inputs are bit for bit the reference's needs no run of its own: what the suspect made is its result.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import LayerwiseError, MissingDependency
from layerwise._tool.backends.model.reads import MissingTensor
from layerwise._tool.backends.tensors import dtype_name
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.arithmetic.nudge import decided, nudged, scattered
from layerwise._tool.debugtools.compare.arithmetic.tolerance import unit_roundoff
from layerwise._tool.debugtools.compare.observing.canary import same_bits
from layerwise._tool.debugtools.compare.observing.store import ArrayStore
from layerwise._tool.debugtools.locate.part import LocalRuns, Result, fits
from layerwise._tool.debugtools.locate.points import Point
from layerwise._tool.debugtools.locate.tensor_error import relative_l2
from layerwise._tool.surgery.cut.explode import Regions
from layerwise._tool.surgery.cut.randomness import Randomness

if TYPE_CHECKING:
    from layerwise._tool.surgery.cut.segments import GraphCut, Segment


class Reference:
    """Gives tensors by the comparison's names; one that was given stays until it is dropped.

    stream: makes the tensors `streamed`, in its own order. fetch: gives any other at any time.
    """

    def __init__(
        self,
        stream: Iterator[Mapping[str, Array]],
        streamed: Collection[str],
        fetch: Callable[[str], Array],
        store: ArrayStore,
    ) -> None:
        self._stream, self._streamed, self._fetch, self._store = stream, frozenset(streamed), fetch, store

    def get(self, name: str) -> Array:
        """Return a tensor, the stream gone as far as it takes. LayerwiseError if the reference fails before."""
        if name not in self._store and name not in self._streamed:
            self._store.put(name, self._fetch(name))
        while name not in self._store:
            self._go_on(name)
        return self._store.get(name)

    def _go_on(self, name: str) -> None:
        try:
            made = next(self._stream, None)
        except MissingDependency:
            raise
        except LayerwiseError as error:
            raise LayerwiseError(f"the reference fails before {shown(name, 120)!r}: {error}") from None
        if made is None:
            raise LayerwiseError(f"the reference does not give {shown(name, 120)!r}")
        for found, array in made.items():
            if found in self._streamed:
                self._store.put(found, array)

    def kept(self, name: str) -> Array | None:
        """A tensor that was given and not dropped; None for others."""
        return self._store.get(name) if name in self._store else None

    def drop(self, name: str) -> None:
        """Nobody needs a tensor any more."""
        self._store.drop(name)


@dataclass(frozen=True, slots=True)
class Met:
    """One tensor of the suspect's graph that the reference has too.

    accumulated: the suspect's own value, None if it did not get that far. local: what the tensor's region makes of the
    reference's tensors; None if it cannot run (`failure` says why), draws random numbers or reads what the reference
    has in another type.
    """

    tensor: str
    name: str
    reference: Array
    accumulated: Array | None
    local: Array | None
    failure: str = ""


class Seen(NamedTuple):
    """A tensor as the suspect made it, and as the reference did."""

    name: str
    accumulated: Array
    reference: Array


class Walk:
    """What two sides have in common, met in the suspect's order.

    plan: the segments of the suspect's graph; stream: what it makes in each; feed: its inputs. look: sees the tensors
    of a segment before their regions are run. Afterwards `stopped` says where the suspect failed, if it did.
    """

    def __init__(
        self,
        cut: "GraphCut",
        plan: "Sequence[Segment]",
        stream: Iterator[Mapping[str, Array]],
        feed: Mapping[str, Array],
        points: Mapping[str, Point],
        reference: Reference,
        local: LocalRuns,
        regions: Regions,
        look: Callable[[Sequence[Seen]], None] | None = None,
    ) -> None:
        self._look = look
        self._cut, self._stream, self.feed, self._points = cut, stream, feed, points
        self.reference, self._local, self.regions = reference, local, regions
        self._here = [[t for i in segment.nodes for t in cut.nodes[i].output if t in points] for segment in plan]
        self._over = self._last_uses()
        self._same: set[str] = set()
        self._own: set[str] = set()
        self._types: dict[str, np.dtype[Any]] = {}
        self._randomness = Randomness(cut)
        self.stopped = ""

    def _last_uses(self) -> dict[int, list[str]]:
        """Segment -> points that no later segment reads."""
        last = {}
        for number, here in enumerate(self._here):
            for tensor in here:
                last.update(dict.fromkeys((tensor, *self.regions.of(tensor).feeds), number))
        over = defaultdict(list)
        for tensor, number in last.items():
            if tensor in self._points:
                over[number].append(tensor)
        return over

    def __iter__(self) -> Iterator[Met]:
        for number, here in enumerate(self._here):
            made = dict(self._made())
            for tensor in here:
                if tensor in made:
                    made[tensor] = self._noted(tensor, made[tensor])
            if self._look is not None:
                self._look([self._seen(tensor, made[tensor]) for tensor in here if tensor in made])
            yield from self._meet(here, made)
            for tensor in self._over.pop(number, ()):
                self.reference.drop(self._points[tensor].name)

    def _made(self) -> Mapping[str, Array]:
        """The next segment's tensors; none once the suspect has failed."""
        if self.stopped:
            return {}
        try:
            return next(self._stream, {})
        except MissingDependency:
            raise
        except LayerwiseError as error:
            self.stopped = str(error)
            return {}

    def _noted(self, tensor: str, array: Array) -> Array:
        """Remember a tensor's type, and whether it is the reference's, which then stands for it."""
        self._types[tensor] = array.dtype
        point = self._points[tensor]
        reference = self.reference.get(point.name)
        if not same_bits(point.plain(array), reference):
            return array
        self._same.add(tensor)
        if self._cut.nodes[self._cut.maker[tensor]].op_type == "Constant":
            self._own.add(tensor)
        return array if point.layout else reference

    def _meet(self, here: Sequence[str], made: Mapping[str, Array]) -> Iterator[Met]:
        same = not self._local.varies
        found: dict[str, Result] = {t: made.get(t) for t in here if same and t in made and self._fed_alike(t)}
        found.update((t, None) for t in here if self._is_random(t) or not self._fits(t))
        asked = [tensor for tensor in here if tensor not in found]
        if asked:
            found.update(self._local.run(asked, self._feeds(asked), self._own))
        for tensor in here:
            yield self._met(tensor, made.get(tensor), found.pop(tensor))

    def inputs(self, tensor: str) -> dict[str, Array]:
        """The reference's tensors that the region of the last tensor met reads."""
        return self._feeds([tensor])

    def response(self, met: Met, size: float = 0.0, times: float = 1.0) -> float:
        """Relative L2 change of a tensor's local result when each of its region's inputs is rounded once.

        times: by that many roundings. size: how far that moves each of them (relative L2), 0 for the rounding of its
        own type. Only while the tensor is the last one met. 0 if the region does not run like that.
        """
        feed = self._feeds([met.tensor])
        if size:
            feed = self._plain_feeds(met.tensor)
            moved_feed = {
                name: self._held(name, scattered(array, size, seed)) for seed, (name, array) in enumerate(feed.items())
            }
        else:
            moved_feed = {name: nudged(array, seed, times) for seed, (name, array) in enumerate(feed.items())}
        moved = self.alone(met.tensor, moved_feed)
        still = self.alone(met.tensor, feed) if self._local.varies else met.local
        if moved is None or still is None or moved.shape != still.shape:
            return 0.0
        return relative_l2(moved, still)[0]

    def decided(self, met: Met) -> bool:
        """Whether a tensor's reference differs from its local result only where rounding of what the region reads, to
        the coarser of both sides' types, decides. Only while the tensor is the last one met.
        """
        feed = self._feeds([met.tensor])
        return decided(
            met.reference, feed, lambda moved: self.alone(met.tensor, moved), unit_roundoff(self.read_types(met.tensor))
        )

    def read_types(self, tensor: str) -> list[str]:
        """The types of what a tensor's region reads, on both sides."""
        feeds = self._plain_feeds(tensor)
        here = [np.empty(0, self._types[name]) for name in feeds if name in self._types]
        return [dtype_name(array) for array in (*feeds.values(), *here)]

    def alone(self, tensor: str, feed: Mapping[str, Array], runs: LocalRuns | None = None) -> Array | None:
        """What a tensor's region makes of a feed when it is run by itself (as `runs` does); None where it does not."""
        ((_, made),) = (runs or self._local).run([tensor], feed, self._own)
        return None if made is None or isinstance(made, str) else self._points[tensor].plain(made)

    def _is_random(self, tensor: str) -> bool:
        return any(self._randomness.draws(self._cut.nodes[i]) for i in self.regions.of(tensor).nodes)

    def _fits(self, tensor: str) -> bool:
        """Whether the reference's tensors can stand for what a region reads."""
        feeds = (name for name in self.regions.of(tensor).feeds if name in self._types)
        return all(
            self._points[name].typed or fits(self.reference.get(self._points[name].name), self._types[name])
            for name in feeds
        )

    def _fed_alike(self, tensor: str) -> bool:
        feeds = self.regions.of(tensor).feeds
        return all(name in self._same or name not in self._points for name in feeds)

    def _feeds(self, names: Sequence[str]) -> dict[str, Array]:
        feed = {}
        for name in self.regions.joint(names).feeds:
            point = self._points.get(name)
            if point is None:
                feed[name] = self._fed(name)
            else:
                feed[name] = point.fed(self.reference.get(point.name), self._types.get(name))
        return feed

    def _plain_feeds(self, tensor: str) -> dict[str, Array]:
        """The same as the reference has them."""
        names = self.regions.of(tensor).feeds
        return {n: self.reference.get(self._points[n].name) if n in self._points else self._fed(n) for n in names}

    def read(self, tensor: str) -> list[Array]:
        """What the region of the last tensor met reads, as the reference has it."""
        return list(self._plain_feeds(tensor).values())

    def _held(self, name: str, array: Array) -> Array:
        """A tensor of the reference as the suspect's graph takes it."""
        return self._points[name].fed(array, self._types.get(name)) if name in self._points else array

    def _fed(self, name: str) -> Array:
        if name not in self.feed:
            raise LayerwiseError(f"the suspect fails: {MissingTensor(name)}")
        return self.feed[name]

    def _seen(self, tensor: str, made: Array) -> Seen:
        point = self._points[tensor]
        return Seen(point.name, point.plain(made), self.reference.get(point.name))

    def _met(self, tensor: str, made: Array | None, local: Result) -> Met:
        point = self._points[tensor]
        failure, own = (local, None) if isinstance(local, str) else ("", local)
        same = own is made
        made = None if made is None else point.plain(made)
        own = made if same else None if own is None else point.plain(own)
        return Met(tensor, point.name, self.reference.get(point.name), made, own, failure)
