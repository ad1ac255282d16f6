"""One tensor of a model times a number near 1: the plainest fault, of any size."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

UNIT = {TensorProto.FLOAT: 2.0**-23, TensorProto.FLOAT16: 2.0**-10}
"""One unit in the last place of 1, of the types that are scaled."""
_COPIES = frozenset({
    "Cast", "Concat", "Constant", "ConstantOfShape", "Expand", "Gather", "Identity", "Range", "Reshape", "Shape",
    "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze", "Where",
})  # fmt: skip


def element_types(model: onnx.ModelProto) -> dict[str, int]:
    """The element type of each tensor that shape inference knows."""
    graph = onnx.shape_inference.infer_shapes(model).graph
    return {value.name: value.type.tensor_type.elem_type for value in (*graph.value_info, *graph.output)}


def layers(model: onnx.ModelProto) -> dict[str, int]:
    """Tensors of a type in UNIT that a computation makes and an output depends on, outputs left out; their types."""
    types, outputs = element_types(model), {value.name for value in model.graph.output}
    reach = set(outputs)
    for node in reversed(model.graph.node):
        if reach.intersection(node.output):
            reach.update(node.input)
    return {
        node.output[0]: types[node.output[0]]
        for node in model.graph.node
        if node.op_type not in _COPIES and node.output[0] in reach - outputs and types.get(node.output[0]) in UNIT
    }


def scaled(model: onnx.ModelProto, tensor: str, factor: float, kind: int) -> onnx.ModelProto:
    """A copy in which `tensor`, of element type `kind`, is multiplied by `factor` where it is made."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    graph = copy.graph
    i = next(i for i, node in enumerate(graph.node) if tensor in node.output)
    node = graph.node[i]
    node.output[list(node.output).index(tensor)] = f"{tensor}__right"
    number = np.array(factor, helper.tensor_dtype_to_np_dtype(kind))
    graph.initializer.append(numpy_helper.from_array(number, f"{tensor}__factor"))
    graph.node.insert(i + 1, helper.make_node("Mul", [f"{tensor}__right", f"{tensor}__factor"], [tensor], "planted"))
    return copy
