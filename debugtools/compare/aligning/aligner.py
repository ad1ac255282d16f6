"""Finds out, with the first inputs, which tensors of two models belong together, and has the sides know it."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.filesystem.files import user_path
from layerwise._tool.backends.jobs.journal.earlier_attempts import Stale, typed
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.align.match import align
from layerwise._tool.debugtools.align.alignment import AlignedPair, Alignment, Unpaired
from layerwise._tool.debugtools.align.side_data import SideData, collect
from layerwise._tool.debugtools.compare.aligning.lacking import names_suffice
from layerwise._tool.debugtools.compare.aligning.layouts import Met, laid_out, meet
from layerwise._tool.debugtools.compare.aligning.map_file import (
    check_map,
    corrected,
    load_by_hand,
    read_map,
    write_map,
)
from layerwise._tool.debugtools.compare.aligning.graphs import align_graph, digest
from layerwise._tool.debugtools.compare.aligning.rows import AlignmentRow
from layerwise._tool.debugtools.compare.aligning.streamed import streamed
from layerwise._tool.debugtools.compare.aligning.told import missing_texts, rows_of, summary
from layerwise._tool.debugtools.compare.memory import Limits, limits, resident
from layerwise._tool.debugtools.compare.sides.setup import Setup
from layerwise._tool.debugtools.compare.sides.side import ModelSide

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext

Feed = Mapping[str, Array]
Shapes = dict[str, tuple[int, ...]]


class Aligner:
    """Aligns each side that runs another model than the comparison's with a side that runs that one."""

    def __init__(self, context: "JobContext", setup: Setup) -> None:
        self._context, self._setup, self._spec = context, setup, setup.spec
        self._shapes: Shapes | None = None
        self._found: dict[int, Alignment] = {}

    def begin(self, feed: Feed) -> None:
        """Take in a feed before anything is run on it. The first one tells which tensors belong together; one of other
        shapes in which layouts. UsageError for a map that does not fit.
        """
        base, others = self._sides()
        shapes = {name: array.shape for name, array in feed.items()}
        if base is None or not others or shapes == self._shapes:
            return
        first, self._shapes = self._shapes is None, shapes
        for side in others:
            if first:
                self._align(base, side, feed)
            elif side.index in self._found:
                self._apply(base, side, feed, self._found[side.index])
        if first:
            self._tell()

    def _sides(self) -> tuple[ModelSide | None, list[ModelSide]]:
        """A side that runs the comparison's model, and those that run another one."""
        model = self._setup.model
        sides = [side for side in self._setup.model_sides if side.model.has_graph]
        base = next((side for side in sides if side.model is model), None)
        return base, [side for side in sides if side.model is not model]

    def _align(self, base: ModelSide, side: ModelSide, feed: Feed) -> None:
        map_path = None if self._spec.align == "auto" else user_path(self._spec.align)
        given = [AlignedPair(name, own, "certain", ("hand",)) for name, own in side.naming.rename.items()]
        given = [pair for pair in given if pair.tensor in base.model.cut.maker]
        if map_path is not None:
            found = self._read(map_path, base, side)
        elif names_suffice(base.model.cut, side):
            return
        else:
            found = self._measured(base, side, feed)
            given += load_by_hand(self._context.folder.parent.parent, found.models)
        self._apply(base, side, feed, _outputs_by_name(corrected(found, given), base, side))

    def _read(self, path: Path, base: ModelSide, side: ModelSide) -> Alignment:
        """The map, with equal names where it says nothing."""
        found = read_map(path)
        check_map(path, found, _models(base, side))
        mine, theirs = base.model.cut.maker, side.model.cut.maker
        for pair in found.pairs:
            _check_there(path, pair.tensor, mine.keys() | set(base.model.cut.inputs), base.name)
            _check_there(path, pair.other, theirs.keys() | set(side.model.cut.inputs), side.name)
        told = {pair.tensor for pair in found.pairs} | {one.tensor for one in found.unpaired if one.side == 0}
        taken = {pair.other for pair in found.pairs} | {one.tensor for one in found.unpaired if one.side == 1}
        alike = [name for name in mine if name in theirs and name not in told and name not in taken]
        named = [AlignedPair(name, name, "certain", ("name",)) for name in alike]
        return replace(found, pairs=[*found.pairs, *named], models=_models(base, side))

    def _measured(self, base: ModelSide, side: ModelSide, feed: Feed) -> Alignment:
        self._context.log(
            f"{shown(side.name, 80)} runs another model, whose names leave tensors of both without counterpart: "
            "finding out which belong together (--align names does not)"
        )
        data = [self._data(each, feed) for each in (base, side)]
        return align(data[0], data[1])

    def _data(self, side: ModelSide, feed: Feed) -> SideData:
        graph = align_graph(side)
        fed = side.fit(feed, self._context.warn)

        def tensors() -> Iterator[tuple[str, Array]]:
            yield from fed.items()
            for name in side.model.cut.initializers:
                yield name, side.model.file.array(name)
            for made in streamed(side, fed, self._limits().segment):
                yield from made.items()

        return collect(graph, tensors(), digest(graph))

    def _limits(self) -> Limits:
        return limits(self._spec.memory_budget, resident())

    def _apply(self, base: ModelSide, side: ModelSide, feed: Feed, found: Alignment) -> None:
        """Find out the layouts, and have the side know its names."""
        pairs: list[AlignedPair] = []
        unpaired = list(found.unpaired)
        for each in laid_out(found.pairs, self._met(base, side, feed, found)):
            if isinstance(each, AlignedPair):
                pairs.append(each)
            else:
                pair, why = each
                unpaired += [Unpaired(pair.tensor, 0, pair.other, None), Unpaired(pair.other, 1, pair.tensor, None)]
                side.naming.missing[pair.tensor] = (
                    f"{shown(side.name, 80)} has it as {shown(pair.other, 120)}, but {why}"
                )
        found = replace(found, pairs=pairs, unpaired=unpaired)
        mine, theirs = base.model.cut, side.model.cut
        names = [{*cut.inputs, *cut.maker, *cut.initializers, *cut.sparse} for cut in (mine, theirs)]
        inputs = [(name, side.own(name)) for name in mine.inputs]
        fed = [AlignedPair(name, own, "certain", ("name",)) for name, own in inputs if own in theirs.inputs]
        side.naming.align([*pairs, *fed], names[0], names[1])
        side.naming.missing = {**missing_texts(found, side), **side.naming.missing}
        self._found[side.index] = found

    def _met(self, base: ModelSide, side: ModelSide, feed: Feed, found: Alignment) -> dict[str, Met]:
        allowed = self._limits()
        names = [pair.tensor for pair in found.pairs], [pair.other for pair in found.pairs]
        streams = (
            streamed(each, each.fit(feed, self._context.warn), allowed.segment, wanted)
            for each, wanted in zip((base, side), names, strict=True)
        )
        return meet(found.pairs, (next(streams), next(streams)), allowed, self._context.artifacts / "aligning")

    def _tell(self) -> None:
        rows = [row for index, found in self._found.items() for row in rows_of(found, (self._base_index(), index))]
        known = typed(self._context.previous_rows("alignment"), AlignmentRow)
        if known and [row.key for row in known] != [row.key for row in rows]:
            raise Stale("other tensors belong together than before")
        for index, found in self._found.items():
            self._context.log(f"{shown(self._setup.sides[index].name, 80)}: {summary(found)}")
            if self._spec.save_align is not None:
                write_map(user_path(self._spec.save_align), found)
        for row in () if known else rows:
            self._context.row("alignment", row)

    def _base_index(self) -> int:
        base, _ = self._sides()
        return base.index if base is not None else 0


def _models(base: ModelSide, side: ModelSide) -> tuple[str, str]:
    return digest(align_graph(base)), digest(align_graph(side))


def _check_there(path: Path, name: str, names: set[str], side: str) -> None:
    if name not in names:
        raise UsageError(f"--align {shown(str(path), 200)}: {shown(side, 80)} makes no tensor {shown(name, 120)!r}")


def _outputs_by_name(found: Alignment, base: ModelSide, side: ModelSide) -> Alignment:
    """The alignment with equal names of outputs as counterparts: those are what a model is used by."""
    mine, theirs = base.model.cut, side.model.cut
    shared = [name for name in mine.outputs if name in mine.maker and name in theirs.maker and name in theirs.outputs]
    known = {pair.tensor: pair for pair in found.pairs}
    fixed = [name for name in shared if name not in known or known[name].other != name]
    by_hand = {pair.tensor for pair in found.pairs if "hand" in pair.reasons}
    return corrected(found, [AlignedPair(name, name, "certain", ("name",)) for name in fixed if name not in by_hand])
