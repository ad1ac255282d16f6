"""Makes tensors of a model its outputs, and changes element types of inputs and outputs."""

from collections.abc import Iterable, Mapping, Sequence

import onnx
from onnx import helper

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.model.structure import Structure, changed
from layerwise._tool.surgery.rewrite.rewiring import renamed, reread
from layerwise._tool.surgery.types.incremental import types_of


def with_outputs(structure: Structure, names: Sequence[str], *, only: bool = False) -> Structure:
    """Return the model with the tensors `names` as outputs, after its own (`only`: instead of them), each once.

    Their types are those declared or inferred, if any. LayerwiseError for a name that is not a tensor of the main
    graph.
    """
    return giving(structure, (_declared(structure, name) for name in names), only=only)


def giving(structure: Structure, outputs: Iterable[onnx.ValueInfoProto], *, only: bool = False) -> Structure:
    """Return the model with these outputs after its own (`only`: instead of them), each once; the later one counts.

    LayerwiseError for one that the main graph does not define.
    """
    new = {value.name: value for value in outputs}
    for name in new:
        if not structure.defines(name):
            raise LayerwiseError(f"the main graph has no tensor {shown(name, 120)!r}")
    own = {value.name: value for value in structure.outputs}
    makers = structure.lookups.makers
    inner = {name: value for name, value in structure.values.items() if name not in new}
    lost = {name: value for name, value in own.items() if only and name not in new and name in makers}
    kept = {} if only else own
    return structure.with_(outputs=tuple({**kept, **new}.values()), values={**inner, **lost})


def _declared(structure: Structure, name: str) -> onnx.ValueInfoProto:
    known = structure.value(name)
    if known is None and structure.defines(name):
        known = types_of(structure).get(name)
    return known or onnx.helper.make_empty_tensor_value_info(name)


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
    inputs = tuple(_retyped(value, kind) if other.name == name else other for other in read.inputs)
    outputs = tuple(_retyped(other, kind) if other.name == name else other for other in read.outputs)
    return read.with_(nodes=(cast, *read.nodes), inputs=inputs, outputs=outputs)


def _output(model: Structure, value: onnx.ValueInfoProto, kind: int) -> Structure:
    name, inner = value.name, model.fresh(f"{value.name}_cast")
    cast = helper.make_node("Cast", [inner], [name], model.fresh_node(f"{name}_cast"), to=kind)
    made = renamed(model, name, inner)
    outputs = tuple(_retyped(value, kind) if other.name == inner else other for other in made.outputs)
    return made.with_(nodes=(*made.nodes, cast), outputs=outputs)
