"""Tensors that are off since onnxruntime's kernels for uint8 times int8 saturate on this CPU.

A side that multiplies so is run again by kernels that do not: where most of a tensor's error is gone then, that is why.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeGuard

import onnx
from msgspec.structs import replace

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.onnxrt.saturation import may_saturate, precise, way_of
from layerwise._tool.backends.runner import Loadable, open_runner
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.debugtools.compare.arithmetic.comparison import Comparison
from layerwise._tool.debugtools.compare.arithmetic.metrics import compare_arrays
from layerwise._tool.debugtools.compare.arithmetic.tolerance import Rule
from layerwise._tool.debugtools.compare.quantised.operators import (
    DEQUANTIZE,
    INTEGER,
    OPERATORS,
    SUMMING,
    holds_codes,
)
from layerwise._tool.debugtools.compare.result import Saturated
from layerwise._tool.debugtools.compare.rows import Pair
from layerwise._tool.debugtools.compare.sides.side import ModelSide, Side
from layerwise._tool.debugtools.compare.sides.stream import short_lived
from layerwise._tool.surgery.model.structure import node_label

if TYPE_CHECKING:
    from layerwise._tool.surgery.cut.segments import GraphCut

_MOST = 0.5
_TRIES = 3  # tensors of a pair of sides, each run by itself


def affected(side: Side) -> TypeGuard[ModelSide]:
    """Whether a side multiplies uint8 by int8 with kernels that saturate here."""
    return holds_codes(side) and bool(products(side.model.cut)) and may_saturate(side.spec)


def is_cause(error: float, left: float) -> bool:
    """Whether kernels that do not saturate take most of an error away: relative L2, without and with them. What is not
    finite on one side alone is nothing that saturates."""
    return math.isfinite(error) and left <= _MOST * error


def products(cut: "GraphCut") -> list[int]:
    """Positions of the nodes whose weight is in int8, of such that multiply codes or what the optimiser makes so."""
    return [i for i, node in enumerate(cut.nodes) if any(_is_int8(cut, name) for name in _weights(cut, node))]


def product_label(cut: "GraphCut", nodes: Sequence[int]) -> str:
    """The first of some nodes that multiplies so, "" if none does."""
    known = set(products(cut))
    found = next((i for i in nodes if i in known), None)
    return "" if found is None else f"{cut.nodes[found].op_type} {node_label(cut.nodes[found])}"


def _weights(cut: "GraphCut", node: onnx.NodeProto) -> Iterator[str]:
    """What holds the codes of a node's weight."""
    if node.op_type in INTEGER:
        yield node.input[1]
    elif node.op_type in OPERATORS and node.op_type in (*SUMMING, "DynamicQuantizeLSTM"):
        yield from (node.input[slots.codes] for slots in OPERATORS[node.op_type].reads)
    elif node.op_type in SUMMING:
        made = (cut.nodes[cut.maker[name]] for name in node.input[:2] if name in cut.maker)
        yield from (each.input[0] for each in made if each.op_type in DEQUANTIZE)


def _is_int8(cut: "GraphCut", name: str) -> bool:
    return name in cut.initializers and cut.initializers[name].data_type == onnx.TensorProto.INT8


class Saturating:
    """sides: of a comparison. found: of a pair, a tensor that fails for that."""

    def __init__(self, sides: Sequence[Side]) -> None:
        self._sides, self._affected = sides, {side.index: side for side in sides if affected(side)}
        self._tries: Counter[tuple[Pair, bool | None]] = Counter()
        self.found: dict[Pair, Saturated] = {}

    def ask(
        self, pair: Pair, name: str, tensors: tuple[Array, Array], result: Comparison, feed: Mapping[str, Array],
        host: Callable[..., tuple[Array, ...]],
    ) -> None:  # fmt: skip
        """Of a tensor that fails, or is far off: whether it is for that; its note says so, and it fails where rounding
        decides. The first few of a pair are tried.

        feed: the inputs, by the comparison's names. host: brings tensors to the host.
        """
        wrong = [self._affected[i] for i in pair if i in self._affected]
        if not wrong or not result.rel_l2 or pair in self.found or self._tries[pair, result.passed] >= _TRIES:
            return
        self._tries[pair, result.passed] += 1
        try:
            a, b = (self._precise(self._sides[i], name, array, feed)
                    for i, array in zip(pair, host(*tensors), strict=True))  # fmt: skip
        except LayerwiseError:
            return
        left = compare_arrays(a, b, Rule(auto=True), metrics=("simple",)).rel_l2
        if left is None or not is_cause(result.rel_l2, left):
            return
        cut = wrong[0].model.cut
        nodes = products(cut)
        runners, label = [each.name for each in wrong], product_label(cut, nodes)
        self.found[pair] = Saturated(name, result.rel_l2, left, len(nodes), label, runners, wrong[0].index)
        way = way_of(_exact(wrong[0]))
        note = f"kernels saturate on this CPU: with {way} rel L2 is {left:.3g}"
        result.note = f"{result.note}; {note}" if result.note else note
        if result.rule.auto and "simple" in result.verdicts:
            result.verdicts["simple"] = False

    def _precise(self, side: Side, name: str, array: Array, feed: Mapping[str, Array]) -> Array:
        """A tensor as kernels that do not saturate make it."""
        own = side.own(name)
        if not isinstance(side, ModelSide) or side.index not in self._affected or own not in side.model.cut.maker:
            return array
        model = Loadable(data=side.model.cut.with_outputs([own]), folder=side.model.file.folder)
        with open_runner(_exact(side), model, name=side.name) as runner:
            made = runner.infer(side.fit(feed, lambda text: None)).outputs[own]
        held = (layout for tensor, layout in (side.observed.names or {}).values() if tensor == own)
        layout = next(held, None)
        return side.naming.laid(name, layout(made) if layout is not None and layout.typed else made)


def _exact(side: ModelSide) -> RunnerSpec:
    return replace(precise(short_lived(side.spec), side.model.cut.model), model=None)
