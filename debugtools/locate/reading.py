"""From a tensor that was met to its row in the layer table, and to what it says of its node."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from backends.tensors import dtype_name
from debugtools.compare.comparing import Comparer
from debugtools.compare.layers import Ledger, Row, layer_row
from debugtools.compare.metrics import Comparison
from debugtools.compare.places import Places
from debugtools.locate.diagnosis import diagnose
from debugtools.locate.errors import Error, error_from, error_of
from debugtools.locate.suspects import Suspect
from debugtools.locate.walk import Met

if TYPE_CHECKING:
    from surgery.cut import GraphCut

_ROUNDED_BY = {"QuantizeLinear": "bfloat16", "DynamicQuantizeLinear": "bfloat16"}  # 8 bits of the largest value


class Reader:
    """Reads the tensors of one iteration. region: positions of a tensor's nodes in `cut`, the suspect's model.

    mode: how the suspect is observed, as rows of the layer table have it.
    """

    def __init__(
        self,
        iteration: int,
        comparer: Comparer,
        cut: "GraphCut",
        region: Callable[[str], tuple[int, ...]],
        mode: str,
    ) -> None:
        self._iteration, self._comparer, self._cut, self._region, self._mode = iteration, comparer, cut, region, mode
        self._places: Places = comparer.places
        self._ledger = Ledger(comparer.places)
        self._errors: dict[str, float] = {}

    def read(self, met: Met) -> tuple[Row, Suspect | None]:
        """Return the tensor's row, and what there is to suspect."""
        place, region = self._places.place(met.name), self._region(met.name)
        result, accumulated, judged = self._accumulated(met, place.depth)
        local = self._local(met, result, region)
        word = "kernel" if met.failure else diagnose(local, accumulated, *judged)
        reference_name = self._comparer.sides[1].own(met.name)
        row = layer_row(self._iteration, (0, 1), met.name, reference_name, self._mode, place, result, judged)
        row |= {"local": local.rel if local else None, "local_abs": local.abs if local else None, "diagnosis": word}
        before = self._inputs(region)
        if accumulated is not None:
            self._errors[met.name] = accumulated.rel
        if not (met.failure or (local and local.rel > 0) or word in ("overflow", "nan", "ill-conditioned")):
            return row, None
        suspect = Suspect(
            place, met.name, word, local, accumulated, judged[0], region, self._iteration, before, met.failure
        )
        return row, suspect

    def _accumulated(self, met: Met, depth: int) -> tuple[Comparison, Error | None, tuple[float | None, str]]:
        if met.accumulated is None:
            return self._not_reached(met), None, (None, "")
        result = self._comparer.compare(met.name, met.accumulated, met.reference)
        judged = self._ledger.judge(met.name, result)
        return result, error_from(result, met.accumulated, met.reference, (), depth), judged

    def _not_reached(self, met: Met) -> Comparison:
        """The row of a tensor that the suspect failed before."""
        kind, shape = dtype_name(met.reference), met.reference.shape
        rule = self._comparer.tolerances.rule(met.name)
        return Comparison((kind, kind), (shape, shape), rule, note="the suspect fails before this tensor")

    def _local(self, met: Met, result: Comparison, region: Sequence[int]) -> Error | None:
        if met.local is None:
            return None
        low = [kind for i in region for kind in _rounding(self._cut.nodes[i])]
        if met.local is met.accumulated:
            return error_from(result, met.local, met.reference, low, len(region))
        return error_of(met.local, met.reference, low, len(region))

    def _inputs(self, region: Sequence[int]) -> float:
        """The largest error of what a region reads."""
        names = (self._comparer.sides[0].common(name) for i in region for name in self._cut.reads[i])
        return max((self._errors.get(name, 0.0) for name in names), default=0.0)


def _rounding(node: Any) -> list[str]:
    """The dtypes that a node rounds to, which the types of the region's tensors do not tell."""
    if node.op_type == "Cast":
        return [dtype_name(int(a.i)) for a in node.attribute if a.name == "to"]
    return [_ROUNDED_BY[node.op_type]] if node.op_type in _ROUNDED_BY else []
