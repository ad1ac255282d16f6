"""Updates a model's declared types and shapes after edits."""

import onnx

from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.types.incremental import types_of


def settled(before: Structure, after: Structure) -> Structure:
    """Return `after` with only those declared types and shapes (of inner tensors and outputs) that are still valid.

    If inference differs from that for `before`, its result is declared instead; if it has none, nothing
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
    """Return the declaration of an output: engines and the checker require a type, even an outdated one."""
    return declared if found is None or not found.type.WhichOneof("value") else found
