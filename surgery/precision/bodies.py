"""The bodies of If, Loop and Scan in FP16 or bfloat16; each keeps the types of its inputs and outputs."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

import onnx
from onnx import helper

from layerwise._tool.backends.model.reads import captures, every_node, subgraphs
from layerwise._tool.surgery.model.proto import all_names, shell
from layerwise._tool.surgery.precision.nodes import Rewrite
from layerwise._tool.surgery.precision.plan import LowType, PrecisionPlan
from layerwise._tool.surgery.types.node_types import tensor_types

__all__ = ["every_node", "lower_bodies"]


def lower_bodies(
    model: onnx.ModelProto, low: LowType, keep: Collection[str], folder: Path | None
) -> tuple[list[PrecisionPlan], list[str]]:
    """Rewrite all bodies of `model` in place, inner ones first.

    Captures stay in FP32 outside and are cast inside. Returns the bodies' plans, and the
    constants that were clipped. LayerwiseError as `surgery.precision.nodes.convert_precision`.
    """
    plans: list[PrecisionPlan] = []
    clipped: list[str] = []

    def lower(graph: onnx.GraphProto, types: Mapping[str, int]) -> None:
        for body in _bodies(graph.node):
            alone = _alone(model, body, types)
            lower(alone.graph, tensor_types(alone))
            plan = PrecisionPlan.of(alone, low, keep)
            rewrite = Rewrite(alone, low, plan, folder, emulate=False, saturate=True)
            rewrite.names += names  # also not used in other bodies: onnx's inference treats equal names as the same
            _put_back(body, rewrite.result().graph)
            names.update(rewrite.names.keys())
            plans.append(plan)
            clipped.extend(rewrite.clipped)

    names = all_names(model.graph)
    if any(True for _ in _bodies(model.graph.node)):
        lower(model.graph, tensor_types(model))
    return plans, clipped


def _bodies(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.GraphProto]:
    for node in nodes:
        yield from subgraphs(node)


def _alone(model: onnx.ModelProto, body: onnx.GraphProto, types: Mapping[str, int]) -> onnx.ModelProto:
    """Return the body as a model: its captures become inputs, after its own."""
    alone = shell(model)
    alone.graph.CopyFrom(body)
    for name in captures(body):
        if name in types:
            alone.graph.input.append(helper.make_tensor_value_info(name, types[name], None))
    return alone


def _put_back(body: onnx.GraphProto, lowered: onnx.GraphProto) -> None:
    inputs = list(body.input)
    body.CopyFrom(lowered)
    del body.input[:]
    body.input.extend(inputs)
