"""From the errors of single nodes to their effect on the model's outputs.

First order, as in forward error analysis: an error at a tensor reaches the outputs by all paths, each node on the way
multiplies it by its gain, and what arrives by several ways adds up as independent errors do, in squares.
"""

import math
from collections import defaultdict
from collections.abc import Mapping

from layerwise._tool.debugtools.search.precision.measure import Measured
from layerwise._tool.surgery.cut.segments import GraphCut


def effects(cut: GraphCut, measured: Measured) -> dict[int, float]:
    """Node -> predicted relative error of the outputs if it alone is low; inf where it overflows or cannot run, even
    where small errors reach nothing.
    """
    reach = sensitivities(cut, measured.gains)
    return {
        i: _product(local, max((reach[name] for name in cut.nodes[i].output if name), default=0.0))
        for i, local in measured.local.items()
    }


def sensitivities(cut: GraphCut, gains: Mapping[tuple[int, str, str], float]) -> Mapping[str, float]:
    """Tensor -> relative error of the outputs for each unit of relative error in it."""
    squares: defaultdict[str, float] = defaultdict(float, dict.fromkeys(cut.outputs, 1.0))
    by_node: defaultdict[int, list[tuple[str, str, float]]] = defaultdict(list)
    for (i, read, name), gain in gains.items():
        by_node[i].append((read, name, gain))
    for i in sorted(by_node, reverse=True):
        for read, name, gain in by_node[i]:
            squares[read] += gain * gain * squares[name]
    return defaultdict(float, {name: math.sqrt(square) for name, square in squares.items()})


def enough(effect: Mapping[int, float], allowed: float) -> int:
    """How many nodes, the worst first, must be kept for the rest's predicted error to be within `allowed`."""
    left = sum(value * value for value in effect.values() if math.isfinite(value))
    worst = sorted(effect.values(), reverse=True)
    count = sum(not math.isfinite(value) for value in worst)
    while count < len(worst) and left > allowed * allowed:
        left -= worst[count] * worst[count]
        count += 1
    return count


def _product(local: float, reach: float) -> float:
    return local if math.isinf(local) else local * reach
