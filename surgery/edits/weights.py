"""Edits of weights."""

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.formats.npy import array_from_npy
from layerwise._tool.backends.text import Called, in_full
from layerwise._tool.backends.wording import in_words
from layerwise._tool.surgery.edits.base import Edit, GraphEdit, listed, place
from layerwise._tool.surgery.edits.operands import Constant, with_constant
from layerwise._tool.surgery.model.structure import Graph, Structure
from layerwise._tool.surgery.weights.arrays import with_weights
from layerwise._tool.surgery.weights.sparsity import prune_2_4


class SetWeights(Edit, frozen=True, tag="set-weight", kw_only=True):
    """Replace values of initializers, keeping shapes and types. weights: name -> the bytes of a .npy file."""

    weights: dict[str, bytes]

    def describe(self, called: Called = in_full) -> str:
        return f"set the weight {listed(self.weights, called)}"

    def _applied(self, structure: Structure) -> Structure:
        try:
            arrays = {name: array_from_npy(data) for name, data in self.weights.items()}
        except ValueError as error:
            raise LayerwiseError(f"the values are no .npy file: {in_words(error, 200)}") from None
        return with_weights(structure, arrays)


class AddWeight(GraphEdit, frozen=True, tag="add-weight", kw_only=True):
    """Add a constant tensor without readers."""

    name: str
    value: Constant

    def describe(self, called: Called = in_full) -> str:
        return f"add weight {called(self.name)}{place(self.scope)}"

    def _changed(self, graph: Graph) -> Graph:
        if not self.name or graph.taken(self.name):
            raise LayerwiseError("that name is taken")
        return with_constant(graph, self.value, self.name)


class Sparsify(Edit, frozen=True, tag="sparsify", kw_only=True):
    """Prune weights to 2:4 sparsity: of each four neighbours, the two smallest become zero. Default: all possible."""

    weights: tuple[str, ...] = ()

    def describe(self, called: Called = in_full) -> str:
        return f"prune {listed(self.weights, called) or 'all weights'} to 2:4 sparsity"

    def _applied(self, structure: Structure) -> Structure:
        return prune_2_4(structure, self.weights or None)
