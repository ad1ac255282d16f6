"""Edits of a model's inputs."""

import onnx

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.edits.base import Edit, listed
from layerwise._tool.surgery.edits.tensors import Tensor
from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.rewrite.tidy import cleaned_model, unmade


class SetInputs(Edit, frozen=True, tag="set-inputs", kw_only=True):
    """Make these tensors the inputs; their makers stay only if needed elsewhere, unused inputs are removed."""

    inputs: tuple[Tensor, ...]

    def describe(self) -> str:
        return f"set inputs to {listed(tensor.name for tensor in self.inputs)}"

    def _applied(self, structure: Structure) -> Structure:
        values = {tensor.name: tensor.value(structure) for tensor in self.inputs}
        for name, value in values.items():
            if not structure.defines(name):
                raise LayerwiseError(f"there is no tensor {shown(name, 120)!r}")
            if not value.type.tensor_type.elem_type:
                raise LayerwiseError(f"the type of {shown(name, 120)!r} is not known: give one")
        return _without_makers(structure, values)


class AddInput(Edit, frozen=True, tag="add-input", kw_only=True):
    """Add a graph input that nothing reads yet."""

    input: Tensor

    def describe(self) -> str:
        return f"add input {shown(self.input.name, 80)}"

    def _applied(self, structure: Structure) -> Structure:
        if structure.defines(self.input.name) or not self.input.dtype:
            raise LayerwiseError("that tensor is there already" if self.input.dtype else "give its type")
        return structure.with_(inputs=(*structure.inputs, self.input.value(structure)))


def _without_makers(structure: Structure, values: dict[str, onnx.ValueInfoProto]) -> Structure:
    """Make `values` inputs: their makers' outputs are renamed, and the makers removed if not needed elsewhere."""
    weights = {name: tensor for name, tensor in structure.initializers.items() if name not in values}
    own = {value.name: value for value in structure.inputs}
    inner = {name: value for name, value in structure.values.items() if name not in values}
    fed = tuple({**own, **values}.values())
    outputs = tuple(values.get(value.name, value) for value in structure.outputs)
    cut = unmade(structure, values).with_(inputs=fed, outputs=outputs, initializers=weights, values=inner)
    assert isinstance(cut, Structure)
    cut = cleaned_model(cut)
    kept = values.keys() | cut.initializers.keys() | cut.lookups.readers.keys() | set(cut.output_names)
    return cut.with_(inputs=tuple(value for value in cut.inputs if value.name in kept))
