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
from layerwise._tool.debugtools.compare.observing.store import ArrayStore
from layerwise._tool.debugtools.compare.sides.side import ModelSide, SavedSide, Side
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
Pair = tuple[int, int]
Source = Iterator[Mapping[str, Array]]


class Joiner:
    """streams: side -> tensors as they are made (names of the comparison's model).

    fetch: sides that give any tensor at any time (files); wanted: side -> the names it will give.
    """

    def __init__(
        self,
        streams: Mapping[int, Source],
        fetch: Mapping[int, Callable[[str], Array]],
        wanted: Mapping[int, Sequence[str]],
        pairs: Sequence[Pair],
        store: ArrayStore,
    ) -> None:
        self._streams = dict(streams)
        self._fetch = fetch
        self._wanted = {side: dict.fromkeys(names) for side, names in wanted.items()}
        self._pairs = pairs
        self._store = store
        self._given = dict.fromkeys(streams, 0)

    def run(self) -> Iterator[tuple[Pair, str, Array, Array]]:
        """Give each pair's tensors; the side that is furthest behind goes on."""
        yield from self._files_only()
        while self._streams:
            side = min(self._streams, key=self._progress)
            made = next(self._streams[side], None)
            if made is None:
                del self._streams[side]
                continue
            for name, array in made.items():
                if name in self._wanted[side]:
                    self._given[side] += 1
                    yield from self._arrive(side, name, array)

    def _progress(self, side: int) -> tuple[float, int]:
        return self._given[side] / max(1, len(self._wanted[side])), side

    def _partners(self, side: int, name: str) -> list[Pair]:
        return [
            pair
            for pair in self._pairs
            if side in pair and name in self._wanted[pair[0]] and name in self._wanted[pair[1]]
        ]

    def _arrive(self, side: int, name: str, array: Array) -> Iterator[tuple[Pair, str, Array, Array]]:
        for pair in self._partners(side, name):
            other = pair[1] if pair[0] == side else pair[0]
            if other in self._fetch:
                counterpart = self._fetch[other](name)
            elif (pair, other, name) in self._store:
                counterpart = self._store.get((pair, other, name))
                self._store.drop((pair, other, name))
            else:
                self._store.put((pair, side, name), array)
                continue
            yield (pair, name, array, counterpart) if pair[0] == side else (pair, name, counterpart, array)

    def _files_only(self) -> Iterator[tuple[Pair, str, Array, Array]]:
        for pair in self._pairs:
            if pair[0] in self._fetch and pair[1] in self._fetch:
                for name in self._wanted[pair[0]]:
                    if name in self._wanted[pair[1]]:
                        yield pair, name, self._fetch[pair[0]](name), self._fetch[pair[1]](name)


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
    limit: int | None,
    at_once: Container[int] = (),
) -> ObservationPlan:
    """Cut each side's graph into segments of at most `limit` bytes that together make `names` and `outputs`.

    at_once: sides (their indices) that are not cut.
    """
    from layerwise._tool.surgery.cut.sizes import estimates

    plan = ObservationPlan(shown=frozenset(names))
    observed = list(dict.fromkeys([*names, *outputs]))
    made: dict[tuple[int, tuple[str, ...]], list[Segment]] = {}
    sizes: dict[int, dict[str, Estimate]] = {}
    opaque: set[str] = set()
    for side in sides:
        wanted = [name for name in observed if side.has(name)]
        if isinstance(side, ModelSide):
            cut = side.observed.cut
            if id(cut) not in sizes:
                sizes[id(cut)] = estimates(cut.model, {side.own(name): shape for name, shape in shapes.items()})
            known = sizes[id(cut)]
            found = {name: known.get(side.made[side.own(name)]) for name in wanted}
            opaque.update(name for name, estimate in found.items() if estimate and estimate.opaque)
            wanted = [name for name in wanted if name not in opaque]
            key = id(cut), tuple(side.made[side.own(name)] for name in wanted)
            if side.index in at_once:
                plan.at_once += sum(known[name].nbytes or 0 for name in key[1] if name in known)
            else:
                if key not in made:
                    made[key] = cut.segments(key[1], limit, known)
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
    """Runs plans. Sessions are shared by sides that are configured alike. device: keeps tensors of its sides."""

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

    def run(
        self, plan: ObservationPlan, iteration: int, feeds: Mapping[int, Mapping[str, Array]], wait_limit: int, tap: Tap
    ) -> Iterator[tuple[Pair, str, Array, Array]]:
        """Give the pairs' tensors of one iteration. `tap` sees every tensor of every side once, as it is made.

        wait_limit: bytes of tensors that may wait in memory for their counterparts; the rest wait in files.
        """
        streams: dict[int, Source] = {}
        fetch: dict[int, Callable[[str], Array]] = {}
        for side in self._sides:
            if isinstance(side, ModelSide):
                streams[side.index] = self._stream(side, plan, feeds[side.index], tap)
            elif isinstance(side, SavedSide):
                fetch[side.index] = _fetcher(side, iteration)
        store = ArrayStore(wait_limit, self._spill)
        try:
            yield from Joiner(streams, fetch, plan.wanted, self._pairs, store).run()
        finally:
            store.close()
            self._pool.forget()

    def _stream(self, side: ModelSide, plan: ObservationPlan, feed: Mapping[str, Array], tap: Tap) -> Source:
        session = self._session(side)
        if side.index in plan.segments:
            source = side.stream(plan.segments[side.index], feed, self._pool, session)
        else:
            source = iter(MarkedStream(side, plan.wanted[side.index], feed, self._pool, session))
        for made in source:
            for name, array in made.items():
                tap(side.index, name, array)
            yield made

    def _session(self, side: ModelSide) -> Open:
        """On its device, unless tensors have to be put into another layout."""
        laid_out = side.naming.laid_out or any(layout for _, layout in (side.observed.names or {}).values())
        stays = self._device is not None and side.index in self._device.sides and not laid_out
        return self._device.session if self._device is not None and stays else on_host

    def close(self) -> None:
        """Close all sessions."""
        self._pool.close()


def _fetcher(side: SavedSide, iteration: int) -> Callable[[str], Array]:
    return lambda name: side.fetch(iteration, name)
