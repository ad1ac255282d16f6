"""Edits of a model's outputs."""

from fnmatch import fnmatchcase

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.edits.base import Edit, listed
from layerwise._tool.surgery.edits.nodes import is_op
from layerwise._tool.surgery.edits.tensors import Tensor
from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.rewrite.outputs import giving


class MarkOutputs(Edit, frozen=True, tag="mark-output", kw_only=True):
    """Add tensors to the graph outputs. only: replace the existing ones (nodes that only they need stay)."""

    tensors: tuple[str, ...]
    only: bool = False

    def describe(self) -> str:
        return f"mark {listed(self.tensors)} as output{' alone' if self.only else ''}"

    def _applied(self, structure: Structure) -> Structure:
        return giving(structure, (Tensor(name).value(structure) for name in self.tensors), only=self.only)


class UnmarkOutputs(Edit, frozen=True, tag="unmark-output", kw_only=True):
    """Remove tensors from the graph outputs. Nodes that only they need stay until clean-up."""

    tensors: tuple[str, ...]

    def describe(self) -> str:
        return f"unmark output {listed(self.tensors)}"

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

    def describe(self) -> str:
        return f"set outputs to {listed(tensor.name for tensor in self.outputs)}"

    def _applied(self, structure: Structure) -> Structure:
        if not self.outputs:
            raise LayerwiseError("a graph needs an output")
        return giving(structure, (tensor.value(structure) for tensor in self.outputs), only=True)


class DebugOutputs(Edit, frozen=True, tag="debug-outputs", kw_only=True):
    """Make many tensors graph outputs: those with names that match a glob, or from some operators, or all."""

    names: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()

    def describe(self) -> str:
        return f"mark all outputs of {listed([*self.ops, *self.names]) or 'all nodes'}"

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
