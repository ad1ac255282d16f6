"""Edits that remove what is not needed, and sort nodes."""

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.surgery.edits.base import Edit, GraphEdit, listed, place
from layerwise._tool.surgery.model.structure import Graph, Structure
from layerwise._tool.surgery.rewrite.deduplicate import deduplicated
from layerwise._tool.surgery.rewrite.tidy import cleaned_model, in_order


class CleanUp(Edit, frozen=True, tag="clean-up"):
    """Remove nodes, weights and functions that no output needs, bodies included."""

    def describe(self) -> str:
        return "clean up"

    def _applied(self, structure: Structure) -> Structure:
        return cleaned_model(structure)


class Toposort(GraphEdit, frozen=True, tag="toposort", kw_only=True):
    """Sort nodes topologically."""

    def describe(self) -> str:
        return f"sort topologically{place(self.scope)}"

    def _changed(self, graph: Graph) -> Graph:
        return in_order(graph)


class Deduplicate(Edit, frozen=True, tag="deduplicate"):
    """Keep one of each set of nodes that compute the same, and of equal weights."""

    def describe(self) -> str:
        return "deduplicate"

    def _applied(self, structure: Structure) -> Structure:
        return deduplicated(structure)


class RemoveInputs(GraphEdit, frozen=True, tag="remove-input", kw_only=True):
    """Remove graph inputs that nothing reads; all of them if none are named."""

    tensors: tuple[str, ...] = ()

    def describe(self) -> str:
        return f"remove {'input ' + listed(self.tensors) if self.tensors else 'unused inputs'}{place(self.scope)}"

    def _changed(self, graph: Graph) -> Graph:
        read = graph.lookups.readers.keys() | set(graph.output_names)
        for name in self.tensors:
            if name not in graph.input_names:
                raise LayerwiseError(f"{listed([name])} is no input of the graph")
            if name in read:
                raise LayerwiseError(f"{listed([name])} is still read")
        gone = set(self.tensors) or set(graph.input_names) - read
        return graph.with_(inputs=tuple(value for value in graph.inputs if value.name not in gone))
