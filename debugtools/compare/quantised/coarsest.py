"""The coarsest types that a graph's tensors are rounded to."""

from typing import TYPE_CHECKING

from layerwise._tool.backends.tensors import dtype_name
from layerwise._tool.debugtools.compare.arithmetic.tolerance import rounds_like, unit_roundoff
from layerwise._tool.debugtools.compare.quantised.operators import DYNAMIC, OPERATORS, QUANTIZE

if TYPE_CHECKING:
    import onnx

    from layerwise._tool.surgery.cut.segments import GraphCut

_QUANTIZED = rounds_like("int8")
_QUANTIZERS = frozenset({*OPERATORS, *QUANTIZE, DYNAMIC})


def rounded_to(node: "onnx.NodeProto") -> list[str]:
    """The dtypes that a node rounds to, which the types of its outputs do not tell."""
    if node.op_type == "Cast":
        return [dtype_name(int(a.i)) for a in node.attribute if a.name == "to"]
    return [_QUANTIZED] if node.op_type in _QUANTIZERS else []


def coarsest_types(cut: "GraphCut") -> dict[str, str]:
    """Return the coarsest floating type that each tensor was rounded to on the way from inputs and weights."""
    found = {value.name: dtype_name(value.type.tensor_type.elem_type) for value in cut.model.graph.input}
    found |= {name: dtype_name(tensor.data_type) for name, tensor in cut.initializers.items()}
    for node, reads in zip(cut.nodes, cut.reads, strict=True):
        types = [found[name] for name in reads if name in found] + rounded_to(node)
        types += [dtype_name(a.t.data_type) for a in node.attribute if a.HasField("t")]
        coarsest = max(types, key=lambda name: unit_roundoff((name,)), default="")
        found.update(dict.fromkeys(filter(None, node.output), coarsest))
    return found
