"""How constants are folded, and how large they may become."""

from dataclasses import dataclass
from typing import Literal

SMALL = 256
"""Bytes of a tensor that is folded by default whatever it replaces: a shape, a number, not what was generated."""

KEPT = frozenset({"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"})
"""Operators that engines look for: folding them away would lose the quantisation."""


@dataclass(frozen=True, kw_only=True)
class FoldOptions:
    """passes: at most so many, None: until nothing changes. shapes: use shapes, too. infer: infer them before a pass.

    partitioning: what becomes of a tensor that cannot be computed. None and "basic": what it is computed from stays
    too; "recursive": that is computed as far as it can be.
    threshold: bytes of the largest tensor that becomes a constant; None: `SMALL`, or as many as the weights have that
    are not needed any more then.
    """

    passes: int | None = None
    partitioning: Literal["basic", "recursive"] | None = None
    shapes: bool = True
    infer: bool = True
    threshold: int | None = None


def totals(before: int, after: int) -> str:
    """Return what a pass did to the number of nodes, as Polygraphy says it."""
    return f"    Total Nodes | Original: {before:5}, After Folding: {after:5} | {before - after:5} Nodes Folded"
