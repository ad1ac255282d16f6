"""Decides which nodes can compute in FP16 or bfloat16, and which form of each tensor their neighbours read."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Literal

import onnx
from onnx import TensorProto

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.model.reads import captures, subgraphs
from layerwise._tool.surgery.model.structure import node_label
from layerwise._tool.surgery.types.node_types import SHAPE_ONLY, Slots, node_slots, tensor_types

LowType = Literal["float16", "bfloat16"]

ONNX_TYPE: dict[str, int] = {"float16": TensorProto.FLOAT16, "bfloat16": TensorProto.BFLOAT16}
EXACT = frozenset(
    {
        *("Abs", "Concat", "DepthToSpace", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity"),
        *("Max", "MaxPool", "Min", "Neg", "Relu", "Reshape", "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile"),
        *("Transpose", "Unsqueeze", "Where"),
    }
)
"""Operators whose results are values of their inputs: nothing is left to round."""
_LEAST_OPSET = {"float16": 6, "bfloat16": 13}  # Cast's domains


@dataclass
class PrecisionPlan:
    """The inputs and outputs of each node that become low, and the readers of each tensor by form."""

    slots: list[Slots | None]
    types: dict[str, int]
    born_low: set[str] = field(default_factory=set)
    needs_low: set[str] = field(default_factory=set)
    needs_full: set[str] = field(default_factory=set)
    pinned: set[str] = field(default_factory=set)  # graph outputs and captures: FP32 under their own name
    kept: frozenset[str] = frozenset()  # labels of nodes that always read and make FP32
    held: int = 0  # number of nodes that could be low and are kept

    @classmethod
    def of(cls, model: onnx.ModelProto, low: LowType, keep: Collection[str]) -> "PrecisionPlan":
        opsets = {entry.domain or "": entry.version for entry in model.opset_import}
        if opsets.get("", opsets.get("ai.onnx", 1)) < _LEAST_OPSET[low]:
            raise LayerwiseError(f"{low} needs opset {_LEAST_OPSET[low]} or later: convert the model's opset first")
        types = tensor_types(model)
        slots = [node_slots(node, types, opsets, ONNX_TYPE[low]) for node in model.graph.node]
        return cls(slots, types).keeping(model.graph, keep)

    def keeping(self, graph: onnx.GraphProto, keep: Collection[str]) -> "PrecisionPlan":
        """Return the plan of the same graph with the nodes in `keep` in FP32 too."""
        kept = frozenset(keep)
        slots = [None if node_label(node) in kept else own for node, own in zip(graph.node, self.slots, strict=True)]
        held = sum(own is not None and slot is None for own, slot in zip(self.slots, slots, strict=True))
        plan = PrecisionPlan(slots, self.types, kept=kept, held=held)
        plan._note_readers(graph)
        return plan

    def _note_readers(self, graph: onnx.GraphProto) -> None:
        self.pinned = {value.name for value in graph.output}
        for node, slots in zip(graph.node, self.slots, strict=True):
            self.pinned.update(name for body in subgraphs(node) for name in captures(body))
            if node.op_type in SHAPE_ONLY and node_label(node) not in self.kept:  # accepts either form
                continue
            low_inputs = slots.inputs if slots else frozenset()
            for position, name in enumerate(node.input):
                (self.needs_low if position in low_inputs else self.needs_full).add(name)
            if slots:
                self.born_low.update(node.output[position] for position in slots.outputs)
        self.needs_full |= self.pinned
