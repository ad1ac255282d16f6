"""What several nodes in low precision come to together, from what each does alone. Without numpy: the app asks too."""

import math
from collections.abc import Iterable, Mapping

from layerwise._tool.debugtools.search.lens.rows import EffectRow


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
    return max(errors.values(), default=0.0)
