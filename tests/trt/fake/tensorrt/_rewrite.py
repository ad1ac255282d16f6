"""What a build does to the ONNX model that will run: precisions of 10, bad tactics, coarse FP16."""

from functools import partial
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from . import _faults
from ._tactics import CANDIDATES, Choice


def precision_of(layer: Any, config: Any) -> str:
    """The type a layer computes in: FLOAT, HALF, BF16, INT8 or what its output says."""
    stated = layer.values.get("precision")
    obeyed = config._has("OBEY_PRECISION_CONSTRAINTS") or config._has("PREFER_PRECISION_CONSTRAINTS")
    natural = layer.outputs[0]._typed()[0] if layer.outputs else None
    name = natural.name if natural is not None else "FLOAT"
    if name != "FLOAT" or strongly_typed(layer.network):
        return name
    if stated is not None and obeyed:
        return str(stated.name)
    if layer.kind in ("IDENTITY", "SHUFFLE"):  # moves data: nothing is gained
        return "FLOAT"
    for flag, kind in (("INT8", "INT8"), ("FP16", "HALF"), ("BF16", "BF16")):
        if config._has(flag) and not (flag == "INT8" and config._has("FP16")):
            return kind
    return "FLOAT"


def strongly_typed(network: Any) -> bool:
    """Whether types are those of the network: always on 11, by flag on 10."""
    from ._arguments import CLASSES
    from ._recording import version

    flag = CLASSES["NetworkDefinitionCreationFlag"].STRONGLY_TYPED
    return version() >= 11 or bool(network._flags >> int(flag) & 1)


class Rewriter:
    """Inserts nodes behind tensors: whoever read the tensor reads the changed one, graph outputs included."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.graph = model.graph
        self.groups = [[node] for node in model.graph.node]
        self.makers = {name: (at, node) for at, (node,) in enumerate(self.groups) for name in node.output}
        self.renamed = 0

    def behind(self, tensor: str, make: Any) -> None:
        """Rename what produces `tensor` and put make(old, new) in between."""
        at, node = self.makers[tensor]
        raw, self.renamed = f"{tensor}~{self.renamed}", self.renamed + 1
        node.output[list(node.output).index(tensor)] = raw
        made = make(raw, tensor)
        self.groups[at] += made
        self.makers[tensor] = (at, made[-1])

    def finish(self) -> None:
        """Write the nodes back in order."""
        nodes = [node for group in self.groups for node in group]
        kept = onnx.GraphProto(node=nodes)
        self.graph.ClearField("node")
        self.graph.node.extend(kept.node)

    def constant(self, array: Any) -> str:
        """Add an initializer; its name."""
        name = f"fault_{len(self.graph.initializer)}"
        self.graph.initializer.append(numpy_helper.from_array(np.asarray(array), name))
        return name


def rewrite(
    model: onnx.ModelProto, network: Any, config: Any, choices: list[Choice], scales: dict[str, float]
) -> dict[str, str]:
    """Change the model in place; the precision of every layer by name."""
    work, precisions = Rewriter(model), {}
    for layer, choice in zip(network._layers, choices, strict=True):
        precisions[layer.name] = precision = precision_of(layer, config)
        for tensor in layer.outputs:
            kind = tensor._typed()[0]
            if kind is not None and kind.name in ("FLOAT", "HALF", "BF16"):
                _spoil(work, layer, tensor, precision, choice)
                if precision == "INT8" and tensor._id in scales:
                    work.behind(tensor._id, partial(_quantized, work, scales[tensor._id]))
    work.finish()
    return precisions


def _quantized(work: Rewriter, scale: float, old: str, new: str) -> list[onnx.NodeProto]:
    step, zero = work.constant(np.array(scale or 1.0, np.float32)), work.constant(np.array(0, np.int8))
    return [
        helper.make_node("QuantizeLinear", [old, step, zero], [f"{new}~int8"]),
        helper.make_node("DequantizeLinear", [f"{new}~int8", step, zero], [new]),
    ]


def _spoil(work: Rewriter, layer: Any, tensor: Any, precision: str, choice: Choice) -> None:
    kind = tensor._typed()[0]
    if kind.name == "HALF":  # onnxruntime leaves the rounding of a float16 operator out where a Cast to float32 follows
        work.behind(tensor._id, lambda old, new: [helper.make_node("Identity", [old], [new])])
    if precision in ("HALF", "BF16") and kind.name == "FLOAT":
        to = onnx.TensorProto.FLOAT16 if precision == "HALF" else onnx.TensorProto.BFLOAT16
        work.behind(tensor._id, lambda old, new: _round(old, new, to))
    fault = _faults.faults().get("fp16") or {}
    if precision == "HALF" and _faults.matches(layer.name, fault.get("layers")):
        work.behind(tensor._id, lambda old, new: _coarse(work, old, new, kind, fault.get("bits", 3)))
    fused = _faults.faults().get("fused") or {}
    makers = [read._layer for read in layer.inputs if read is not None]
    behind = any(maker is not None and maker.kind != "CAST" for maker in makers)
    if behind and _faults.matches(layer.name, fused.get("layers")):
        work.behind(tensor._id, lambda old, new: _scale(work, old, new, kind, fused["scale"]))
    bad = _faults.faults().get("bad_tactic") or {}
    if choice.candidate == CANDIDATES - 1 and _faults.matches(layer.name, bad.get("layers")):
        work.behind(tensor._id, lambda old, new: _scale(work, old, new, kind, bad.get("scale", 1.5)))


def _round(old: str, new: str, to: int) -> list[onnx.NodeProto]:
    return [
        helper.make_node("Cast", [old], [f"{new}~half"], to=to),
        helper.make_node("Cast", [f"{new}~half"], [new], to=onnx.TensorProto.FLOAT),
    ]


def _scale(work: Rewriter, old: str, new: str, kind: Any, factor: float) -> list[onnx.NodeProto]:
    from ._types import numpy_of

    return [helper.make_node("Mul", [old, work.constant(np.array(factor, numpy_of(kind)))], [new])]


def _coarse(work: Rewriter, old: str, new: str, kind: Any, bits: int) -> list[onnx.NodeProto]:
    """Keep `bits` of mantissa by Dekker's split in float32: c = (2^s + 1) x, kept = c - (c - x)."""
    from ._types import onnx_of

    factor = work.constant(np.array(2.0 ** (24 - bits) + 1, np.float32))
    names = [f"{new}~{part}" for part in ("wide", "product", "rest", "kept")]
    return [
        helper.make_node("Cast", [old], [names[0]], to=onnx.TensorProto.FLOAT),
        helper.make_node("Mul", [names[0], factor], [names[1]]),
        helper.make_node("Sub", [names[1], names[0]], [names[2]]),
        helper.make_node("Sub", [names[1], names[2]], [names[3]]),
        helper.make_node("Cast", [names[3]], [new], to=onnx_of(kind)),
    ]
