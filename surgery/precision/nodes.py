"""FP16 and bfloat16 as a choice per node, written into the graph.

`convert_precision` makes the nodes real FP16: Cast nodes at the boundaries, converted weights.
`emulate_precision` keeps them FP32 between Cast round trips, to show FP16 on a CPU: onnxruntime computes
FP16 nodes there in FP32 and hides their overflows.
Both keep the names of tensors, and the types of graph inputs and outputs.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from layerwise._tool.backends.reference.evaluate import tensor_array
from layerwise._tool.surgery.model.proto import all_names, fresh, shell
from layerwise._tool.surgery.model.structure import node_label
from layerwise._tool.surgery.precision.plan import EXACT, ONNX_TYPE, LowType, PrecisionPlan
from layerwise._tool.surgery.types.node_types import FLOAT, Slots

_NUMPY = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}


def convert_precision(
    model: onnx.ModelProto, low: LowType, *, keep: Collection[str] = (), folder: Path | None = None
) -> onnx.ModelProto:
    """Return a copy of `model` whose nodes compute in `low`, except those in `keep` and those that cannot.

    keep: names of nodes that stay in FP32 (the first output's name for a node without one).
    folder: location of external weights; those that change are embedded, the others stay external.
    Nodes with subgraphs, without an ONNX schema that takes `low`, or without known types stay in FP32. Constants too
    large for `low` become infinite.
    """
    return Rewrite(model, low, PrecisionPlan.of(model, low, keep), folder, emulate=False).result()


def emulate_precision(
    model: onnx.ModelProto, low: LowType, *, keep: Collection[str] = (), folder: Path | None = None
) -> onnx.ModelProto:
    """Return a copy of `model` that computes in FP32 and rounds like `convert_precision`'s, node by node.

    Every tensor keeps its name and holds rounded values in FP32. Values inside a node are not rounded: an
    operator that overflows only internally stays finite.
    """
    return Rewrite(model, low, PrecisionPlan.of(model, low, keep), folder, emulate=True).result()


def rounded(array: NDArray[Any], low: LowType, *, emulate: bool) -> NDArray[Any]:
    """Return an FP32 array in `low`, or rounded to it and back in FP32 (`emulate`); too large values become inf."""
    with np.errstate(over="ignore"):
        values = array.astype(_NUMPY[low])
    return values.astype(np.float32) if emulate else values


def saturated(array: NDArray[Any], full: NDArray[Any], low: LowType) -> NDArray[Any]:
    """Return `array`, which is `full` rounded, with finite values that became infinite set to `low`'s largest."""
    largest: Any = ml_dtypes.finfo(_NUMPY[low]).max  # type: ignore[no-untyped-call]
    largest = np.copysign(np.float32(largest), full).astype(array.dtype)
    return np.where(np.isinf(array) & np.isfinite(full), largest, array)


class Rewrite:
    """A pass over the main graph that writes the new one.

    forms: weights with existing low forms, by name. saturate: constants beyond the low type's range become its
    largest value, not infinite; their names are then in `clipped`.
    """

    def __init__(
        self,
        model: onnx.ModelProto,
        low: LowType,
        plan: PrecisionPlan,
        folder: Path | None,
        *,
        emulate: bool,
        forms: Mapping[str, TensorProto] | None = None,
        saturate: bool = False,
    ) -> None:
        self.model, self.low, self.folder, self.emulate = model, low, folder, emulate
        self.saturate = saturate
        self.clipped: list[str] = []
        self.plan, self.forms = plan, forms or {}
        self.low_name: dict[str, str] = {}
        self.full_name: dict[str, str] = {}
        self.nodes: list[onnx.NodeProto] = []
        self.new_types: dict[str, tuple[str, int]] = {}  # tensor -> (the one it came from, its type)
        self.names = all_names(model.graph)
        self.node_names = Counter(node.name for node in model.graph.node)

    def result(self) -> onnx.ModelProto:
        model = shell(self.model)
        graph = model.graph
        graph.initializer.extend(self._weights())
        weights = {tensor.name for tensor in self.model.graph.initializer}
        for value in self.model.graph.input:
            if value.name not in weights:
                self._lower_born_full(value.name)
        for node, slots in zip(self.model.graph.node, self.plan.slots, strict=True):
            self._node(node, slots)
        graph.node.extend(self.nodes)
        self._types(graph)
        return model

    # Weights

    def _weights(self) -> Iterator[TensorProto]:
        for tensor in self.model.graph.initializer:
            name = tensor.name
            if tensor.data_type != FLOAT or name not in self.plan.needs_low:
                yield tensor
                continue
            self.low_name[name] = name
            if name in self.plan.needs_full:
                yield tensor
                self.low_name[name] = self._tensor_name(name, self._form())
            known = self.forms.get(name)
            if known is None:
                yield self._rounded(tensor, self.low_name[name])
            else:
                yield self._known(known, self.low_name[name])

    def _known(self, form: TensorProto, name: str) -> TensorProto:
        tensor = TensorProto()
        tensor.CopyFrom(form)
        self.new_types[name] = (form.name, form.data_type)
        tensor.name = name
        return tensor

    def _rounded(self, tensor: TensorProto, name: str) -> TensorProto:
        full = tensor_array(tensor, self.folder)
        array = rounded(full, self.low, emulate=self.emulate)
        if self.saturate and (np.isinf(array) & np.isfinite(full)).any():
            array = saturated(array, full, self.low)
            self.clipped.append(tensor.name or name)
        self.new_types[name] = (tensor.name, FLOAT if self.emulate else ONNX_TYPE[self.low])
        return numpy_helper.from_array(array, name)

    # Nodes

    def _node(self, node: onnx.NodeProto, slots: Slots | None) -> None:
        if slots is None and self._constant(node):
            return
        new = onnx.NodeProto()
        new.CopyFrom(node)
        for position, name in enumerate(node.input):
            low = slots is not None and position in slots.inputs
            new.input[position] = (self.low_name if low else self.full_name).get(name, name)
        if slots is None:
            self.nodes.append(new)
            for name in node.output:
                self._lower_born_full(name)
        else:
            self._low_node(new, slots)

    def _constant(self, node: onnx.NodeProto) -> bool:
        """A constant that nodes need in low form becomes a separate low constant."""
        if node.op_type != "Constant" or node.domain or node.output[0] not in self.plan.needs_low:
            return False
        name = node.output[0]
        if node_label(node) in self.plan.kept:
            return False
        value = next((a.t for a in node.attribute if a.name == "value"), None)
        if value is None or value.data_type != FLOAT:
            return False
        self.low_name[name] = name
        if name in self.plan.needs_full:
            self.nodes.append(node)
            self.low_name[name] = self._tensor_name(name, self._form())
        rounded = self._rounded(value, self.low_name[name])
        self.new_types[self.low_name[name]] = (name, rounded.data_type)
        label = node.name if self.low_name[name] == name else self._node_name(name, self._form())
        self.nodes.append(helper.make_node("Constant", [], [self.low_name[name]], label, value=rounded))
        return True

    def _low_node(self, node: onnx.NodeProto, slots: Slots) -> None:
        """Append a node that computes low, then casts of its outputs to the forms that are read."""
        outputs = [node.output[position] for position in sorted(slots.outputs)]
        if self.emulate:
            self.nodes.append(node)
            if node.op_type not in EXACT:
                self._round_outputs(node, outputs)
            return
        _set_low_attributes(node, slots, ONNX_TYPE[self.low])
        for position in slots.outputs:
            name = node.output[position]
            if name in self.plan.pinned:
                node.output[position] = self._tensor_name(name, self.low)
            self.low_name[name] = node.output[position]
            self.new_types[node.output[position]] = (name, ONNX_TYPE[self.low])
        self.nodes.append(node)
        for name in outputs:
            if name in self.plan.needs_full:
                self.full_name[name] = name if name in self.plan.pinned else self._tensor_name(name, "float32")
                self._cast(self.low_name[name], self.full_name[name], FLOAT, name)

    def _round_outputs(self, node: onnx.NodeProto, outputs: Sequence[str]) -> None:
        for name in outputs:
            exact = self._tensor_name(name, "exact")
            node.output[list(node.output).index(name)] = exact
            self.new_types[exact] = (name, FLOAT)
            self._round_trip(exact, name, name)

    def _lower_born_full(self, name: str) -> None:
        """Append the low form of a tensor that is made in FP32, once, if a low node reads it."""
        if name not in self.plan.needs_low or name in self.plan.born_low:
            return
        self.low_name[name] = self._tensor_name(name, self._form())
        if self.emulate:
            self._round_trip(name, self.low_name[name], name)
        else:
            self._cast(name, self.low_name[name], ONNX_TYPE[self.low], name)

    def _round_trip(self, source: str, target: str, origin: str) -> None:
        middle = self._tensor_name(origin, self.low)
        self._cast(source, middle, ONNX_TYPE[self.low], origin)
        self._cast(middle, target, FLOAT, origin)

    def _cast(self, source: str, target: str, to: int, origin: str) -> None:
        self.new_types[target] = (origin, to)
        name = self._node_name(origin, f"to_{TensorProto.DataType.Name(to).lower()}")
        self.nodes.append(helper.make_node("Cast", [source], [target], name, to=to))

    # Names and types

    def _form(self) -> str:
        return "rounded" if self.emulate else self.low

    def _tensor_name(self, name: str, suffix: str) -> str:
        return fresh(self.names, f"{name}__{suffix}")

    def _node_name(self, tensor: str, suffix: str) -> str:
        return fresh(self.node_names, f"{tensor}__{suffix}")

    def _types(self, graph: onnx.GraphProto) -> None:
        """Give every new or changed tensor a value_info with its type and its origin's shape."""
        known = {value.name: value for value in [*self.model.graph.value_info, *self.model.graph.input]}
        known |= {value.name: value for value in self.model.graph.output}
        fixed = {value.name for value in self.model.graph.output}
        for value in graph.input:
            if value.name in self.new_types:  # a weight that is also listed as an input, as before IR 4
                value.type.tensor_type.elem_type = self.new_types[value.name][1]
        weights = {tensor.name for tensor in graph.initializer}
        for value in self.model.graph.value_info:
            if value.name not in self.new_types:
                graph.value_info.append(value)
        for name, (origin, dtype) in self.new_types.items():
            if origin in known and name not in fixed and name not in weights:
                value = graph.value_info.add()
                value.CopyFrom(known[origin])
                value.name, value.type.tensor_type.elem_type = name, dtype


def _set_low_attributes(node: onnx.NodeProto, slots: Slots, low: int) -> None:
    """Change the attribute that determines an output's type: Cast's `to`, ConstantOfShape's `value`."""
    if not slots.by_attribute:
        return
    if node.op_type == "Cast":
        next(a for a in node.attribute if a.name == "to").i = low
        return
    value = next((tensor_array(a.t) for a in node.attribute if a.name == "value"), np.zeros(1, np.float32))
    del node.attribute[:]
    with np.errstate(over="ignore"):
        array = value.astype(helper.tensor_dtype_to_np_dtype(low))
    node.attribute.append(helper.make_attribute("value", numpy_helper.from_array(array)))
