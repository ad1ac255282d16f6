"""From the rows of a comparison to the layers of a baseline."""

import math
from collections.abc import Iterable, Mapping, Sequence

from msgspec import UNSET, Struct

from layerwise._tool.debugtools.baseline.facts import Fact
from layerwise._tool.debugtools.baseline.jitter import (
    Way,
    cancelling,
    coarseness,
    is_whole,
    limit,
    peak_limit,
    whole_limit,
)
from layerwise._tool.debugtools.baseline.rows import KeptLayer
from layerwise._tool.debugtools.compare.rows import LayerRow, Pair

Key = tuple[Pair, str]


class Measured(Struct, frozen=True):
    """A layer of now, its first row and what its graph says of it."""

    layer: KeptLayer
    row: LayerRow
    fact: Fact

    @property
    def key(self) -> Key:
        return self.layer.pair, self.layer.layer


def by_layer(rows: Iterable[LayerRow]) -> dict[Key, list[LayerRow]]:
    """The rows of each tensor of a pair, in topological order."""
    found: dict[Key, list[LayerRow]] = {}
    for row in rows:
        if not row.note.startswith("no value") and row.finding != "skip":
            found.setdefault((row.pair, row.tensor), []).append(row)
    order = sorted(found, key=lambda key: (key[0], _place(found[key][0]), key[1]))
    return {key: found[key] for key in order}


def _place(row: LayerRow) -> float:
    return row.i if row.i >= 0 else math.inf if row.op else -1


def errors_of(rows: Sequence[LayerRow]) -> tuple[float | None, float | None, int]:
    """Of a tensor's iterations together: relative L2 error, largest error over the reference's RMS, broken values.

    Of whole numbers the share of those that differ, and no largest error.
    """
    if is_whole(rows[0].dtype):
        return _share(rows), None, 0
    rel = [row.rel_l2 for row in rows]
    peaks = [_peak(row) for row in rows]
    broken = sum(abs(row.nan[0] - row.nan[1]) + abs(row.inf[0] - row.inf[1]) for row in rows)
    return _length(rel), None if None in peaks else max(filter(None, peaks), default=0.0), broken


def _share(rows: Sequence[LayerRow]) -> float | None:
    """The share of elements that differ; None where that is not known."""
    if any(row.over is None for row in rows):
        return None if any(row.passed is False for row in rows) else 0.0
    return sum(row.over or 0 for row in rows) / max(1, sum(row.size for row in rows))


def _length(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None and math.isfinite(value)]
    if len(known) < len(values):
        return None
    return math.sqrt(math.fsum(value * value for value in known) / len(known))


def _peak(row: LayerRow) -> float | None:
    if row.max_abs is UNSET or not math.isfinite(row.max_abs):
        return None
    scale = _rms(row)
    return None if scale is None else float(row.max_abs) / scale if scale else 0.0


def _rms(row: LayerRow) -> float | None:
    stats = row.stats[1] if len(row.stats) > 1 else None
    if stats is None:
        return None
    found = math.hypot(stats.mean, stats.std)
    return found if math.isfinite(found) else None


def times_of(error: float | None, peak: float | None, broken: int, old: KeptLayer) -> float:
    """How many times its limit the error of a layer, or of its worst element, is; inf if it is broken.

    error, peak, broken: of now; old: as a baseline has it.
    """
    if broken > old.broken or (error is None and old.error is not None):
        return math.inf
    return max(_over(error, old.limit), _over(peak, old.peak_limit))


def _over(value: float | None, limit: float) -> float:
    if not value:
        return 0.0
    return value / limit if limit else math.inf


def layers_of(
    rows: Iterable[LayerRow], facts: Mapping[str, Fact], reference: Mapping[str, Fact], *, alike: bool = False
) -> list[Measured]:
    """The layers of a comparison. facts: by the comparison's names; reference: the same of the reference's own model,
    empty where it runs the same one. alike: the sides' runners are the same, and give the same bits in every run.
    """
    found: dict[Key, Measured] = {}
    coarsest = 0.0
    for key, several in by_layer(rows).items():
        first = several[0]
        coarsest = max(coarsest, coarseness(first.dtype))
        fact = facts.get(first.tensor, Fact(depth=len(found) + 1))
        before = [found[key[0], name].layer for name in fact.reads if (key[0], name) in found]
        before = [layer for layer in before if not is_whole(layer.dtype)]
        behind = [layer.error or 0.0 for layer in before]
        cancels = cancelling(first.op, _rms(first), [layer.rms for layer in before])
        theirs = reference.get(first.tensor)
        same = alike and bool(fact.operator) and (theirs is None or theirs.operator == fact.operator)
        layer = _layer(several, fact, max(behind, default=0.0), Way(coarsest, fact.depth, same, cancels))
        if theirs is not None:
            layer = _with_reference(layer, theirs)
        found[key] = Measured(layer, first, fact)
    return list(found.values())


def _layer(rows: Sequence[LayerRow], fact: Fact, behind: float, way: Way) -> KeptLayer:
    first = rows[0]
    error, peak, broken = errors_of(rows)
    size = sum(row.size for row in rows)
    whole = is_whole(first.dtype)
    bound = whole_limit(error or 0.0, size) if whole else limit(error or 0.0, behind, size, way)
    verdicts = [row.passed for row in rows if row.mode in ("plain", "saved") and row.passed is not None]
    return KeptLayer(
        layer=first.tensor, pair=first.pair, op=first.op, node=first.node, dtype=first.dtype, shape=first.shape,
        error=error, limit=bound, peak=peak,
        peak_limit=0.0 if peak is None else peak_limit(peak, error or 0.0, bound, size),
        broken=broken, rms=_rms(first), operator=fact.operator, weights=fact.weights,
        passed=all(verdicts) if verdicts else None,
    )  # fmt: skip


def _with_reference(layer: KeptLayer, theirs: Fact) -> KeptLayer:
    from msgspec.structs import replace

    return replace(layer, reference=f"{theirs.operator}{theirs.weights}")
