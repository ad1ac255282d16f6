"""Tensors that come from random numbers.

A seed does not make two sides draw alike: it holds for one backend's generator, and there for the n-th run of one
session. So what was drawn is looked at: where both sides drew the same bits, the operator is judged as any other.
"""

from typing import TYPE_CHECKING

from layerwise._tool.surgery.cut.randomness import RANDOM_OPS, Randomness

if TYPE_CHECKING:
    from layerwise._tool.surgery.cut.segments import GraphCut

MAY_DRAW = RANDOM_OPS | {"Dropout", "If", "Loop", "Scan"}
"""Operators that draw, or do so as their inputs or bodies say."""


def random_origins(cut: "GraphCut") -> dict[str, int]:
    """Return the tensors that come from random numbers, each with the position of a node that draws them.

    A node that draws is the origin of its own outputs.
    """
    randomness = Randomness(cut)
    origins: dict[str, int] = {}
    for i, (node, reads) in enumerate(zip(cut.nodes, cut.reads, strict=True)):
        drawn = i if randomness.draws(node) else next((origins[name] for name in reads if name in origins), None)
        if drawn is not None:
            origins.update(dict.fromkeys(filter(None, node.output), drawn))
    return origins
