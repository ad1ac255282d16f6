"""What a model declares of its tensors, brought in line with what edits made of them."""

import onnx

from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.types.incremental import types_of


def settled(before: Structure, after: Structure) -> Structure:
    """Return `after` with declared types and shapes (inner ones and outputs') that are still true.

    Where inference says something else than it does of `before`, it is declared instead; where it says nothing, nothing
    is. Call it before the model is saved, checked or run.
    """
    if after.nodes is before.nodes and after.inputs is before.inputs and after.initializers is before.initializers:
        return after
    old = types_of(before)
    after.learn_from(before)
    new, made = types_of(after), after.lookups.makers
    values = {}
    for name, value in after.values.items():
        current = value if old.get(name) == new.get(name) else new.get(name)
        if current is not None and current.type.WhichOneof("value") and name in made:
            values[name] = current
    outputs = [
        value if old.get(value.name) == new.get(value.name) else _output(value, new.get(value.name))
        for value in after.outputs
    ]
    return after.with_(values=values, outputs=tuple(outputs))


def _output(declared: onnx.ValueInfoProto, found: onnx.ValueInfoProto | None) -> onnx.ValueInfoProto:
    """What to declare of an output: engines and the checker want a type, true or not."""
    return declared if found is None or not found.type.WhichOneof("value") else found
