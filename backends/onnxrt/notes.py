"""Caveats about a run's numbers."""

from collections.abc import Iterator

import onnx
from onnx import TensorProto

from layerwise._tool.backends.text import shown

_HALF = (TensorProto.FLOAT16, TensorProto.BFLOAT16)
_MOVES = frozenset({"Cast", "Constant", "Identity", "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Shape"})


def half_on_cpu(model: onnx.ModelProto) -> str | None:
    """Return a warning if nodes compute in FP16 or bfloat16, for a run on onnxruntime's CPU provider.

    It inserts casts and computes them in FP32, so that an FP16 overflow comes out finite.
    """
    nodes = list(_half_nodes(model.graph))
    if not nodes:
        return None
    first = nodes[0].name or next(iter(nodes[0].output), "")
    return (
        f"onnxruntime's CPU provider computes {len(nodes)} FP16 or bfloat16 nodes in FP32 (the first is "
        f"{shown(first, 120)!r}) and hides their overflows: run on a GPU, or with the ONNX reference evaluator (--onnx)"
    )


def _half_nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """Return nodes that compute on a tensor known to be FP16 or bfloat16; nodes downstream follow from them."""
    half = {tensor.name for tensor in graph.initializer if tensor.data_type in _HALF}
    for value in [*graph.input, *graph.value_info]:
        if value.type.tensor_type.elem_type in _HALF:
            half.add(value.name)
    for node in graph.node:
        reads = half.intersection(node.input)
        if node.op_type == "Cast":
            to = next((attribute.i for attribute in node.attribute if attribute.name == "to"), 0)
            half.update(node.output if to in _HALF else ())
        elif reads:
            half.update(node.output)
            if node.op_type not in _MOVES:
                yield node
