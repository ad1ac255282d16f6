"""Shape inference on structures; weights are not read."""

import onnx

from layerwise._tool.backends.model.structure import INLINE_LIMIT
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
