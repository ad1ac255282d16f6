"""Shape inference on structures; weights are not read."""

from collections.abc import Mapping, Sequence
from contextlib import suppress

import onnx

from layerwise._tool.backends.model.protos import inferred
from layerwise._tool.backends.model.structure import INLINE_LIMIT
from layerwise._tool.backends.tensors import TensorInfo, dtype_name
from layerwise._tool.surgery.cut.sizes import with_input_shapes
from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.saving.streamed import is_external, nbytes
from layerwise._tool.surgery.types.infer import inferred_structure


def with_shapes(model: Structure) -> tuple[Structure, list[str]]:
    """Return the model with onnx's inferred types and shapes, in bodies too, and warnings; unchanged if that fails."""
    inferred, warnings = inferred_structure(without_weights(model).proto().SerializeToString())
    if warnings:
        return model, warnings
    new = Structure.from_proto(onnx.ModelProto.FromString(inferred), model.folder, model.base)
    return new.with_(initializers=model.initializers), []


def without_weights(model: Structure) -> Structure:
    """Return the model with large weights as types and shapes only: their external data must not be read."""
    return model.with_(initializers={name: _bare(tensor) for name, tensor in model.initializers.items()})


def _bare(tensor: onnx.TensorProto) -> onnx.TensorProto:
    if is_external(tensor) or nbytes(tensor) < INLINE_LIMIT:
        return tensor
    bare = onnx.TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
    bare.data_location = bare.EXTERNAL
    bare.external_data.add(key="location", value="left out")
    return bare


def without_shapes(model: Structure) -> Structure:
    """Return the model without declarations of inner tensors and shapes of outputs, which will be inferred."""
    outputs = []
    for value in model.outputs:
        bare = onnx.ValueInfoProto()
        bare.CopyFrom(value)
        if bare.type.HasField("tensor_type"):
            bare.type.tensor_type.ClearField("shape")
        outputs.append(bare)
    return model.with_(values={}, outputs=tuple(outputs))


def inferred_tensors(model: onnx.ModelProto, shapes: Mapping[str, Sequence[int]]) -> dict[str, TensorInfo]:
    """Return the main graph's tensors whose type and shape are known when the inputs have `shapes`.

    `model`: a structure; it is not changed. If inference fails, only declared types are known. Unknown lengths of
    outputs are assumed to be 1.
    """
    fixed = with_input_shapes(model, shapes)
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
