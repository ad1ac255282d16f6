"""What is normal for a suspect: where most of its nodes are off alike, it computes in lower precision as a whole.

One FP16 node among FP32 ones is a culprit; among FP16 ones it is one of many, and only what is off much further, or
makes errors grow, explains anything. The same holds for one operator (convolutions in TF32, say).
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from layerwise._tool.debugtools.compare.table.layers import LEAP
from layerwise._tool.debugtools.locate.suspects import Suspect

STAND_OUT = 16.0
_FEW = 4  # tensors of an operator that are too few to tell what is normal for it
Found = tuple[Suspect, list[str]]


@dataclass
class Crowd:
    """Own errors of floating tensors by operator: of all, and those beyond what rounding explains."""

    _counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    _off: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def add(self, op: str, local: float, *, off: bool) -> None:
        """Take in a tensor's own relative error; off: beyond rounding."""
        self._counts[op] += 1
        if off:
            self._off[op].append(local)

    @property
    def whole(self) -> bool:
        """Whether more than half of all tensors are off."""
        return sum(self._counts.values()) >= _FEW and 2 * sum(map(len, self._off.values())) > sum(self._counts.values())

    @property
    def level(self) -> float:
        """The median of the errors beyond rounding; 0 if the suspect as a whole computes as precisely as its types."""
        return median([e for errors in self._off.values() for e in errors]) if self.whole else 0.0

    def noise(self, op: str) -> float:
        """The own error up to which a tensor of this operator does not stand out."""
        errors, count = self._off.get(op, []), self._counts.get(op, 0)
        usual = median(errors) if count >= _FEW and 2 * len(errors) > count else 0.0
        return STAND_OUT * max(usual, self.level)

    def standing_out(self, found: Sequence[Found]) -> list[Found]:
        """Of suspects, worst first: those that stand out, then those that make errors grow, then one an operator.

        The last are left out where the whole suspect is imprecise: none of them explains anything by itself.
        """
        out, grown, usual = [], [], dict[str, Found]()
        for suspect, outputs in found:
            local = suspect.local
            if local is None or local.onset or not local.rel <= self.noise(suspect.place.op):
                out.append((suspect, outputs))
            elif _grows(suspect):
                grown.append((replace(suspect, word="ill-conditioned"), outputs))
            else:
                usual.setdefault(suspect.place.op, (suspect, outputs))
        grown.sort(key=lambda entry: -(entry[0].amplification or 0.0))
        return [*out, *grown, *([] if self.whole else usual.values())]

    def told(self, op: str) -> str:
        """What a suspect of an operator should know of its like; "" if it is alone."""
        errors, count = self._off.get(op, []), self._counts.get(op, 0)
        if count < _FEW or not 2 * len(errors) > count:
            return ""
        return f"so are {len(errors)} of {count} tensors of {op}, {median(errors):.2g} in the middle"


def _grows(suspect: Suspect) -> bool:
    bad = suspect.accumulated is not None and suspect.accumulated.beyond
    return bad and suspect.amplification is not None and suspect.amplification >= LEAP
