"""Types and shapes of a graph's tensors by ONNX's inference, for models that cannot be run here."""

from collections.abc import Mapping, Sequence
from contextlib import suppress

import onnx

from layerwise._tool.backends.model.protos import inferred
from layerwise._tool.backends.tensors import TensorInfo, dtype_name


def inferred_tensors(model: onnx.ModelProto, shapes: Mapping[str, Sequence[int]]) -> dict[str, TensorInfo]:
    """Return the main graph's tensors whose type and shape are known when the inputs have `shapes`.

    `model`: a structure; it is not changed. If inference fails, only declared types are known. Unknown lengths of
    outputs are assumed to be 1.
    """
    fixed = onnx.ModelProto()
    fixed.CopyFrom(model)
    for value in fixed.graph.input:
        if value.name in shapes and value.type.HasField("tensor_type"):
            dims = value.type.tensor_type.shape.dim
            del dims[:]
            for length in shapes[value.name]:
                dims.add(dim_value=length)
    with suppress(Exception):  # any model that inference cannot handle
        fixed = inferred(fixed, values=True)
    graph = fixed.graph
    found = [_info(value, -1) for value in (*graph.input, *graph.value_info)]
    found += [_info(value, 1) for value in graph.output]
    return {info.name: info for info in found if info is not None}


def _info(value: onnx.ValueInfoProto, unknown: int) -> TensorInfo | None:
    tensor = value.type.tensor_type
    if not value.type.HasField("tensor_type") or not tensor.HasField("shape") or not tensor.elem_type:
        return None
    dims = [dim.dim_value if dim.HasField("dim_value") else unknown for dim in tensor.shape.dim]
    name = dtype_name(tensor.elem_type)
    return None if min(dims, default=0) < 0 or name == "unknown" else TensorInfo(value.name, name, tuple(dims))
