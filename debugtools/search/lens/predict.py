"""What several nodes in low precision come to together, from what each does alone. Without numpy: the app asks too."""

import math
from collections.abc import Iterable, Mapping, Sequence

from layerwise._tool.debugtools.search.lens.rows import EffectRow, FrontierPoint

_POINTS = 40


def predicted(rows: Mapping[int, EffectRow], low: Iterable[int]) -> dict[str, float]:
    """Output -> the error of these candidates together, by squares of their single ones; inf where one is.

    What all its makers have rounded a node does not round again: of FP16 and bfloat16 that counts once.
    """
    sums: dict[str, float] = {}
    chosen = frozenset(low)
    for i in chosen:
        fed = rows[i].fed_by
        for effect in rows[i].effects if fed is None or not chosen.issuperset(fed) else rows[i].stored:
            if not effect.changed:
                error = math.inf if effect.error is None else effect.error
                sums[effect.name] = sums.get(effect.name, 0.0) + error * error
    return {name: math.sqrt(value) for name, value in sums.items()}


def worst(errors: Mapping[str, float]) -> float:
    """The largest of the outputs' relative L2 errors, 0 of none."""
    return max(errors.values(), default=0.0)


def frontier(rows: Sequence[EffectRow]) -> list[FrontierPoint]:
    """What is predicted with ever more nodes kept, those first that take the most error for their cost."""
    whole = sum(row.cost for row in rows)
    order = sorted(rows, key=lambda row: -_worth(row, whole))
    at = sorted({round(k * len(order) / _POINTS) for k in range(_POINTS + 1)})
    by_i = {row.i: row for row in rows}
    points = []
    for count in at:
        low = [row.i for row in order[count:]]
        cost = sum(row.cost for row in order[:count])
        error = worst(predicted(by_i, low))
        finite = error if math.isfinite(error) else None
        points.append(FrontierPoint(count, len(low), cost / whole if whole else 0.0, finite))
    return points


def _worth(row: EffectRow, whole: float) -> float:
    effect = math.inf if row.effect is None else row.effect
    return effect * effect / max(row.cost, whole * 1e-6, 1e-12)
