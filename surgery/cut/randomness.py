"""Nodes that draw random numbers, whose results differ between runs."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from layerwise._tool.backends.model.reads import subgraphs

if TYPE_CHECKING:
    import onnx

    from layerwise._tool.surgery.cut.segments import GraphCut

RANDOM_OPS = frozenset(
    {
        *("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"),
        *("Bernoulli", "Multinomial"),
    }
)


class Randomness:
    """Determines which nodes of a graph draw, also in their bodies and through the model's functions."""

    def __init__(self, cut: "GraphCut") -> None:
        self._off = {name for name, tensor in cut.initializers.items() if _is_false(tensor)}
        constants = [node for node in cut.nodes if node.op_type == "Constant"]
        self._off |= {name for n in constants for a in n.attribute if _is_false(a.t) for name in n.output}
        self.functions = self._drawing(cut.model.functions)

    def draws(self, node: "onnx.NodeProto") -> bool:
        """True if two runs of the node may differ by chance."""
        return self._draws(node, self.functions)

    def _draws(self, node: "onnx.NodeProto", functions: Collection[str]) -> bool:
        if node.op_type in RANDOM_OPS or node.op_type in functions or self._drops(node):
            return True
        return any(self._draws(inner, functions) for body in subgraphs(node) for inner in body.node)

    def _drawing(self, functions: "Collection[onnx.FunctionProto]") -> frozenset[str]:
        """Return names of functions that draw, directly or by calling another."""
        found: frozenset[str] = frozenset()
        while True:
            names = frozenset(f.name for f in functions if any(self._draws(node, found) for node in f.node))
            if names == found:
                return found
            found = names

    def _drops(self, node: "onnx.NodeProto") -> bool:
        """Return whether it is a Dropout in training mode, or possibly so: from opset 12 on an input decides."""
        switch = node.input[2] if node.op_type == "Dropout" and len(node.input) > 2 else ""
        return bool(switch) and switch not in self._off


def _is_false(tensor: "onnx.TensorProto") -> bool:
    """Return whether a tensor is a single false."""
    if tensor.data_type != tensor.BOOL or len(tensor.raw_data) + len(tensor.int32_data) != 1:
        return False
    return not any(tensor.raw_data) and not any(tensor.int32_data)
