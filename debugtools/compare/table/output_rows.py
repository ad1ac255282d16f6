"""The outputs of plain runs: which belong together, their rows, and what is not compared."""

from collections.abc import Container, Mapping, Sequence

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.names import similar_name
from layerwise._tool.backends.results.inference import IterationResult
from layerwise._tool.backends.runner import element_of
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.pairing.counterparts import Counterparts, RenamedOutputs, counterparts
from layerwise._tool.debugtools.compare.pairing.left_out import NO_VALUE
from layerwise._tool.debugtools.compare.rows import NotCompared, Pair, Reason
from layerwise._tool.debugtools.compare.sides.marks import excluded, shown_outputs
from layerwise._tool.debugtools.compare.sides.saved_side import SavedSide
from layerwise._tool.debugtools.compare.sides.side import Side
from layerwise._tool.debugtools.compare.table.comparison import RowContext
from layerwise._tool.debugtools.compare.table.missing import not_given, nothing_in_common
from layerwise._tool.debugtools.compare.table.pairs import Comparer
from layerwise._tool.debugtools.compare.table.pieces import but_refused

Outputs = Mapping[str, Array]


def plain_rows(shared: RowContext, comparer: Comparer, number: int, results: Sequence[IterationResult]) -> None:
    """Compare all outputs of one iteration. UsageError if a pair has none in common."""
    processed = [_processed(comparer, side, result) for side, result in zip(shared.sides, results, strict=True)]
    for pair in shared.pairs:
        first, second = processed[pair[0]], processed[pair[1]]
        if not shared.spec.strict_names:
            second = _similar(shared, pair, first, second)
        found = paired(shared, pair, first, second)
        if first and second and not found.any():
            raise UsageError(nothing_in_common(shared.sides, pair, first, second))
        comparer.begin_pair(pair, first, second)
        output_rows(shared, comparer, number, pair, (found, first, second), ready=True)


def _similar(shared: RowContext, pair: Pair, first: Outputs, second: Outputs) -> Outputs:
    """The second run's outputs by the names of the first's; a warning for each that is another name. One that the
    first has by its own name belongs to no other.
    """
    side, names = shared.sides[pair[1]], list(second)
    others: dict[str, str] = {}
    used = set(first)
    for place, name in enumerate(first):
        if name in side.declared or element_of(name):
            continue
        own = similar_name(name, names, place, used)
        if own is not None and own != name:
            others[name] = own
            used.add(own)
    for name, own in others.items():
        shared.warn_once(
            f"Output names did not match exactly. Assuming {shown(side.name, 80)} output: {shown(own, 80)} corresponds "
            f"to output: {shown(name, 80)} (--strict-names does not)"
        )
        side.naming.add(name, own)
    side.declared = frozenset(map(side.common, side.declared))
    used = set(others.values())
    return RenamedOutputs(second, {name: name for name in names if name not in used} | others) if others else second


def paired(shared: RowContext, pair: Pair, first: Outputs, second: Outputs) -> Counterparts:
    """Which outputs of two runs belong together. What a user's function makes of them is known by its names alone."""
    declared = [frozenset[str]() if shared.spec.postprocess_script else shared.sides[i].declared for i in pair]
    return but_refused(shared, pair, counterparts(first, second, (declared[0], declared[1])))


def output_rows(
    shared: RowContext,
    comparer: Comparer,
    number: int,
    pair: Pair,
    outputs: tuple[Counterparts, Outputs, Outputs],
    *,
    ready: bool = False,
    observed: Container[str] | None = None,
) -> None:
    """Compare the outputs of one pair, and note what is not compared. ready: outputs are postprocessed.

    observed: tensors that are compared where they are observed, not here; None: nothing is observed.
    """
    found, first, second = outputs
    mode = shared.plain_mode(pair)
    chosen = frozenset(shown_outputs(shared.spec.marks, (*found.common, *(each.name for each in found.uneven))))
    for name in found.common:
        if observed is not None and name in observed:
            continue
        if name not in chosen:
            note_unwanted(shared, number, pair, name)
        elif (number, pair, name) not in shared.done:
            comparer.row(number, pair, name, mode, first[name], second[name], ready=ready)
    for each in found.uneven:
        if each.name in chosen and (number, pair, each.name) not in shared.done:
            comparer.uneven(number, pair, each, mode)
    _missing(shared, number, pair, found, observed)


def note_unwanted(shared: RowContext, number: int, pair: Pair, name: str) -> None:
    """Note an output that the user does not want to see."""
    reason: Reason = "excluded" if excluded(shared.spec.marks, name) else "not marked"
    shared.left_out.add(NotCompared(name, reason, f"{reason}, as asked for", pair, number))


def _missing(shared: RowContext, number: int, pair: Pair, found: Counterparts, observed: Container[str] | None) -> None:
    marks, left = shared.spec.marks, shared.left_out
    for names, having, lacking in zip(found.alone, pair, reversed(pair), strict=True):
        if observed is not None and isinstance(shared.sides[having], SavedSide):
            continue  # a file may hold layers that nobody marked
        for name in shown_outputs(marks, names):
            if observed is None or name not in observed:
                left.add(NotCompared(name, "no counterpart", not_given(shared.sides[lacking]), pair, number))
    for name in shown_outputs(marks, found.absent):
        left.add(NotCompared(name, "no value", NO_VALUE, pair, number))


def _processed(comparer: Comparer, side: Side, result: IterationResult) -> Mapping[str, Array]:
    if not comparer.postprocess:
        return result.outputs
    return comparer.postprocess.outputs(result.outputs, side.name, result.runtime)
