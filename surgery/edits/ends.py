"""Edits of a model's inputs and outputs, and these in the form that edits use."""

from fnmatch import fnmatchcase
from typing import Annotated

import msgspec
import onnx

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.model.protos import set_shape
from layerwise._tool.backends.tensors import to_onnx
from layerwise._tool.backends.text import Called, in_full, shown
from layerwise._tool.surgery.edits.base import Edit, listed
from layerwise._tool.surgery.edits.nodes import is_op
from layerwise._tool.surgery.model.structure import Structure, changed
from layerwise._tool.surgery.rewrite.ends import giving
from layerwise._tool.surgery.rewrite.tidy import cleaned_model, unmade
from layerwise._tool.surgery.types.incremental import types_of

Length = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
Dim = Length | str | None


class Tensor(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A graph input or output. dtype "" and shape None: inferred. Dimensions are numbers, symbols or None."""

    name: str
    dtype: str = ""
    shape: tuple[Dim, ...] | None = None

    def value(self, structure: Structure) -> onnx.ValueInfoProto:
        """Return it as a value info. LayerwiseError if there is no such type."""
        known = types_of(structure).get(self.name) or structure.value(self.name)
        tensor = structure.initializers.get(self.name)
        if known is None and tensor is not None:
            known = onnx.helper.make_tensor_value_info(self.name, tensor.data_type, tensor.dims)
        value = changed(known) if known is not None else onnx.ValueInfoProto(name=self.name)
        if self.dtype:
            value.type.tensor_type.elem_type = to_onnx(self.dtype)
        if self.shape is not None:
            set_shape(value, self.shape)
        return value


class SetInputs(Edit, frozen=True, tag="set-inputs", kw_only=True):
    """Make these tensors the inputs; their makers stay only if needed elsewhere, unused inputs are removed."""

    inputs: tuple[Tensor, ...]

    def describe(self, called: Called = in_full) -> str:
        return f"set inputs to {listed((tensor.name for tensor in self.inputs), called)}"

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

    def describe(self, called: Called = in_full) -> str:
        return f"add input {called(self.input.name)}"

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
    cut = cleaned_model(cut)
    kept = values.keys() | cut.initializers.keys() | cut.lookups.readers.keys() | set(cut.output_names)
    return cut.with_(inputs=tuple(value for value in cut.inputs if value.name in kept))


class MarkOutputs(Edit, frozen=True, tag="mark-output", kw_only=True):
    """Add tensors to the graph outputs. only: replace the existing ones (nodes that only they need stay)."""

    tensors: tuple[str, ...]
    only: bool = False

    def describe(self, called: Called = in_full) -> str:
        return f"mark {listed(self.tensors, called)} as output{' alone' if self.only else ''}"

    def _applied(self, structure: Structure) -> Structure:
        return giving(structure, (Tensor(name).value(structure) for name in self.tensors), only=self.only)


class UnmarkOutputs(Edit, frozen=True, tag="unmark-output", kw_only=True):
    """Remove tensors from the graph outputs. Nodes that only they need stay until clean-up."""

    tensors: tuple[str, ...]

    def describe(self, called: Called = in_full) -> str:
        return f"unmark output {listed(self.tensors, called)}"

    def _applied(self, structure: Structure) -> Structure:
        for name in self.tensors:
            if not structure.read_outside(name):
                raise LayerwiseError(f"{shown(name, 120)!r} is no output")
        kept = tuple(value for value in structure.outputs if value.name not in self.tensors)
        if not kept:
            raise LayerwiseError("a graph needs an output")
        return structure.with_(outputs=kept)


class SetOutputs(Edit, frozen=True, tag="set-outputs", kw_only=True):
    """Replace the graph's outputs by these."""

    outputs: tuple[Tensor, ...]

    def describe(self, called: Called = in_full) -> str:
        return f"set outputs to {listed((tensor.name for tensor in self.outputs), called)}"

    def _applied(self, structure: Structure) -> Structure:
        if not self.outputs:
            raise LayerwiseError("a graph needs an output")
        return giving(structure, (tensor.value(structure) for tensor in self.outputs), only=True)


class DebugOutputs(Edit, frozen=True, tag="debug-outputs", kw_only=True):
    """Make many tensors graph outputs: those with names that match a glob, or from some operators, or all."""

    names: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()

    def describe(self, called: Called = in_full) -> str:
        return f"mark all outputs of {listed([*self.ops, *self.names], called) or 'all nodes'}"

    def _applied(self, structure: Structure) -> Structure:
        found = [
            name
            for node in structure.nodes
            for name in node.output
            if name and (self._is_wanted(name) or is_op(node, self.ops)) and not structure.read_outside(name)
        ]
        if not found:
            raise LayerwiseError("no further tensor matches")
        return giving(structure, (Tensor(name).value(structure) for name in found))

    def _is_wanted(self, name: str) -> bool:
        return not (self.names or self.ops) or any(fnmatchcase(name, glob) for glob in self.names)
