"""Tensors of a model made its outputs."""

from collections.abc import Collection, Sequence

import onnx

from backends.errors import LayerwiseError
from backends.text import shown
from surgery.graph.infer import inferred_structure
from surgery.structure import Structure


def with_outputs(structure: Structure, names: Sequence[str], *, only: bool = False) -> Structure:
    """Return the model with the tensors `names` as outputs, after its own (`only`: instead of them), each once.

    Their types are those declared or inferred; without either an output states none. LayerwiseError for a name that
    is no tensor of the main graph.
    """
    own = [] if only else structure.output_names
    wanted = list(dict.fromkeys([*own, *names]))
    for name in wanted:
        if not structure.defines(name):
            raise LayerwiseError(f"the model has no tensor {shown(name, 120)!r}")
    known = {value.name: value for value in structure.outputs}
    inferred = _inferred(structure, {name for name in wanted if name not in known})
    empty = onnx.helper.make_empty_tensor_value_info
    outputs = tuple(known.get(name) or inferred.get(name) or empty(name) for name in wanted)
    dropped = {name: structure.value(name) for name in known if name not in wanted}
    values = {name: value for name, value in structure.values.items() if name not in wanted}
    return structure.with_(outputs=outputs, values=values | {name: v for name, v in dropped.items() if v is not None})


def _inferred(structure: Structure, names: Collection[str]) -> dict[str, onnx.ValueInfoProto]:
    """What is declared of tensors, or inferred of them."""
    found = {name: value for name in names if (value := structure.value(name)) is not None}
    if len(found) < len(names):
        model = onnx.ModelProto.FromString(inferred_structure(structure.proto().SerializeToString())[0])
        found |= {value.name: value for value in model.graph.value_info if value.name in names}
    return found
