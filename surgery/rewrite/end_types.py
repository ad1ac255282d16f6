"""Changes element types of a model's inputs and outputs, with casts so that nothing inside changes."""

from collections.abc import Mapping

import onnx
from onnx import helper

from layerwise._tool.surgery.model.structure import Structure, changed
from layerwise._tool.surgery.rewrite.rewiring import renamed, reread


def with_end_types(model: Structure, types: Mapping[str, int]) -> Structure:
    """Return the model with these TensorProto types for the inputs and outputs of these names.

    A Cast is inserted after such an input and before such an output. Other names are ignored, as are
    outputs that no node makes.
    """
    for value in model.inputs:
        if types.get(value.name, _kind(value)) != _kind(value):
            model = _input(model, value, types[value.name])
    for value in model.outputs:
        wanted = types.get(value.name, _kind(value))
        if wanted != _kind(value) and value.name in model.lookups.makers:
            model = _output(model, value, wanted)
    return model


def _kind(value: onnx.ValueInfoProto) -> int:
    return value.type.tensor_type.elem_type


def _retyped(value: onnx.ValueInfoProto, kind: int) -> onnx.ValueInfoProto:
    copy = changed(value)
    copy.type.tensor_type.elem_type = kind
    return copy


def _input(model: Structure, value: onnx.ValueInfoProto, kind: int) -> Structure:
    name, inner = value.name, model.fresh(f"{value.name}_cast")
    cast = helper.make_node("Cast", [name], [inner], model.fresh_node(f"{name}_cast"), to=_kind(value))
    read = reread(model, {name: inner})
    assert isinstance(read, Structure)
    inputs = tuple(_retyped(value, kind) if other.name == name else other for other in read.inputs)
    outputs = tuple(_retyped(other, kind) if other.name == name else other for other in read.outputs)
    return read.with_(nodes=(cast, *read.nodes), inputs=inputs, outputs=outputs)


def _output(model: Structure, value: onnx.ValueInfoProto, kind: int) -> Structure:
    name, inner = value.name, model.fresh(f"{value.name}_cast")
    cast = helper.make_node("Cast", [inner], [name], model.fresh_node(f"{name}_cast"), to=kind)
    made = renamed(model, name, inner)
    assert isinstance(made, Structure)
    outputs = tuple(_retyped(value, kind) if other.name == inner else other for other in made.outputs)
    return made.with_(nodes=(*made.nodes, cast), outputs=outputs)
