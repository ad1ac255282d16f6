"""Rows of graph outputs, from the plain runs."""

from collections.abc import Mapping, Sequence

from backends.errors import UsageError
from backends.results import IterationResult
from backends.text import shown
from debugtools.compare.comparing import Comparer
from debugtools.compare.frame import Array, Frame, Pair
from debugtools.compare.marks import shown_outputs
from debugtools.compare.sides import Side


def plain_rows(frame: Frame, comparer: Comparer, number: int, results: Sequence[IterationResult]) -> None:
    """Compare all outputs of one iteration. UsageError if a pair has none in common."""
    processed = [_processed(comparer, side, result) for side, result in zip(frame.sides, results, strict=True)]
    for pair in frame.pairs:
        first, second = processed[pair[0]], processed[pair[1]]
        if not any(name in second for name in first):
            raise UsageError(_nothing_in_common(frame.sides, pair, first, second))
        comparer.begin_pair(pair, first, second)
        for name in shown_outputs(frame.spec.marks, first):
            if name in second and (number, pair, name) not in frame.done:
                comparer.row(number, pair, name, frame.plain_mode(pair), first[name], second[name], ready=True)


def _processed(comparer: Comparer, side: Side, result: IterationResult) -> Mapping[str, Array]:
    if not comparer.postprocess:
        return result.outputs
    return comparer.postprocess.outputs(result.outputs, side.name, result.runtime)


def _nothing_in_common(
    sides: Sequence[Side], pair: Pair, first: Mapping[str, Array], second: Mapping[str, Array]
) -> str:
    lists = [", ".join(shown(name, 60) for name in list(found)[:10]) or "none" for found in (first, second)]
    return (
        f"no outputs in common: {shown(sides[pair[0]].name, 80)} gives {lists[0]}; "
        f"{shown(sides[pair[1]].name, 80)} gives {lists[1]}. Names must match exactly; map others with --rename"
    )
