"""Pairs of tensors: as both sides have made them, or as a file gives what the other side has made."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.dumps.ranks import Unclear
from layerwise._tool.debugtools.compare.observing.store import ArrayStore
from layerwise._tool.debugtools.compare.rows import Pair

Source = Iterator[Mapping[str, Array]]
Fetch = Callable[[str, Array | None], Array]
"""Gives a tensor of a file; its counterpart comes with its name, where that is made first."""
Refused = Callable[[Pair, str, str], None]


class Joiner:
    """streams: side -> tensors as they are made (names of the comparison's model).

    fetch: sides that give any tensor at any time (files); wanted: side -> the names it will give. refused: gets what
    they do not give for that, with the reason.
    """

    def __init__(
        self,
        streams: Mapping[int, Source],
        fetch: Mapping[int, Fetch],
        wanted: Mapping[int, Sequence[str]],
        pairs: Sequence[Pair],
        store: ArrayStore,
        refused: Refused = lambda *_: None,
    ) -> None:
        self._streams = dict(streams)
        self._refused = refused
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
                try:
                    counterpart = self._fetch[other](name, array)
                except Unclear as error:
                    self._refused(pair, name, str(error))
                    continue
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
                        try:
                            made = self._fetch[pair[0]](name, None), self._fetch[pair[1]](name, None)
                        except Unclear as error:
                            self._refused(pair, name, str(error))
                        else:
                            yield pair, name, *made
