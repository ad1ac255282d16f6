"""The truths of all pairs of a comparison."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from layerwise._tool.backends.arrays import Array
from layerwise._tool.debugtools.compare.observing.store import ArrayStore
from layerwise._tool.debugtools.compare.rows import LayerRow, Pair
from layerwise._tool.debugtools.compare.sides.side import Side

if TYPE_CHECKING:
    from layerwise._tool.debugtools.compare.truth.truths import Truths


class PairTruths(ExitStack):
    """One `Truths` for each pair of sides; none where nobody asks. A context manager: leaving it gives up what is held.

    folder: for tensors that wait for the layers that read them. host: brings a tensor to the host.
    """

    def __init__(
        self, asked: bool, sides: Sequence[Side], pairs: Sequence[Pair], folder: Path, host: Callable[[Array], Array]
    ) -> None:
        super().__init__()
        self._asked, self._sides, self._pairs, self._folder, self._host = asked, sides, pairs, folder, host
        self._of: dict[Pair, Truths] = {}

    def plan(self, wanted: Mapping[int, Sequence[str]], limit: int) -> None:
        """Say what each side gives (the comparison's names), and how many bytes may wait in memory."""
        if not self._asked:
            return
        from layerwise._tool.debugtools.compare.truth.truths import Truths  # it imports all reference operators

        for number, pair in enumerate(self._pairs):
            theirs = set(wanted.get(pair[1], ()))
            store = ArrayStore(limit // len(self._pairs), self._folder / str(number))
            self.callback(store.close)
            names = [name for name in wanted.get(pair[0], ()) if name in theirs]
            self._of[pair] = Truths(self._sides[pair[0]], self._sides[pair[1]], names, store, self._host)

    def begin(self, iteration: int, feeds: Mapping[int, Mapping[str, Array]], earlier: Iterable[LayerRow]) -> None:
        """Start an iteration. feeds: of each side; earlier: its rows that an earlier attempt of the job made."""
        for pair, truths in self._of.items():
            truths.begin(iteration, (feeds.get(pair[0], {}), feeds.get(pair[1], {})))
            for row in earlier:
                if row.pair == pair:
                    truths.recall(row)

    def keep(self, side: int, name: str, array: Array) -> None:
        """Take in a tensor of a side."""
        for pair, truths in self._of.items():
            if side in pair:
                truths.keep(pair.index(side), name, array)

    def told(self, row: LayerRow) -> LayerRow:
        """The row of a tensor that both sides have made, with its truth where that was asked for."""
        truths = self._of.get(row.pair)
        return row if truths is None else structs.replace(row, truth=truths.of(row.tensor, row.rel_l2))

    def done(self, pair: Pair, name: str) -> None:
        """A tensor was compared, or need not be."""
        if pair in self._of:
            self._of[pair].done(name)
