"""Finds out, with the first inputs, which tensors of two models belong together, and has the sides know it."""

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING

from msgspec.structs import replace

from layerwise._tool.backends.arrays import Feed
from layerwise._tool.backends.filesystem.places import user_path
from layerwise._tool.backends.garbage import not_collecting
from layerwise._tool.backends.jobs.journal.earlier_attempts import Stale, typed
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.align.alignment import AlignedPair, Alignment, Unpaired
from layerwise._tool.debugtools.align.file import save_map
from layerwise._tool.debugtools.align.fingerprint import Fingerprint
from layerwise._tool.debugtools.align.match import align
from layerwise._tool.debugtools.align.side_data import SideData, with_local
from layerwise._tool.debugtools.compare.aligning.by_hand import corrected, with_given
from layerwise._tool.debugtools.compare.aligning.ends import with_outputs
from layerwise._tool.debugtools.compare.aligning.files import FileAligner
from layerwise._tool.debugtools.compare.aligning.given import given_for, with_equal_names
from layerwise._tool.debugtools.compare.aligning.graph_reader import GraphReader
from layerwise._tool.debugtools.compare.aligning.graphs import (
    digest,
    whole_numbers,
    without_codes,
)
from layerwise._tool.debugtools.compare.aligning.lacking import what_names_do
from layerwise._tool.debugtools.compare.aligning.layouts import Met, laid_out, meet, met_by_prints
from layerwise._tool.debugtools.compare.aligning.rows import AlignmentRow
from layerwise._tool.debugtools.compare.aligning.scopes import module_pairs
from layerwise._tool.debugtools.compare.aligning.told import missing_texts, rows_of, summary
from layerwise._tool.debugtools.compare.sides.naming import Naming
from layerwise._tool.debugtools.compare.sides.saved_side import SavedSide
from layerwise._tool.debugtools.compare.sides.setup import Setup
from layerwise._tool.debugtools.compare.sides.side import ModelSide

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext

Shapes = dict[str, tuple[int, ...]]
Names = tuple[str, str]


def map_name(index: int) -> str:
    """The file among a job's artifacts that says which tensors of a side belong to which of the comparison's model."""
    return f"alignment-{index}.json"


class Aligner:
    """Aligns each side that runs another model than the comparison's with a side that runs that one."""

    def __init__(self, context: "JobContext", setup: Setup) -> None:
        self._context, self._setup, self._spec = context, setup, setup.spec
        self._shapes: Shapes | None = None
        self._printed: Shapes | None = None  # of the feed that fingerprints are of
        self._found: dict[int, Alignment] = {}
        self._seen: dict[int, tuple[SideData, SideData]] = {}
        self._known: dict[int, dict[Names, Met]] = {}  # of the feed that fingerprints are of
        self._given: dict[int, list[AlignedPair]] = {}
        self._alone: dict[int, list[str]] = {}
        self._whole: dict[int, tuple[frozenset[str], frozenset[str]]] = {}
        self._reader = GraphReader(context, self._spec.memory_budget)
        self._files = FileAligner(context, self._spec, self._reader.base_data, self._met_file)

    def begin(self, feed: Feed) -> None:
        """Take in a feed before anything is run on it. The first one tells which tensors belong together; one of other
        shapes in which layouts. UsageError for a map that does not fit.
        """
        base, others = self._sides()
        files = [side for side in self._setup.sides if isinstance(side, SavedSide)]
        shapes = {name: array.shape for name, array in feed.items()}
        if base is None or not (others or files) or shapes == self._shapes:
            return
        first, self._shapes = self._shapes is None, shapes
        for side in others:
            if first:
                self._align(base, side, feed)
            elif side.index in self._found:
                self._apply(base, side, feed, _as_they_are(self._found[side.index]))
        for file in files if first else ():
            given = self._files.align(base, file, feed)
            if given is not None:
                self._found[file.index] = given
        if first:
            self._tell()

    def _sides(self) -> tuple[ModelSide | None, list[ModelSide]]:
        """A side that runs the comparison's model, and those that run another one."""
        model = self._setup.model
        sides = [side for side in self._setup.model_sides if side.model.has_graph]
        base = next((side for side in sides if side.model is model), None)
        return base, [side for side in sides if side.model is not model]

    def _align(self, base: ModelSide, side: ModelSide, feed: Feed) -> None:
        wrong = what_names_do(base.model.cut, side)
        soon = bool(wrong) and self._spec.align == "auto"
        with self._reader.running(base, side, feed) if soon else nullcontext():
            found = self._found_for(base, side, feed, wrong)
        if found is not None:
            self._apply(base, side, feed, with_outputs(found, base, side, self._seen.get(side.index)))

    def _found_for(self, base: ModelSide, side: ModelSide, feed: Feed, wrong: str) -> Alignment | None:
        """The alignment of two sides, None where equal names do. wrong: what is wrong with these."""
        renamed = {name: own for name, own in side.naming.rename.items() if name in base.model.cut.maker}
        graphs = self._reader.graph(base), self._reader.graph(side)
        paths, models = (str(base.model.path), str(side.model.path)), (digest(graphs[0]), digest(graphs[1]))
        given = given_for(self._context, self._spec.align, renamed, models, paths, graphs)
        if given.map is None and not wrong and not (given.alone or len(given.pairs) > len(renamed)):
            return None
        if given.map is not None or not wrong:
            found = with_equal_names(given.map or Alignment([]), base.model.cut.maker, side.model.cut.maker)
        else:
            self._context.log(
                f"{shown(side.name, 80)} runs another model, whose names {wrong}: finding out which belong together "
                "(--align names does not)"
            )
            found = self._measured(base, side, feed, given.pairs)
        self._given[side.index], self._alone[side.index] = given.pairs, given.alone
        return corrected(found, given.pairs, given.alone)

    def _measured(self, base: ModelSide, side: ModelSide, feed: Feed, given: list[AlignedPair]) -> Alignment:
        with self._reader.running(base, side, feed):
            data = self._reader.data(base, side)
        self._whole[side.index] = whole_numbers(data[0]), whole_numbers(data[1])
        self._seen[side.index] = data
        self._printed = {name: array.shape for name, array in feed.items()}
        self._setup.open_next()  # what follows takes one processor
        return _aligned(data, given)

    def unsure(self) -> bool:
        """Whether tensors were paired though their values differ, by what lies around them or by notes of exporters."""
        known = {"hand", "name", "value"}
        return self._files.unsure() or any(
            known.isdisjoint(pair.reasons)
            for index, found in self._found.items()
            if index in self._seen
            for pair in self._made(found, index).pairs
        )

    def again(self, feed: Feed, local: Mapping[str, Fingerprint]) -> bool:
        """Align anew; return whether other tensors belong together now.

        local: fingerprints of tensors of the comparison's model (in its own layout) as each is made of the other side's
        tensors: behind a fault these agree, where those of the whole run do not.
        """
        base, others = self._sides()
        assert base is not None
        changed = False
        for side in [side for side in others if side.index in self._seen]:
            before = self._pairs(side)
            given = self._given[side.index]
            mine, theirs = self._seen[side.index] = self._reader.with_weights(base, side, self._seen[side.index])
            found = _aligned((with_local(mine, local), theirs), given)
            inputs = [name for name in base.model.cut.inputs if side.own(name) in side.model.cut.inputs]
            side.naming = Naming({name: side.own(name) for name in inputs})
            found = corrected(found, given, self._alone[side.index])
            self._apply(base, side, feed, with_outputs(found, base, side, self._seen[side.index]))
            changed |= self._pairs(side) != before
        for file in self._setup.sides:
            if isinstance(file, SavedSide) and file.index in self._found:
                before = self._pairs(file)
                self._found[file.index] = self._files.again(base, file, feed, local)
                changed |= self._pairs(file) != before
        self._save_all()
        return changed

    def _pairs(self, side: ModelSide | SavedSide) -> set[tuple[str, str]]:
        return {(pair.tensor, pair.other) for pair in self._found[side.index].pairs}

    def _apply(self, base: ModelSide, side: ModelSide, feed: Feed, found: Alignment) -> None:
        """Find out the layouts, and have the side know its names."""
        mine, theirs = base.model.cut, side.model.cut
        made = [pair for pair in found.pairs if pair.tensor in mine.maker and pair.other in theirs.maker]
        fed = [name for name in mine.inputs if side.own(name) in theirs.inputs]
        pairs = [AlignedPair(name, side.own(name), "certain", ("name",)) for name in fed]
        unpaired = [one for one in found.unpaired if one.tensor in (mine, theirs)[one.side].maker]
        why: dict[str, str] = {}
        for each in laid_out(made, self._met(base, side, feed, made), mine, theirs):
            if isinstance(each, AlignedPair):
                pairs.append(each)
                continue
            pair, reason = each
            unpaired += [Unpaired(pair.tensor, 0, pair.other), Unpaired(pair.other, 1, pair.tensor)]
            why[pair.tensor] = f"{shown(side.name, 80)} has it as {shown(pair.other, 120)}, but {reason}"
        found = replace(found, pairs=pairs, unpaired=unpaired)
        names = [{*cut.inputs, *cut.maker, *cut.initializers, *cut.sparse} for cut in (mine, theirs)]
        outputs_first = sorted(pairs, key=lambda pair: pair.tensor not in mine.outputs)
        side.naming.align(outputs_first, names[0], names[1])
        side.naming.missing = {**missing_texts(found, side), **why}
        if self._setup.marks.everything:  # nobody asked for one of them
            side.naming.idle = self._whole.get(side.index, (frozenset(),))[0]
        self._found[side.index] = found

    def _met_file(self, base: ModelSide, feed: Feed, pairs: list[AlignedPair], file: Iterator[Feed]) -> dict[str, Met]:
        mine = self._reader.tensors(base, feed, {pair.tensor for pair in pairs})
        return meet(pairs, (mine, file), self._reader.limits(), self._context.artifacts / "aligning")

    def _met(self, base: ModelSide, side: ModelSide, feed: Feed, pairs: list[AlignedPair]) -> dict[str, Met]:
        """What the tensors of pairs are to each other; only those are made again of which fingerprints do not tell."""
        seen, told, known = self._seen.get(side.index), dict[str, Met](), dict[Names, Met]()
        if seen is not None and self._printed == {name: array.shape for name, array in feed.items()}:
            told, pairs = met_by_prints(pairs, seen[0].prints, seen[1].prints)
            known = self._known.setdefault(side.index, known)
            told |= {pair.tensor: known[pair.names] for pair in pairs if pair.names in known}
            pairs = [pair for pair in pairs if pair.names not in known]
        if not pairs:
            return told
        mine = self._reader.tensors(base, feed, {pair.tensor for pair in pairs})
        theirs = self._reader.tensors(side, feed, {pair.other for pair in pairs})
        found = meet(pairs, (mine, theirs), self._reader.limits(), self._context.artifacts / "aligning")
        known.update({pair.names: found[pair.tensor] for pair in pairs if pair.tensor in found})
        return told | found

    def _tell(self) -> None:
        made = {index: self._made(found, index) for index, found in self._found.items()}
        rows = [row for index, found in made.items() for row in rows_of(found, (self._base_index(), index))]
        known = typed(self._context.previous_rows("alignment"), AlignmentRow)
        if known and [row.key for row in known] != [row.key for row in rows]:
            raise Stale("other tensors belong together than before")
        for index, found in made.items():
            self._context.log(f"{shown(self._setup.sides[index].name, 80)}: {summary(found)}")
        self._save_all()
        for row in () if known else rows:
            self._context.row("alignment", row)

    def _made(self, found: Alignment, index: int) -> Alignment:
        """The alignment of what nodes compute: there is no row for weights, nor for constants that are alone."""
        side = self._setup.sides[index]
        base, _ = self._sides()
        assert base is not None
        if not isinstance(side, ModelSide):
            pairs = [pair for pair in found.pairs if pair.tensor in base.model.cut.maker]
            return replace(found, pairs=pairs, unpaired=[one for one in found.unpaired if one.side == 1])
        made = [each.model.cut.maker for each in (base, side)]
        idle = self._whole.get(index, (frozenset(), frozenset()))
        return replace(
            found,
            pairs=[pair for pair in found.pairs if pair.tensor in made[0] and pair.other in made[1]],
            unpaired=[
                one for one in found.unpaired if one.tensor in made[one.side] and one.tensor not in idle[one.side]
            ],
        )

    def _save_all(self) -> None:
        for number, (index, found) in enumerate(self._found.items()):
            self._save(index, found, first=number == 0)

    def _save(self, index: int, found: Alignment, *, first: bool) -> None:
        """Write the map where it was asked for (of a further model beside it), and for who looks at the job."""
        self._context.artifacts.mkdir(parents=True, exist_ok=True)
        found = with_given(found, self._given.get(index, ()))
        save_map(self._context.artifacts / map_name(index), found)
        if self._spec.save_align is not None:
            path = user_path(self._spec.save_align)
            save_map(path if first else path.with_stem(f"{path.stem}-{index}"), found)

    def _base_index(self) -> int:
        base, _ = self._sides()
        return base.index if base is not None else 0


def _aligned(data: tuple[SideData, SideData], given: list[AlignedPair]) -> Alignment:
    """The alignment; where values do not tell, what modules of one path return belongs together, and more follows."""
    with not_collecting():  # what it makes lives as long as it does
        found = align(*data, given)
        more = list(module_pairs(found, *data))
        return without_codes(align(*data, [*given, *more]) if more else found, *data)


def _as_they_are(found: Alignment) -> Alignment:
    """The alignment without layouts, which are those of some shapes."""
    return replace(found, pairs=[replace(pair, layout=None) for pair in found.pairs])
