"""A region of a graph evaluated in FP64, node by node: the weights of one node are in memory at a time."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.model.reads import every_node, reads
from layerwise._tool.backends.reference.double_ops import DOUBLE_OPS
from layerwise._tool.backends.reference.evaluate import Evaluation, tensor_array
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.arithmetic.sums import terms
from layerwise._tool.surgery.precision.double import double, double_functions, double_node

if TYPE_CHECKING:
    from layerwise._tool.surgery.cut.segments import GraphCut

Values = dict[str, Array]
_SLOW = frozenset({
    "Resize", "Upsample", "GridSample", "RoiAlign", "DeformConv", "NonMaxSuppression", "MaxUnpool", "Col2Im",
    "ConvTranspose", "LpPool", "TfIdfVectorizer", "STFT", "DFT", "MaxRoiPool",
})  # fmt: skip
_MOST = 1 << 16
"""Elements up to which operators are evaluated that the evaluator computes element by element."""


class NoTruth(Exception):
    """A region cannot be evaluated in FP64; the text says why."""


class DoubleGraph:
    """Evaluates nodes of one graph in FP64. folder: where its external weights are."""

    def __init__(self, cut: "GraphCut", folder: Path) -> None:
        self._cut, self._folder = cut, folder
        self._functions: list[onnx.FunctionProto] | None = None
        self.longest = 1

    def evaluate(self, nodes: Sequence[int], feeds: Sequence[Mapping[str, Array]]) -> list[Values]:
        """Return what the last of `nodes` (positions in order) makes of each of the feeds. NoTruth with the reason.

        feeds: what the nodes read from outside, in any type; floating ones are taken as they are, in FP64. Afterwards
        `longest` is the number of terms of the longest sum.
        """
        self.longest = 1
        found = [{name: double(array) for name, array in feed.items()} for feed in feeds]
        last = {name: i for i in nodes for name in self._cut.reads[i]}
        for i in nodes:
            self._run(self._cut.nodes[i], found)
            for name in (*self._cut.reads[i], *self._cut.nodes[i].output):
                if i != nodes[-1] and last.get(name, -1) <= i:
                    for values in found:
                        values.pop(name, None)
        made = [name for name in self._cut.nodes[nodes[-1]].output if name]
        return [{name: values[name] for name in made} for values in found]

    def _run(self, node: onnx.NodeProto, found: Sequence[Values]) -> None:
        wanted = [name for name in node.output if name]
        try:
            weights = self._weights(node)
            evaluation = Evaluation(self._alone(node), None, DOUBLE_OPS)
            for values in found:
                feed = {name: values[name] if name in values else weights[name] for name in reads(node)}
                _check_size(node, feed)
                made = evaluation.run(feed, wanted)
                values.update({name: _plain(made[name]) for name in wanted})
                self.longest = max(self.longest, _terms(node, feed, made[wanted[0]]))
        except LayerwiseError as error:
            raise NoTruth(f"{shown(node.op_type, 40)} cannot be evaluated in FP64: {_short(error)}") from None
        except KeyError as error:
            raise NoTruth(f"its input {shown(str(error.args[0]), 80)} is not known") from None

    def _weights(self, node: onnx.NodeProto) -> dict[str, Array]:
        named = [name for name in reads(node) if name in self._cut.initializers]
        weights = {name: tensor_array(self._cut.initializers[name], self._folder) for name in named}
        return weights if node.op_type == "Gather" else {name: double(array) for name, array in weights.items()}

    def _called(self, node: onnx.NodeProto) -> list[onnx.FunctionProto]:
        """The model's functions that a node needs, in the model's order."""
        functions = self._functions
        if not functions:
            return []
        known = {(function.domain, function.name): function for function in functions}
        wanted: set[tuple[str, str]] = set()
        waiting = list(every_node([node]))
        while waiting:
            each = waiting.pop()
            key = each.domain, each.op_type
            if key in known and key not in wanted:
                wanted.add(key)
                waiting += every_node(known[key].node)
        return [function for function in functions if (function.domain, function.name) in wanted]

    def _alone(self, node: onnx.NodeProto) -> onnx.ModelProto:
        """A model of one node."""
        outer = self._cut.model
        if self._functions is None:
            self._functions = double_functions(outer.functions)
        part = onnx.ModelProto(ir_version=outer.ir_version, opset_import=outer.opset_import)
        part.functions.extend(self._called(node))
        part.graph.name = "part"
        part.graph.node.append(double_node(node))
        part.graph.input.extend(onnx.ValueInfoProto(name=name) for name in reads(node))
        part.graph.output.extend(onnx.ValueInfoProto(name=name) for name in node.output if name)
        return part


def _check_size(node: onnx.NodeProto, feed: Values) -> None:
    slow = _SLOW & {each.op_type for each in every_node([node])}
    size = max((array.size for array in feed.values() if isinstance(array, np.ndarray)), default=0)
    if slow and size > _MOST:
        raise NoTruth(f"{min(slow)} of {size} elements takes too long in FP64")


def _terms(node: onnx.NodeProto, feed: Values, made: Any) -> int:
    return terms(node, lambda name: getattr(feed.get(name), "shape", None), int(getattr(made, "size", 1)))


def _plain(value: Any) -> Any:
    return double(np.asarray(value)) if isinstance(value, np.ndarray | np.generic) else value


def _short(error: LayerwiseError) -> str:
    return shown(str(error).rpartition("evaluator: ")[2], 120)
