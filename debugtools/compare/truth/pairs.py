"""The truths of all pairs of a comparison."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from msgspec import structs

from layerwise._tool.backends.arrays import Array
from layerwise._tool.debugtools.compare.observing.store import ArrayStore
from layerwise._tool.debugtools.compare.rows import LayerRow, Pair
from layerwise._tool.debugtools.compare.sides.side import Side
from layerwise._tool.debugtools.compare.truth.truths import Truths


class PairTruths(ExitStack):
    """One `Truths` for each pair of sides. A context manager: leaving it gives up what is held.

    wanted: what each side gives (the comparison's names). limit: bytes of tensors that may wait in memory for layers
    that read them; the rest wait in `folder`. host: brings a tensor to the host.
    """

    def __init__(
        self,
        sides: Sequence[Side],
        pairs: Sequence[Pair],
        wanted: Mapping[int, Sequence[str]],
        limit: int,
        folder: Path,
        host: Callable[[Array], Array],
    ) -> None:
        super().__init__()
        self._of: dict[Pair, Truths] = {}
        for number, pair in enumerate(pairs):
            theirs = set(wanted.get(pair[1], ()))
            store = ArrayStore(limit // len(pairs), folder / str(number))
            self.callback(store.close)
            names = [name for name in wanted.get(pair[0], ()) if name in theirs]
            self._of[pair] = Truths(sides[pair[0]], sides[pair[1]], names, store, host)

    def begin(self, iteration: int, feeds: Mapping[int, Mapping[str, Array]], earlier: Iterable[LayerRow]) -> None:
        """Start an iteration. feeds: of each side; earlier: its rows that an earlier attempt of the job made."""
        for pair, truths in self._of.items():
            truths.begin(iteration, (feeds.get(pair[0], {}), feeds.get(pair[1], {})))
        for row in earlier:
            self._of[row.pair].recall(row)

    def keep(self, side: int, name: str, array: Array) -> None:
        """Take in a tensor of a side."""
        for pair, truths in self._of.items():
            if side in pair:
                truths.keep(pair.index(side), name, array)

    def told(self, row: LayerRow) -> LayerRow:
        """The row of a tensor that both sides have made, with its truth."""
        return structs.replace(row, truth=self._of[row.pair].of(row.tensor, row.rel_l2))

    def done(self, pair: Pair, name: str) -> None:
        """A tensor was compared, or need not be."""
        self._of[pair].done(name)
