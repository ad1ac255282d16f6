"""Makes tensors of a model its outputs."""

from collections.abc import Iterable, Sequence

import onnx

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.model.structure import Structure
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
