"""Element types of tensors and the types that a node's schema allows, without reading weights."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import onnx
from onnx import TensorProto, defs

from layerwise._tool.backends.errors import LayerwiseError, raise_scarce
from layerwise._tool.backends.model.protos import inferred
from layerwise._tool.backends.model.reads import subgraphs
from layerwise._tool.backends.wording import in_words
from layerwise._tool.surgery.cut.randomness import RANDOM_OPS
from layerwise._tool.surgery.model.proto import schema_of

FLOAT = TensorProto.FLOAT

SHAPE_ONLY = frozenset({"Shape", "Size"})
_STAY = frozenset(  # types fixed by an attribute or a width, random draws, constants (they follow their readers)
    {
        *("BitCast", "Constant", "EyeLike", "LinearAttention", "OptionalGetElement"),
        *("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"),
        *RANDOM_OPS,
        *SHAPE_ONLY,
    }
)
_TEXT: dict[int, str] = {TensorProto.FLOAT16: "tensor(float16)", TensorProto.BFLOAT16: "tensor(bfloat16)"}
_SMALL = 1024  # bytes; larger weights are passed to inference by type and shape only


@dataclass(frozen=True)
class Slots:
    """Positions of a node's inputs and outputs that follow its compute type.

    by_attribute: an attribute fixes the output's type (Cast, ConstantOfShape) and must change with it.
    """

    inputs: frozenset[int]
    outputs: frozenset[int]
    by_attribute: bool = False


def node_slots(node: onnx.NodeProto, types: Mapping[str, int], opsets: Mapping[str, int], low: int) -> Slots | None:
    """Return what becomes `low` (a TensorProto type) if the node computes in it; None if it cannot.

    A type variable of the schema that is bound to FP32, and that allows `low`, changes as a whole; inputs of a fixed
    type (Resize's scales, shapes, indices) stay.
    """
    schema = None if node.op_type in _STAY else _schema(node, opsets)
    if schema is None or any(name and name not in types for name in node.input) or any(subgraphs(node)):
        return None
    if any(_only_containers(formal) for formal in schema.outputs):
        return None
    takes = {c.type_param_str for c in schema.type_constraints if _TEXT[low] in c.allowed_type_strs}
    bound = set()
    inputs = set()
    for position, name in enumerate(node.input):
        variable = _formal(schema.inputs, position)
        if name and variable in takes and types[name] == FLOAT:
            bound.add(variable)
            inputs.add(position)
    if any(_formal(schema.inputs, p) in bound and types[n] != FLOAT for p, n in enumerate(node.input) if n):
        return None
    outputs = {p for p, name in enumerate(node.output) if name and _formal(schema.outputs, p) in bound}
    fixed = _fixed_by_attribute(node, types)
    if fixed:
        outputs = {0}
    elif node.op_type == "Cast" and types.get(next(iter(node.output), "")) in _TEXT:
        return None
    return Slots(frozenset(inputs), frozenset(outputs), fixed) if inputs or outputs else None


def tensor_types(model: onnx.ModelProto) -> dict[str, int]:
    """Return the element type of every tensor of the main graph that ONNX's inference knows.

    Sequences, optionals and outputs of unknown operators are absent. LayerwiseError if inference fails.
    """
    bare = _bare(model)
    try:
        typed = inferred(bare)
    except Exception as error:  # InferenceError and plain RuntimeError
        raise_scarce(error)
        raise LayerwiseError(f"the types of the model's tensors cannot be inferred: {in_words(error)}") from None
    graph = typed.graph
    types = {tensor.name: tensor.data_type for tensor in graph.initializer}
    for value in [*graph.input, *graph.value_info, *graph.output]:
        if value.type.HasField("tensor_type") and value.type.tensor_type.elem_type:
            types[value.name] = value.type.tensor_type.elem_type
    return types


def _bare(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with its larger weights as inputs: inference would otherwise serialise them all."""
    graph = onnx.GraphProto(name=model.graph.name or "graph")
    graph.node.extend(model.graph.node)
    graph.input.extend(model.graph.input)
    graph.output.extend(model.graph.output)
    graph.value_info.extend(model.graph.value_info)
    listed = {value.name for value in graph.input}
    for tensor in model.graph.initializer:
        if tensor.ByteSize() <= _SMALL and tensor.data_location != TensorProto.EXTERNAL:
            graph.initializer.append(tensor)
        elif tensor.name not in listed:
            graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    bare = onnx.ModelProto(ir_version=max(model.ir_version, 4), graph=graph)
    bare.opset_import.extend(model.opset_import)
    bare.functions.extend(model.functions)
    return bare


def _schema(node: onnx.NodeProto, opsets: Mapping[str, int]) -> "defs.OpSchema | None":
    if node.domain not in ("", "ai.onnx"):
        return None
    return schema_of(node.op_type, opsets.get("", opsets.get("ai.onnx", 1)))


def _formal(parameters: "Sequence[defs.OpSchema.FormalParameter]", position: int) -> str:
    """Return the type variable (or fixed type) of the parameter at `position`; a variadic last one repeats."""
    return parameters[min(position, len(parameters) - 1)].type_str if parameters else ""


def _only_containers(parameter: defs.OpSchema.FormalParameter) -> bool:
    """Return whether it is a sequence or optional, never a plain tensor."""
    return all("(tensor(" in text for text in parameter.types)


def _fixed_by_attribute(node: onnx.NodeProto, types: Mapping[str, int]) -> bool:
    if not node.output or types.get(node.output[0]) != FLOAT:
        return False
    names = {attribute.name for attribute in node.attribute}
    return node.op_type == "ConstantOfShape" or (node.op_type == "Cast" and "to" in names)
