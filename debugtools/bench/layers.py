"""The layers that a backend really ran, mapped to the model."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import onnx

from layerwise._tool.backends.bench.onnxrt_profile import LayerTime
from layerwise._tool.backends.model.protos import parse_model
from layerwise._tool.backends.runner import Loadable
from layerwise._tool.backends.tensors import dtype_name
from layerwise._tool.debugtools.bench.rows import ProfileRow
from layerwise._tool.surgery.model.structure import node_label

_LISTED = re.compile(r" \+ |, |\.\.\.|PWN\(|ForeignNode\[")
_BLOCKED = "_nchwc"  # what onnxruntime adds to a node's name, or to its tensor's, where the layout is blocked


@dataclass(frozen=True)
class ModelNode:
    """The model's counterpart of a layer: a tensor, and name and operator of the node that makes it; empty if
    unknown.
    """

    tensor: str = ""
    node: str = ""
    op: str = ""


class Origins:
    """Finds the model's node for a layer: by a tensor that both make, else by name. For fused nodes, the last
    one.
    """

    def __init__(self, model: onnx.ModelProto | None) -> None:
        nodes = model.graph.node if model is not None else ()
        self._makers = {name: node for node in nodes for name in node.output if name}
        self._named = {node.name: node for node in nodes if node.name}

    def place(self, name: str, outputs: Iterable[str]) -> ModelNode:
        """Return the counterpart of a layer with that name that makes these tensors."""
        plain = name.removesuffix(_BLOCKED)
        for tensor in (*outputs, plain):
            if tensor in self._makers:
                return ModelNode(tensor, node_label(self._makers[tensor]), self._makers[tensor].op_type)
        node = self._named.get(name) or self._named.get(plain) or self._last_named(name)
        return ModelNode(next(filter(None, node.output), ""), node.name, node.op_type) if node else ModelNode()

    def _last_named(self, name: str) -> onnx.NodeProto | None:
        """Return the last node in the name of a TensorRT layer: `A + B`, `PWN(A, B)`, `{ForeignNode[A...B]}`."""
        words = (word.strip("[]{}() ") for word in _LISTED.split(name))
        return next((self._named[word] for word in reversed(list(words)) if word in self._named), None)


def with_names(model: Loadable) -> Loadable:
    """Return the model with a name for each node of its main graph, by default that of its first output, since a
    profile identifies layers by name only (onnxruntime rejects duplicates).
    """
    proto = parse_model(model.read())
    for node in proto.graph.node:
        node.name = node_label(node)
    return Loadable(data=proto.SerializeToString(), folder=model.data_folder())


def profile_rows(
    runner: str, batch: int | None, layers: Sequence[LayerTime], executed: onnx.ModelProto | None, origins: Origins
) -> list[ProfileRow]:
    """Rows of the table profile, in the order of execution."""
    total = sum(layer.typical_ms for layer in layers) or 1.0
    outputs = {node.name: list(node.output) for node in executed.graph.node} if executed is not None else {}
    rows = []
    for i, layer in enumerate(layers):
        place = origins.place(layer.name, outputs.get(layer.name, []))
        rows.append(ProfileRow(
            runner=runner, batch=batch, i=i, name=layer.name, op=layer.op or place.op, provider=layer.provider,
            tensor=place.tensor, node=place.node, calls=layer.calls, mean_ms=layer.mean_ms, median_ms=layer.median_ms,
            total_ms=sum(layer.runs_ms), typical_ms=layer.typical_ms, percent=layer.typical_ms / total * 100,
        ))  # fmt: skip
    return rows


def layer_information(executed: onnx.ModelProto, origins: Origins) -> str:
    """Return the layers as JSON in the form of trtexec's `--exportLayerInfo` at detailed verbosity."""
    graph = executed.graph
    known = {value.name: value.type.tensor_type for value in (*graph.input, *graph.value_info, *graph.output)}

    def tensor(name: str) -> dict[str, Any]:
        kind = known.get(name)
        if kind is None or not kind.elem_type:
            return {"Name": name}
        dims = [dim.dim_value if dim.HasField("dim_value") else -1 for dim in kind.shape.dim]
        return {"Name": name, "Dimensions": dims, "Format/Datatype": dtype_name(kind.elem_type)}

    layers = [
        {"Name": node.name, "LayerType": node.op_type, "Inputs": [tensor(name) for name in node.input if name],
         "Outputs": [tensor(name) for name in node.output if name],
         "Metadata": f"[ONNX Layer: {origins.place(node.name, node.output).node}]"} for node in graph.node
    ]  # fmt: skip
    bindings = [value.name for value in (*graph.input, *graph.output)]
    return json.dumps({"Layers": layers, "Bindings": bindings}, indent=1)


def read_graph(path: str | None) -> onnx.ModelProto | None:
    """Read a graph written by a backend, without its weights."""
    return onnx.load(path, load_external_data=False) if path is not None else None
