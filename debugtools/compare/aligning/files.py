"""Aligns files of tensors (saved outputs, dumps) with a side that runs the comparison's model."""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from layerwise._tool.backends.arrays import Feed
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.align.alignment import AlignedPair, Alignment, Unpaired
from layerwise._tool.debugtools.align.by_value import align_values, dump_graph
from layerwise._tool.debugtools.align.fingerprint import Fingerprint
from layerwise._tool.debugtools.align.side_data import SideData, with_local
from layerwise._tool.debugtools.compare.aligning.by_hand import corrected
from layerwise._tool.debugtools.compare.aligning.given import given_for
from layerwise._tool.debugtools.compare.aligning.graphs import align_graph, digest
from layerwise._tool.debugtools.compare.aligning.layouts import Met, laid_out
from layerwise._tool.debugtools.compare.aligning.saved import names_fail, saved_data, told_saved
from layerwise._tool.debugtools.compare.sides.naming import Naming
from layerwise._tool.debugtools.compare.sides.saved_side import SavedSide
from layerwise._tool.debugtools.compare.sides.side import ModelSide
from layerwise._tool.debugtools.compare.spec import CompareSpec

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext

Look = Callable[[ModelSide, Feed], SideData]
Meet = Callable[[ModelSide, Feed, list[AlignedPair], Iterator[Feed]], dict[str, Met]]


class FileAligner:
    """look: goes through a side's model for its fingerprints. meet: holds a file's tensors against the model's."""

    def __init__(self, context: "JobContext", spec: CompareSpec, look: Look, meet: Meet) -> None:
        self._context, self._spec, self._look, self._meet = context, spec, look, meet
        self._base: SideData | None = None
        self._seen: dict[int, SideData] = {}
        self._given: dict[int, tuple[list[AlignedPair], list[str]]] = {}
        self._names: dict[int, dict[str, str]] = {}
        self._unsure = False

    def align(self, base: ModelSide, side: SavedSide, feed: Feed) -> Alignment | None:
        """Find what a file holds among the tensors of the comparison's model; None where its names tell.

        UsageError for a map that does not fit.
        """
        if self._spec.align == "auto" and not names_fail(side, base):
            return None
        graphs = align_graph(base), dump_graph(list(side.own_results(0)))
        models, paths = (digest(graphs[0]), digest(graphs[1])), (str(base.model.path), side.spec.results or "")
        given = given_for(self._context, self._spec.align, side.asked, models, paths, graphs)
        found = given.map
        if found is None:
            self._context.log(
                f"{shown(side.name, 80)} holds tensors by names that the model does not have: looking for them by "
                "value (--align names does not)"
            )
            self._base = self._base or self._look(base, feed)
            self._seen[side.index] = saved_data(side, self._base)
            self._names[side.index] = {side.common(own): own for own in side.own_results(0)}
            found = self._found(side, self._base, given.pairs)
        self._given[side.index] = given.pairs, given.alone
        return self._applied(base, side, feed, corrected(found, given.pairs, given.alone))

    def again(self, base: ModelSide, side: SavedSide, feed: Feed, local: Mapping[str, Fingerprint]) -> Alignment:
        """Align anew with what the model's nodes make of the file's own tensors: behind a fault these agree."""
        assert self._base is not None
        given, alone = self._given[side.index]
        data = with_local(self._base, local)
        side.naming = Naming(side.asked)
        found = corrected(self._found(side, data, given), given, alone)
        return self._applied(base, side, feed, found)

    def _found(self, side: SavedSide, base: SideData, given: list[AlignedPair]) -> Alignment:
        return align_values(base, self._seen[side.index], self._names[side.index], given)

    def unsure(self) -> bool:
        """Whether a file holds tensors that none of the model's seems to be."""
        return self._unsure

    def _applied(self, base: ModelSide, side: SavedSide, feed: Feed, found: Alignment) -> Alignment:
        cut = base.model.cut
        made = [pair for pair in found.pairs if pair.tensor in cut.maker]
        others = [pair for pair in found.pairs if pair.tensor not in cut.maker]
        wanted = {pair.other for pair in made}
        arrays = ({own: array} for own, array in side.own_results(0).items() if own in wanted)
        laid = list(laid_out(made, self._meet(base, feed, made, arrays), cut))
        pairs = [*(each for each in laid if isinstance(each, AlignedPair)), *others]
        lost = [each[0].other for each in laid if not isinstance(each, AlignedPair)]
        there = {pair.other for pair in pairs}
        unpaired = [*found.unpaired, *(Unpaired(name, 1) for name in dict.fromkeys(lost) if name not in there)]
        found = replace(found, pairs=pairs, unpaired=unpaired)
        side.naming.align(found.pairs, {*cut.inputs, *cut.maker, *cut.initializers, *cut.sparse}, side.own_results(0))
        side.named_anew()
        self._unsure |= side.index in self._seen and any(one.side == 1 for one in found.unpaired)
        for text in told_saved(found, side):
            self._context.log(text)
        return found
