"""What is said about nodes: which tensors are made of shapes alone, and where the batch is in what a node does."""

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import numpy_helper

from layerwise._tool.backends.arrays import Array
from layerwise._tool.surgery.cut.segments import GraphCut

_LAST, _ALL = ("Softmax", "LogSoftmax", "Hardmax"), "Reduce"


def shape_tensors(cut: GraphCut) -> frozenset[str]:
    """The tensors that are made of shapes alone: another batch gives others, and that is no fault."""
    found: set[str] = set()
    constant = {name for node in cut.nodes if node.op_type == "Constant" for name in node.output}
    constant |= cut.initializers.keys()
    for node, reads in zip(cut.nodes, cut.reads, strict=True):
        varying = [name for name in reads if name not in constant]
        if node.op_type in ("Shape", "Size") or (varying and all(name in found for name in varying)):
            found.update(name for name in node.output if name)
        elif reads and not varying:
            constant.update(node.output)
    return frozenset(found)


def note(node: onnx.NodeProto, cut: GraphCut, axes: Mapping[str, int], ranks: Mapping[str, int]) -> str:
    """What a node does to the batch. axes: of the batch, among its inputs; ranks: of its inputs."""
    if node.op_type == "BatchNormalization" and any(a.name == "training_mode" and a.i for a in node.attribute):
        return "which is in training form: it normalises over the rows of the batch"
    name = next((each for each in node.input if each in axes), None)
    if name is None:
        return ""
    at, rank = axes[name], ranks[name]
    worked = {axis + rank if axis < 0 else axis for axis in _worked(node, cut, rank)}
    if at in worked:
        return f"whose axis {at} is the batch"
    return f"which reads the batch along axis {at}"


def _worked(node: onnx.NodeProto, cut: GraphCut, rank: int) -> list[int]:
    """The axes that a node works along, as far as its attributes and constant inputs say."""
    for attribute in node.attribute:
        if attribute.name == "axis":
            return [attribute.i]
        if attribute.name == "axes":
            return list(attribute.ints)
    if node.op_type.startswith(_ALL):
        given = node.input[1] if len(node.input) > 1 else ""
        known = constant(cut, given) if given else None
        return list(range(rank)) if not given else [] if known is None else [int(axis) for axis in known.reshape(-1)]
    if node.op_type in _LAST:
        return [-1]
    return [0] if node.op_type == "Gather" else []


def constant(cut: GraphCut, name: str) -> Array | None:
    """The value of a small tensor that is no matter of the inputs; None where it is not in the model's structure."""
    tensor = cut.initializers.get(name)
    if tensor is None and name in cut.maker and cut.nodes[cut.maker[name]].op_type == "Constant":
        tensor = next((a.t for a in cut.nodes[cut.maker[name]].attribute if a.name == "value"), None)
        ints = next((list(a.ints) for a in cut.nodes[cut.maker[name]].attribute if a.name == "value_ints"), None)
        if ints is not None:
            return np.array(ints, np.int64)
    if tensor is None or tensor.external_data:
        return None
    return np.asarray(numpy_helper.to_array(tensor))
