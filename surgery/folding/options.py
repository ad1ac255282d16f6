"""Options of constant folding."""

from dataclasses import dataclass
from typing import Literal

SMALL = 256
"""Bytes of a tensor that is folded by default whatever it replaces: a shape, a number, not what was generated."""

KEPT = frozenset({"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"})
"""Operators that engines look for: folding them away would lose the quantisation."""


@dataclass(frozen=True, kw_only=True)
class FoldOptions:
    """passes: maximum number, None: until nothing changes. shapes: use shapes too. infer: infer them before a pass.

    partitioning: what to do if a tensor cannot be computed. None and "basic": its inputs stay too; "recursive": they
    are folded as far as possible.
    threshold: bytes of the largest tensor that becomes a constant; None: `SMALL`, or the bytes of the weights that
    then become unused.
    """

    passes: int | None = None
    partitioning: Literal["basic", "recursive"] | None = None
    shapes: bool = True
    infer: bool = True
    threshold: int | None = None


def totals(before: int, after: int) -> str:
    """Return the effect of a pass on the number of nodes, in Polygraphy's words."""
    return f"    Total Nodes | Original: {before:5}, After Folding: {after:5} | {before - after:5} Nodes Folded"
