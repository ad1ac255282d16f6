"""A copy of a model that faults are being planted into, node by node of the original's order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper
from support.faults.running import Array, Fact


@dataclass(frozen=True)
class Fault:
    """One planted fault, in words of the suspect model.

    node: the culprit. nodes: every node that was changed or added, the culprit among them; a change by added nodes has
    no smaller part that a reference tensor could feed. tensors: the first that are wrong.
    """

    kind: str
    node: str
    nodes: tuple[str, ...]
    tensors: tuple[str, ...]
    detail: str


class Base:
    """A model without faults, and what is known of its tensors: what every draft of it starts from."""

    def __init__(self, model: onnx.ModelProto, facts: Mapping[str, Fact]) -> None:
        self.model, self.facts = model, facts
        self.nodes = list(model.graph.node)
        self.weights = {tensor.name: tensor for tensor in model.graph.initializer}
        self.weights |= {n.output[0]: a.t for n in self.nodes if n.op_type == "Constant" for a in n.attribute}
        self.readers: dict[str, list[int]] = {}
        for i, node in enumerate(self.nodes):
            for name in node.input:
                self.readers.setdefault(name, []).append(i)
        self.opset = next(int(entry.version) for entry in model.opset_import if entry.domain in ("", "ai.onnx"))


class Draft:
    """Nodes may change and others may join right before or after them; every tensor keeps its shape and type."""

    def __init__(self, base: Base) -> None:
        self._base, self.facts, self.opset = base, base.facts, base.opset
        self._parts: dict[int, list[onnx.NodeProto]] = {}
        self._own: dict[int, onnx.NodeProto] = {}
        self._added: list[onnx.TensorProto] = []
        self._count = 0

    def original(self, i: int) -> onnx.NodeProto:
        """Node `i` as it was."""
        node: onnx.NodeProto = self._base.nodes[i]
        return node

    def node(self, i: int) -> onnx.NodeProto:
        """Node `i`, to be changed."""
        if i not in self._own:
            copy = onnx.NodeProto()
            copy.CopyFrom(self.original(i))
            self._own[i], self._parts[i] = copy, [copy]
        return self._own[i]

    def free(self, i: int) -> bool:
        """Whether nothing was planted here yet."""
        return i not in self._parts

    def fact(self, i: int, slot: int = 0) -> Fact | None:
        """What is known of an output of node `i`."""
        outputs = self.original(i).output
        return self.facts.get(outputs[slot]) if slot < len(outputs) else None

    def input_fact(self, i: int, slot: int) -> Fact | None:
        """What is known of an input of node `i`; None for weights too."""
        inputs = self.original(i).input
        return self.facts.get(inputs[slot]) if slot < len(inputs) else None

    def weight(self, i: int, slot: int) -> Array | None:
        """The value of an input that is a constant."""
        inputs = self.original(i).input
        tensor = self._base.weights.get(inputs[slot]) if slot < len(inputs) else None
        return None if tensor is None else numpy_helper.to_array(tensor)

    def readers(self, name: str) -> list[int]:
        """The nodes that read a tensor."""
        return self._base.readers.get(name, [])

    def set_weight(self, i: int, slot: int, value: Array) -> None:
        """Give node `i` a constant of its own."""
        self.node(i).input[slot] = self.constant(value)

    def constant(self, value: Array | np.float32) -> str:
        """Add an initializer; return its name."""
        name = self.fresh("planted")
        self._added.append(numpy_helper.from_array(np.array(value), name))
        return name

    def fresh(self, stem: str) -> str:
        """A name that is not there yet."""
        self._count += 1
        return f"{stem}__f{self._count}"

    def divert(self, i: int, slot: int = 0) -> tuple[str, str]:
        """Rename an output of node `i`; return its new name and the name that others read."""
        node = self.node(i)
        name = node.output[slot]
        node.output[slot] = self.fresh(name)
        return node.output[slot], name

    def after(
        self, i: int, op: str, inputs: Sequence[str], output: str = "", outputs: Sequence[str] = (), **attributes: Any
    ) -> str:
        """Add a node behind node `i` and what was added there; return its (first) output."""
        made = list(outputs) or [output or self.fresh(op.lower())]
        label = self.fresh(f"{self.label(i)}/{op}")
        self.node(i)
        self._parts[i].append(helper.make_node(op, inputs, made, label, **attributes))
        return made[0]

    def before(self, i: int, op: str, inputs: Sequence[str], **attributes: Any) -> str:
        """Add a node right before node `i`; return its output."""
        node, made = self.node(i), self.fresh(op.lower())
        label = self.fresh(f"{self.label(i)}/{op}")
        place = next(k for k, part in enumerate(self._parts[i]) if part is node)
        self._parts[i].insert(place, helper.make_node(op, inputs, [made], label, **attributes))
        return made

    def drop(self, i: int) -> None:
        """Take node `i` itself out; what was added stays."""
        node = self.node(i)
        self._parts[i] = [part for part in self._parts[i] if part is not node]

    def label(self, i: int) -> str:
        """The node's name, or its first output."""
        node = self.original(i)
        return node.name or node.output[0]

    def fault(self, kind: str, i: int, detail: str, culprit: str = "") -> Fault:
        """The fault that was just planted at node `i`."""
        names = tuple(part.name or part.output[0] for part in self._parts[i])
        own = self.label(i)
        node = culprit or (own if own in names else names[0])
        return Fault(kind, node, names, tuple(self.original(i).output), detail)

    def reduce(self, i: int, op: str, x: str, axes: Sequence[int], label: str = "") -> str:
        """Add a reduction (dimensions kept) in the form that the model's opset has."""
        if self.opset >= (13 if op == "ReduceSum" else 18):
            return self.after(i, op, [x, self.constant(np.array(axes, np.int64))], keepdims=1)
        return self.after(i, op, [x], axes=list(axes), keepdims=1)

    def model(self) -> onnx.ModelProto:
        """The model with what was planted."""
        model = onnx.ModelProto()
        model.CopyFrom(self._base.model)
        del model.graph.node[:]
        for i, node in enumerate(self._base.nodes):
            model.graph.node.extend(self._parts.get(i, [node]))
        model.graph.initializer.extend(self._added)
        return model
