"""Observing what Polygraphy observes: one session, optimised as the runner is, with all marked tensors as its outputs.

Outputs are not fused away, so the session is another one than the plain run's; and it holds all of them at once.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.runner import Loadable
from layerwise._tool.debugtools.compare.sides.side import ModelSide
from layerwise._tool.debugtools.compare.sides.stream import Open, SegmentSession, SessionPool, on_host, short_lived

if TYPE_CHECKING:
    from layerwise._tool.surgery.cut.segments import GraphCut


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
        self._names = [side.own(name) for name in names]
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
                yield {self._side.common(own): outputs.pop(own)}

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
