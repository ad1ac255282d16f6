"""Edits of the whole model, implemented elsewhere in surgery."""

from dataclasses import fields
from typing import Annotated, Literal

import msgspec

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.text import Called, in_full, shown
from layerwise._tool.surgery.edits.base import Edit, GraphEdit, listed, place
from layerwise._tool.surgery.edits.ends import Tensor
from layerwise._tool.surgery.extract.structure import around, borders, extract
from layerwise._tool.surgery.extract.wire import End
from layerwise._tool.surgery.folding.options import FoldOptions
from layerwise._tool.surgery.model.structure import Graph, Structure
from layerwise._tool.surgery.precision.conversion import labels, to_low_precision
from layerwise._tool.surgery.precision.plan import LowType
from layerwise._tool.surgery.rewrite.deduplicate import deduplicated
from layerwise._tool.surgery.rewrite.opset import convert_opset
from layerwise._tool.surgery.rewrite.tidy import cleaned_model, in_order
from layerwise._tool.surgery.types.incremental import types_of


class CleanUp(Edit, frozen=True, tag="clean-up"):
    """Remove nodes, weights and functions that no output needs, bodies included."""

    def describe(self, called: Called = in_full) -> str:
        return "clean up"

    def _applied(self, structure: Structure) -> Structure:
        return cleaned_model(structure)


class Toposort(GraphEdit, frozen=True, tag="toposort", kw_only=True):
    """Sort nodes topologically."""

    def describe(self, called: Called = in_full) -> str:
        return f"sort topologically{place(self.scope)}"

    def _changed(self, graph: Graph) -> Graph:
        return in_order(graph)


class Deduplicate(Edit, frozen=True, tag="deduplicate"):
    """Keep one of each set of nodes that compute the same, and of equal weights."""

    def describe(self, called: Called = in_full) -> str:
        return "deduplicate"

    def _applied(self, structure: Structure) -> Structure:
        return deduplicated(structure)


class RemoveInputs(GraphEdit, frozen=True, tag="remove-input", kw_only=True):
    """Remove graph inputs that nothing reads; all of them if none are named."""

    tensors: tuple[str, ...] = ()

    def describe(self, called: Called = in_full) -> str:
        return (
            f"remove {'input ' + listed(self.tensors, called) if self.tensors else 'unused inputs'}{place(self.scope)}"
        )

    def _changed(self, graph: Graph) -> Graph:
        read = graph.lookups.readers.keys() | set(graph.output_names)
        for name in self.tensors:
            if name not in graph.input_names:
                raise LayerwiseError(f"{listed([name])} is no input of the graph")
            if name in read:
                raise LayerwiseError(f"{listed([name])} is still read")
        gone = set(self.tensors) or set(graph.input_names) - read
        return graph.with_(inputs=tuple(value for value in graph.inputs if value.name not in gone))


class Fold(Edit, frozen=True, tag="fold", kw_only=True):
    """Fold constants; needs onnxruntime, so run it where native code may crash.

    Options as in `surgery.folding.options.FoldOptions`.
    """

    heavy = True
    passes: int | None = None
    partitioning: Literal["basic", "recursive"] | None = None
    shapes: bool = True
    infer: bool = True
    threshold: int | None = None

    def describe(self, called: Called = in_full) -> str:
        return "fold constants"

    def _applied(self, structure: Structure) -> Structure:
        from layerwise._tool.surgery.folding.structure import fold_constants

        given = {field.name: getattr(self, field.name) for field in fields(FoldOptions)}
        return fold_constants(structure, FoldOptions(**given))


class ConvertPrecision(Edit, frozen=True, tag="convert-precision", kw_only=True):
    """Convert to FP16 or bfloat16, with casts at the boundaries.

    nodes: only these and those of `ops`, default all possible; keep: these stay in FP32. Names may be globs.
    """

    heavy = True
    to: LowType = "float16"
    nodes: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()

    def describe(self, called: Called = in_full) -> str:
        which = listed([*self.nodes, *self.ops], called)
        kept = f", keep {listed(self.keep, called)}" if self.keep else ""
        return f"compute {which or 'all'} in {self.to}{kept}"

    def _applied(self, structure: Structure) -> Structure:
        keep = labels(structure.nodes, self.keep, ())
        if self.nodes or self.ops:
            keep |= labels(structure.nodes, ["*"], ()) - labels(structure.nodes, self.nodes, self.ops)
        converted = to_low_precision(structure, self.to, keep)
        if not converted.low:
            raise LayerwiseError("none of these nodes can")
        return converted.structure


class SetOpset(Edit, frozen=True, tag="set-opset", kw_only=True):
    """Convert the model to another opset of ONNX's own domain, or state the version of another domain."""

    heavy = True
    version: Annotated[int, msgspec.Meta(ge=1, le=(1 << 31) - 1)]
    domain: str = ""

    def describe(self, called: Called = in_full) -> str:
        return f"convert to opset {self.version}{f' of {shown(self.domain, 60)}' if self.domain else ''}"

    def _applied(self, structure: Structure) -> Structure:
        if self.domain not in ("", "ai.onnx"):
            return structure.with_(opsets={**structure.opsets, self.domain: self.version})
        return convert_opset(structure, self.version)


class Extract(Edit, frozen=True, tag="extract", kw_only=True):
    """Keep only a part: between tensors, or some nodes with so many steps before and after them.

    inputs and outputs: None is the model's own. nodes: then these tensors limit the steps.
    """

    inputs: tuple[Tensor, ...] | None = None
    outputs: tuple[Tensor, ...] | None = None
    nodes: tuple[str, ...] = ()
    before: int = 0
    after: int = 0

    def describe(self, called: Called = in_full) -> str:
        if self.nodes:
            return f"extract {listed(self.nodes, called)}"
        ends = [listed((end.name for end in ends), called) if ends else "" for ends in (self.inputs, self.outputs)]
        return "extract" + (f" from {ends[0]}" if ends[0] else "") + (f" to {ends[1]}" if ends[1] else "")

    def _applied(self, structure: Structure) -> Structure:
        inputs, outputs = self.inputs, self.outputs
        if self.nodes:
            inputs, outputs = self._borders(structure)
        known = structure.with_(values={**types_of(structure), **structure.values})
        part = extract(known, _ends(inputs), _ends(outputs))
        kept = {name: value for name, value in part.values.items() if name in structure.values}
        return part.with_(values=kept)

    def _borders(self, structure: Structure) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        if self.inputs is not None or self.outputs is not None:
            raise LayerwiseError("give either nodes or tensors")
        chosen = [
            node for name in self.nodes for node in around(structure, structure.node(name), self.before, self.after)
        ]
        ins, outs = borders(structure, list({id(node): node for node in chosen}.values()))
        return tuple(Tensor(name) for name in ins), tuple(Tensor(name) for name in outs)


def _ends(tensors: tuple[Tensor, ...] | None) -> list[End] | None:
    return None if tensors is None else [End(t.name, t.shape, t.dtype or None) for t in tensors]


class InferShapes(Edit, frozen=True, tag="infer-shapes"):
    """Declare types and shapes of inner tensors, as onnx infers them."""

    heavy = True

    def describe(self, called: Called = in_full) -> str:
        return "infer shapes"

    def _applied(self, structure: Structure) -> Structure:
        from layerwise._tool.surgery.types.shapes import with_shapes

        inferred, warnings = with_shapes(structure)
        if warnings:
            raise LayerwiseError(warnings[0])
        return inferred
