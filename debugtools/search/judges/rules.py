"""By which tolerance an inner tensor is judged: not by the one that suits the final output.

What the user sets for outputs (an absolute 1e-5 by default) says nothing of a tensor of another scale. An inner tensor
is judged by the bound that its dtype implies (debugtools.compare.arithmetic.tolerance), unless the user gave it an atol
or rtol, by name or for all tensors. The bound is eight times the one of the layer table:

    rtol = 128 u sqrt(depth)        atol = rtol * rms(reference)        depth: nodes in a row within the candidate

7.6e-6 for one float32 node. Optimisation and other kernels move tensors by about 1e-6 of their scale, so that clean
nodes stay below it: in DenseNet-121, ResNet-50 and Inception v2 on the CPU the worst of 1,595 single nodes came to
0.34 of it, and the worst of 450 larger cuts, optimised against not, to 1.06. A tolerance of the user's that is tighter
than the bound blames nobody: what is within the bound passes in any case. Where a candidate is beyond it because it
magnifies rounding, not because it computes wrongly, its inputs tell: moved by a few units in the last place, they move
the output as far. See `debugtools.search.judges.conditioning`.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import msgspec

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.tensors import dtype_name
from layerwise._tool.debugtools.compare.arithmetic.metrics import Comparison, compare_arrays
from layerwise._tool.debugtools.compare.arithmetic.tolerance import Tolerances, unit_roundoff
from layerwise._tool.debugtools.compare.spec import CompareSpec, MetricName

_WIDER = 64  # in depth: eight times the bound
_TWICE = 2.0
_FREE_OF_SCALE = frozenset({"simple", "cosine_similarity", "psnr", "snr"})


class InnerRules:
    """Compares inner tensors by a comparison's rules, made fit for them.

    level: relative error that most of the suspect's nodes have by themselves, 0 for one that computes as its types do.
    """

    def __init__(self, spec: CompareSpec, level: float = 0.0) -> None:
        self._level = level
        self._tolerances = Tolerances(msgspec.structs.replace(spec.tolerance, auto=True))
        self._metrics = cast(Sequence[MetricName], [m for m in spec.metrics if m in _FREE_OF_SCALE] or ["simple"])

    def compare(self, name: str, a: Array, reference: Array, depth: int) -> Comparison:
        """Compare a tensor with the reference's; depth: nodes in a row behind it in the candidate."""
        rule = self._tolerances.rule(name)
        unit = unit_roundoff((dtype_name(a), dtype_name(reference)))
        wider = max(_WIDER, round((_TWICE * self._level / unit) ** 2)) if unit else _WIDER
        result = compare_arrays(a, reference, rule, metrics=self._metrics, depth=wider * depth)
        if result.passed is False and not rule.auto:
            bound = compare_arrays(a, reference, replace(rule, auto=True), metrics=self._metrics, depth=wider * depth)
            return bound if bound.passed else result
        return result
