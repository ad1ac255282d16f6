"""Observing every marked tensor of all sides in one iteration, within a bound on memory.

Or as Polygraphy does: one session, optimised as the runner is, with all marked tensors as its outputs. Outputs are not
fused away, so the session is another one than the plain run's; and it holds all of them at once.
"""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct, field

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.runner import Loadable
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.memory import SEGMENT, device_segment, usual_segment
from layerwise._tool.debugtools.compare.observing.joiner import Fetch, Joiner, Refused, Source
from layerwise._tool.debugtools.compare.observing.run_ahead import Turns
from layerwise._tool.debugtools.compare.observing.store import ArrayStore
from layerwise._tool.debugtools.compare.rows import Pair
from layerwise._tool.debugtools.compare.sides.saved_side import SavedSide
from layerwise._tool.debugtools.compare.sides.side import ModelSide, Side
from layerwise._tool.debugtools.compare.sides.stream import Open, SegmentSession, SessionPool, on_host, short_lived

if TYPE_CHECKING:
    from layerwise._tool.debugtools.compare.observing.on_device import OnDevice
    from layerwise._tool.surgery.cut.segments import GraphCut, Segment
    from layerwise._tool.surgery.cut.sizes import Estimate


class MarkedStream:
    """One run of a side's model with `names` (the comparison's) as outputs. Iterating gives and forgets one by one."""

    def __init__(
        self,
        side: ModelSide,
        names: Sequence[str],
        feed: Mapping[str, Array],
        pool: SessionPool,
        session: Open = on_host,
    ) -> None:
        self._side, self._feed, self._pool, self._session = side, feed, pool, session
        self._names = list(dict.fromkeys(side.own(name) for name in names))
        self._spec = short_lived(side.spec)
        self._key = id(side.model), tuple(self._names), msgspec.json.encode(self._spec), session
        if self._names:
            pool.share(self._key)

    def __iter__(self) -> Iterator[Mapping[str, Array]]:
        if not self._names:
            return
        outputs = dict(self._pool.take(self._key, 0, self._open).infer(self._feed).outputs)
        self._pool.give(self._key, 0)
        for own in self._names:
            if own in outputs:
                yield dict(self._side.naming.named(own, outputs.pop(own)))

    def _open(self) -> SegmentSession:
        model = self._side.model
        data = model.cut.with_outputs(self._names)
        return self._session(self._spec, Loadable(data=data, folder=model.file.folder), self._side.name)


def markable(names: Sequence[str], cut: "GraphCut") -> list[str]:
    """Those of `names` that Polygraphy marks: what Constant nodes make is left out, unless it is a graph output."""
    return [name for name in names if cut.nodes[cut.maker[name]].op_type != "Constant" or name in cut.outputs]


def check_budget(nbytes: int, budget: int | None, resident: int) -> None:
    """UsageError if marked tensors of `nbytes` cannot be held at once within a budget (bytes; None is no limit)."""
    if budget is not None and resident + nbytes > budget:
        raise UsageError(
            f"with --observe marked all marked tensors are held at once, about {nbytes / 1e6:.0f} MB beside "
            f"{resident / 1e6:.0f} MB for the program; the memory budget is {budget / 1e6:.0f} MB. "
            "Mark fewer tensors, or observe them with --observe every, which streams"
        )


Tap = Callable[[int, str, Array], None]


class ObservationPlan(Struct):
    """What is observed on each side: its segments, and the names (of the comparison's model) it will give.

    at_once: bytes of tensors, where known, of the sides that have no segments but one session that gives all.
    shown: names that get rows (graph outputs are observed for the canary in any case). opaque: names of what is no
    tensor. skipped: layers among them, with the reason; unmatched: names that a side does not have.
    """

    segments: "dict[int, list[Segment]]" = field(default_factory=dict)
    wanted: dict[int, list[str]] = field(default_factory=dict)
    at_once: int = 0
    shown: frozenset[str] = frozenset()
    opaque: frozenset[str] = frozenset()
    skipped: list[str] = field(default_factory=list)
    unmatched: list[str] = field(default_factory=list)

    def compared(self, pairs: Sequence[Pair]) -> int:
        """How many rows an iteration gives."""
        return sum(len(set(self.wanted[a]) & set(self.wanted[b])) for a, b in pairs)


def make_plan(
    sides: Sequence[Side],
    names: Sequence[str],
    outputs: Sequence[str],
    shapes: Mapping[str, Sequence[int]],
    limits: Mapping[int, int],
    at_once: Container[int] = (),
) -> ObservationPlan:
    """Cut each side's graph into segments that together make `names` and `outputs`.

    limits: most bytes of a side's segments. at_once: sides (their indices) that are not cut.
    """
    plan = ObservationPlan(shown=frozenset(names))
    observed = list(dict.fromkeys([*names, *outputs]))
    made: dict[tuple[int, int, tuple[str, ...]], list[Segment]] = {}
    sizes: dict[int, Mapping[str, Estimate]] = {}
    opaque: set[str] = set()
    for side in sides:
        wanted = [name for name in observed if side.has(name)]
        if isinstance(side, ModelSide):
            cut = side.observed.cut
            if id(cut) not in sizes:
                sizes[id(cut)] = cut.estimates({side.own(name): shape for name, shape in shapes.items()})
            known = sizes[id(cut)]
            found = {name: known.get(side.made[side.own(name)]) for name in wanted}
            opaque.update(name for name, estimate in found.items() if estimate and estimate.opaque)
            wanted = [name for name in wanted if name not in opaque]
            key = id(cut), limits[side.index], tuple(side.made[side.own(name)] for name in wanted)
            if side.index in at_once:
                plan.at_once += sum(known[name].nbytes or 0 for name in key[2] if name in known)
            else:
                if key not in made:
                    most = limits[side.index]
                    made[key] = cut.segments(key[2], most, known, rising=most == SEGMENT)
                plan.segments[side.index] = made[key]
        plan.wanted[side.index] = wanted
    plan.opaque = frozenset(opaque)
    plan.skipped = [f"{shown(name, 120)}: not a tensor" for name in names if name in opaque and name not in outputs]
    plan.unmatched = _unmatched(sides, plan, names, opaque)
    return plan


def _unmatched(sides: Sequence[Side], plan: ObservationPlan, names: Sequence[str], opaque: set[str]) -> list[str]:
    """Marked tensors that some model lacks; a file holds what it holds."""
    found = []
    for side in sides:
        if isinstance(side, ModelSide) and side.observed.executed:
            found += side.observed.unmatched
        elif isinstance(side, ModelSide):
            there = set(plan.wanted[side.index]) | opaque | side.naming.idle
            found += [f"{shown(n, 120)}: not in {shown(side.name, 80)}" for n in names if n not in there]
    return found


class Observer:
    """Runs plans. Sessions are shared by sides that are configured alike. device: keeps tensors of its sides.

    turns: whoever runs something else meanwhile takes them.
    """

    def __init__(
        self,
        sides: Sequence[Side],
        pairs: Sequence[Pair],
        keep_sessions: bool,
        spill: Path,
        device: "OnDevice | None" = None,
    ) -> None:
        self._sides, self._pairs, self._spill, self._device = sides, pairs, spill, device
        self._pool = SessionPool(keep_sessions)
        self.turns = Turns()

    def run(
        self,
        plan: ObservationPlan,
        iteration: int,
        feeds: Mapping[int, Mapping[str, Array]],
        wait_limit: int,
        tap: Tap,
        refused: Refused,
    ) -> Iterator[tuple[Pair, str, Array, Array]]:
        """Give the pairs' tensors of one iteration. `tap` sees every tensor of every side once, as it is made.

        refused: gets those of files whose pieces make no whole.

        wait_limit: bytes of tensors that may wait in memory for their counterparts; the rest wait in files.
        """
        streams: dict[int, Source] = {}
        fetch: dict[int, Fetch] = {}
        for side in self._sides:
            if isinstance(side, ModelSide):
                streams[side.index] = self._stream(side, plan, feeds[side.index], tap)
            elif isinstance(side, SavedSide):
                fetch[side.index] = _fetcher(side, iteration)
        store = ArrayStore(wait_limit, self._spill)
        try:
            yield from Joiner(streams, fetch, plan.wanted, self._pairs, store, refused).run()
        finally:
            store.close()
            self._pool.forget()

    def segments(self, most: int | None) -> dict[int, int]:
        """Bytes of each side's segments: `most` where memory is bounded, else what suits the side."""
        if most is not None:
            return {side.index: most for side in self._sides}
        there = self._device.sides if self._device else frozenset()
        free = device_segment(self._device.free()) if self._device else 0
        return {side.index: free if side.index in there else usual_segment([side.spec]) for side in self._sides}

    def _stream(self, side: ModelSide, plan: ObservationPlan, feed: Mapping[str, Array], tap: Tap) -> Source:
        session = self._session(side)
        if side.index in plan.segments:
            there = self._device is not None and side.index in self._device.sides
            source = side.stream(plan.segments[side.index], feed, self._pool, session, soon=there)
        else:
            source = iter(MarkedStream(side, plan.wanted[side.index], feed, self._pool, session))
        return self._tapped(side.index, source, tap)

    def _tapped(self, index: int, source: Source, tap: Tap) -> Source:
        while True:
            with self.turns.step():
                made = next(source, None)
            if made is None:
                return
            for name, array in made.items():
                tap(index, name, array)
            yield made

    def _session(self, side: ModelSide) -> Open:
        """On its device, unless tensors have to be put into another layout."""
        laid_out = side.naming.laid_out or any(layout for _, layout in (side.observed.names or {}).values())
        stays = self._device is not None and side.index in self._device.sides and not laid_out
        return self._device.session if self._device is not None and stays else on_host

    def close(self) -> None:
        """Close all sessions."""
        self._pool.close()


def _fetcher(side: SavedSide, iteration: int) -> Fetch:
    def fetch(name: str, like: Array | None) -> Array:
        if like is not None:
            side.settle(name, like.shape, str(like.dtype))
        return side.fetch(iteration, name)

    return fetch
