"""What repetitions say of a cell whose error is random: how often it is called a regression, flaky, or unsure."""

import random
from collections import Counter
from typing import Any

from layerwise._tool.debugtools.baseline.repetition import beyond, enough
from layerwise._tool.debugtools.matrix.repeating import NEAR


def flaky(cells: int = 1500, elements: int = 16) -> dict[str, Any]:
    """Cells that have failed once, for bounds that normal noise of `elements` elements exceeds more or less often.

    By the bound in standard deviations: how often the cell fails, parts of the findings, and runs until it was sure.
    """
    rng, found = random.Random(1), {}
    for bound in (2.9, 2.5, 2.2, 2.0, 1.8, 1.6, 1.4):
        counts, runs = Counter[str](), 0
        for _ in range(cells):
            values = [0.0]
            while values[0] <= 1.0:
                values[0] = _error(rng, elements) / bound
            while values[0] <= NEAR and not enough(values, 1.0):
                values.append(_error(rng, elements) / bound)
            counts[beyond(values, 1.0).finding if values[0] <= NEAR else "not repeated"] += 1
            runs += len(values)
        fails = sum(_error(rng, elements) > bound for _ in range(4 * cells)) / (4 * cells)
        parts = {name: round(count / cells, 3) for name, count in counts.items()}
        found[str(bound)] = {"fails": round(fails, 2), **parts, "runs": round(runs / cells, 1)}
    return found


def _error(rng: random.Random, elements: int) -> float:
    return max(abs(rng.gauss(0.0, 1.0)) for _ in range(elements))
