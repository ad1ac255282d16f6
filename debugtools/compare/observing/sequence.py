"""Runners one after the other: all iterations of the first, then all of the next, one session at a time."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.results.inference import IterationResult
from layerwise._tool.debugtools.compare.memory import WAITING
from layerwise._tool.debugtools.compare.observing.store import ArrayStore
from layerwise._tool.debugtools.compare.sides.side import Side

Feed = Mapping[str, Array]
Plain = Callable[[Side, int, Feed], IterationResult]


class _Kept(Mapping[str, Array]):
    """Arrays that lie in a store, each read when asked for."""

    def __init__(self, store: ArrayStore, key: Hashable, arrays: Mapping[str, Array]) -> None:
        self._store, self._key, self._names = store, key, list(arrays)
        for name, array in arrays.items():
            store.put((key, name), array)

    def __getitem__(self, name: str) -> Array:
        if name not in self._names:
            raise KeyError(name)
        return self._store.get((self._key, name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def drop(self) -> None:
        for name in self._names:
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
