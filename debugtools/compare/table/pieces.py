"""Dumps as sides: how they were read is said, and what ranks have pieces of is joined to the counterpart's shape."""

from collections.abc import Iterator, Mapping, Sequence

from layerwise._tool.backends.arrays import Array, Feed
from layerwise._tool.backends.dumps.ranks import Unclear
from layerwise._tool.backends.results.inference import IterationResult
from layerwise._tool.backends.tensors import dtype_name
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.pairing.counterparts import Counterparts, RenamedOutputs
from layerwise._tool.debugtools.compare.rows import NotCompared, Pair
from layerwise._tool.debugtools.compare.sides.saved_side import SavedSide
from layerwise._tool.debugtools.compare.sides.side import Side
from layerwise._tool.debugtools.compare.table.comparison import RowContext

_NAMED = 3


def tell_dumps(shared: RowContext) -> None:
    """Say how the dumps among the sides were read."""
    for side in shared.sides:
        for note in side.notes if isinstance(side, SavedSide) else ():
            shared.context.log(f"{shown(side.name, 80)}: {note}")


def note_unclear(shared: RowContext, number: int, pair: Pair, name: str, why: str) -> None:
    """Note a tensor of a dump that cannot be told for sure."""
    shared.left_out.add(NotCompared(name, "unclear", why, pair, number))


def settled(shared: RowContext, number: int, feed: Feed, results: Sequence[IterationResult]) -> list[IterationResult]:
    """The results of an iteration with those outputs whose pieces were joined; the rest is noted."""
    found = list(results)
    for side in shared.sides:
        if isinstance(side, SavedSide) and side.unsure:
            for pair in (pair for pair in shared.pairs if side.index in pair):
                other = shared.sides[pair[0] if pair[1] == side.index else pair[1]]
                others = results[other.index].outputs
                _settle(shared, number, pair, side, other, others)
                _refuse(shared, number, pair, side, others, side.plain(number, feed).outputs)
            found[side.index] = side.plain(number, feed)
    return found


def but_refused(shared: RowContext, pair: Pair, found: Counterparts) -> Counterparts:
    """What belongs together but for tensors whose pieces were not joined, which are noted as such."""
    sides = [side for side in (shared.sides[index] for index in pair) if isinstance(side, SavedSide)]
    refused = {name for side in sides for name in side.refused}
    if refused:
        first, second = ([name for name in names if name not in refused] for names in found.alone)
        found.uneven = [each for each in found.uneven if each.name not in refused]
        found.alone = first, second
        found.absent = [name for name in found.absent if name not in refused]
    return found


def _settle(
    shared: RowContext, number: int, pair: Pair, side: SavedSide, other: Side, outputs: Mapping[str, Array]
) -> None:
    described = outputs.described() if isinstance(outputs, RenamedOutputs) else None
    known = {name: (shape, kind) for name, kind, shape in described} if described is not None else None
    doubtful = other.unsure if isinstance(other, SavedSide) else ()
    for name in side.unsure:
        if name in outputs and name not in doubtful:
            shape, kind = known[name] if known is not None else (outputs[name].shape, dtype_name(outputs[name]))
            try:
                side.settle(name, shape, kind)
            except Unclear as error:
                side.refused[name] = str(error)
                note_unclear(shared, number, pair, name, str(error))


def _refuse(
    shared: RowContext, number: int, pair: Pair, side: SavedSide, others: Mapping[str, Array], own: Mapping[str, Array]
) -> None:
    for name in [name for name in side.pieces if name in others and name in own]:
        try:
            own[name]
        except Unclear as error:
            side.refused[name] = str(error)
            note_unclear(shared, number, pair, name, str(error))


def tell_joined(shared: RowContext) -> None:
    """Say how pieces were joined, each way once."""
    for side in shared.sides:
        for text in joined_lines(side) if isinstance(side, SavedSide) else ():
            if text not in shared.said:
                shared.said.add(text)
                shared.context.log(text)


def joined_lines(side: SavedSide) -> Iterator[str]:
    """How the pieces that were read were joined, a line for each way."""
    ways: dict[str, list[str]] = {}
    for name, way in side.joined.items():
        ways.setdefault(way, []).append(name)
    for way, names in ways.items():
        told = ", ".join(shown(name, 80) for name in names[:_NAMED]) + ", …" * (len(names) > _NAMED)
        yield f"{shown(side.name, 80)}: {len(names)} tensors in pieces are {way}: {told}"
