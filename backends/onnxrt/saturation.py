"""Whether onnxruntime's kernels for uint8 times int8 saturate on this CPU, and how to run a model without that.

On x86-64 without VNNI they add pairs of products in 16 bits (vpmaddubsw): 2 * 255 * 127 does not fit, so that a model
whose weights take up all codes of int8 computes wrong numbers. Weights in uint8, or in 7 bits, do not.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from layerwise._tool.backends.specs import RunnerSpec

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

SETTING = "session.x64quantprecision"
"""onnxruntime's setting of a session: with 1 its optimiser turns constant weights of int8 into uint8 on such CPUs."""
AVOIDED = (
    f"On such CPUs (x86-64 without VNNI) set {SETTING}=1 (here by --session-config; before onnxruntime 1.30 only where "
    "all weights have zero points), or quantise weights in 7 bits (reduce_range)."
)
_ON = "1"
_TOO_LOW = ("disable", "basic")  # levels at which the optimiser does not do that
_ROW, _COLUMN = 255, 127
_ZERO_POINTS = {
    "MatMulInteger": 3, "ConvInteger": 3, "DequantizeLinear": 2, "DynamicQuantizeMatMul": 3, "MatMulIntegerToFloat": 5,
    "QAttention": 7,
}  # fmt: skip
"""Where operators take the zero point of a weight that may be left out."""


@cache
def saturates() -> bool:
    """Whether they do here: found by running one product, once a process."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    from layerwise._tool.backends.onnxrt.engine import onnxruntime

    weight = numpy_helper.from_array(np.full((2, 1), _COLUMN, np.int8), "b")
    product = helper.make_node("MatMulInteger", ["a", "b"], ["y"])
    ends = [helper.make_tensor_value_info(name, kind, [1, size])
            for name, kind, size in (("a", TensorProto.UINT8, 2), ("y", TensorProto.INT32, 1))]  # fmt: skip
    graph = helper.make_graph([product], "saturation", ends[:1], ends[1:], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    options: Any = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"a": np.full((1, 2), _ROW, np.uint8)})
    return int(found[0, 0]) != 2 * _ROW * _COLUMN


def may_saturate(spec: RunnerSpec) -> bool:
    """Whether a runner's products of uint8 and int8 saturate: on onnxruntime's CPU provider, without the setting."""
    from layerwise._tool.backends.onnxrt.session import CPU, provider_names

    if spec.kind != "onnxrt" or provider_names(spec.providers)[0] != CPU:
        return False
    return not avoids_saturation(spec) and saturates()


def avoids_saturation(spec: RunnerSpec) -> bool:
    """Whether a runner of onnxruntime has the setting, and optimises as far as that takes."""
    return spec.session_settings.get(SETTING) == _ON and spec.graph_optimization_level not in _TOO_LOW


def precise(spec: RunnerSpec, model: "ModelProto | None" = None) -> RunnerSpec:
    """The runner with the setting, and optimising as far as that takes; ONNX's reference evaluator for a model of which
    a weight has no zero point on an onnxruntime before 1.30, which ends the process with the setting then.

    Nothing is folded: products of constants are computed before the setting takes effect.
    """
    if model is not None and not _setting_works() and any(map(_lacks_zero_point, _nodes(model))):
        return RunnerSpec(kind="reference", name=spec.name, model=spec.model, rename=spec.rename)
    level = "extended" if spec.graph_optimization_level in _TOO_LOW else spec.graph_optimization_level
    without = [*(spec.options.get("disabled_optimizers") or ()), "ConstantFolding"]
    options = {**spec.options, "disabled_optimizers": without}
    return replace(spec.setting(SETTING, _ON), graph_optimization_level=level, options=options)


def way_of(spec: RunnerSpec) -> str:
    """What a runner that `precise` gave computes with, in words."""
    return f"{SETTING}=1" if spec.kind == "onnxrt" else "the ONNX reference evaluator"


def _nodes(model: "ModelProto") -> "Iterator[NodeProto]":
    for nodes in (model.graph.node, *(function.node for function in model.functions)):
        yield from _with_bodies(nodes)


def _with_bodies(nodes: "Iterable[NodeProto]") -> "Iterator[NodeProto]":
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                yield from _with_bodies(body.node)


def _lacks_zero_point(node: "NodeProto") -> bool:
    place = _ZERO_POINTS.get(node.op_type)
    return place is not None and (len(node.input) <= place or not node.input[place])


def _setting_works() -> bool:
    from layerwise._tool.backends.onnxrt.engine import onnxruntime

    major, minor = onnxruntime.__version__.split(".")[:2]
    return (int(major), int(minor)) >= (1, 30)
