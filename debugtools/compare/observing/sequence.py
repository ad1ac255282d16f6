"""Runners one after the other: all iterations of the first, then all of the next, one session at a time."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.results.inference import IterationResult
from layerwise._tool.debugtools.compare.memory import WAITING
from layerwise._tool.debugtools.compare.observing.store import ArrayStore, LazyArrays
from layerwise._tool.debugtools.compare.sides.side import Side

Feed = Mapping[str, Array]
Plain = Callable[[Side, int, Feed], IterationResult]


class _Kept(LazyArrays):
    """Arrays that lie in a store."""

    def __init__(self, store: ArrayStore, key: Hashable, arrays: Mapping[str, Array]) -> None:
        super().__init__(arrays, lambda name: store.get((key, name)))
        self._store, self._key = store, key
        for name, array in arrays.items():
            store.put((key, name), array)

    def drop(self) -> None:
        for name in self:
            self._store.drop((self._key, name))


def in_sequence(
    sides: Sequence[Side], feeds: Iterable[Feed], plain: Plain, folder: Path
) -> Iterator[tuple[Feed, list[IterationResult]]]:
    """Run `plain` for each side in turn over all feeds, then give the iterations.

    What does not fit in memory meanwhile waits in `folder`.
    """
    store = ArrayStore(WAITING, folder)
    try:
        kept = [_Kept(store, ("feed", number), feed) for number, feed in enumerate(feeds)]
        results: list[list[IterationResult]] = [[] for _ in kept]
        for side in sides:
            for number, feed in enumerate(kept):
                result = plain(side, number, dict(feed))
                outputs = _Kept(store, (number, side.index), result.outputs)
                results[number].append(IterationResult(outputs, result.runtime, result.runner_name))
            side.close()
        for feed, found in zip(kept, results, strict=True):
            yield feed, found
            for arrays in (feed, *(result.outputs for result in found)):
                if isinstance(arrays, _Kept):
                    arrays.drop()
    finally:
        store.close()
