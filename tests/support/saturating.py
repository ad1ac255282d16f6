"""Kernels for uint8 times int8 that saturate, on every CPU: its own, or arithmetic in the model in place of these."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from layerwise._tool.backends.onnxrt import runner, saturation
from layerwise._tool.backends.onnxrt.session import open_session
from layerwise._tool.backends.runner import Loadable
from layerwise._tool.backends.specs import RunnerSpec


def let_saturate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have sessions without the setting saturate in MatMulInteger by a constant weight, where this CPU's do not."""
    if saturation.saturates():
        return

    def opened(spec: RunnerSpec, model: Loadable, **more: Any) -> Any:
        if saturation.avoids_saturation(spec) or more:
            return open_session(spec, model, **more)
        proto = onnx.ModelProto.FromString(model.read())
        exact = saturation.precise(spec)
        if all(node.op_type != "MatMulInteger" for node in proto.graph.node):
            return open_session(spec, model)
        _saturate(proto.graph, str(model.data_folder() or ""))
        return open_session(exact, Loadable(data=proto.SerializeToString(), folder=model.data_folder()))

    monkeypatch.setattr(saturation, "saturates", lambda: True)
    monkeypatch.setattr(runner, "open_session", opened)


def _saturate(graph: onnx.GraphProto, folder: str) -> None:
    """Add what pairs of products lose in 16 bits to each product of a matrix of an even number of rows."""
    int8 = (tensor for tensor in graph.initializer if tensor.data_type == TensorProto.INT8)
    weights = {tensor.name: numpy_helper.to_array(tensor, folder) for tensor in int8}
    nodes = list(graph.node)
    del graph.node[:]
    for node in nodes:
        weight = weights.get(node.input[1]) if node.op_type == "MatMulInteger" else None
        if weight is None:
            graph.node.append(node)
            continue
        (k, n), (a, _), y = weight.shape, node.input[:2], node.output[0]
        constants = {
            "shape": np.array([-1, k // 2, 2, 1], np.int64),
            "weight": weight.astype(np.float32).reshape(k // 2, 2, n),
            "low": np.float32(-(2**15)),
            "high": np.float32(2**15 - 1),
            "pairs": np.array([2], np.int64),
            "all": np.array([1], np.int64),
        }
        graph.initializer.extend(numpy_helper.from_array(np.asarray(v), f"{y}:{name}") for name, v in constants.items())
        kept = node.output[0] = f"{y}:exact"
        graph.node.append(node)
        for op, inputs, output, more in (
            ("Cast", [a], "floats", {"to": TensorProto.FLOAT}),
            ("Reshape", [f"{y}:floats", f"{y}:shape"], "parts", {}),
            ("Mul", [f"{y}:parts", f"{y}:weight"], "products", {}),
            ("ReduceSum", [f"{y}:products", f"{y}:pairs"], "sums", {"keepdims": 0}),
            ("Clip", [f"{y}:sums", f"{y}:low", f"{y}:high"], "clipped", {}),
            ("Sub", [f"{y}:clipped", f"{y}:sums"], "losses", {}),
            ("ReduceSum", [f"{y}:losses", f"{y}:all"], "lost", {"keepdims": 0}),
            ("Cast", [f"{y}:lost"], "whole", {"to": TensorProto.INT32}),
            ("Shape", [kept], "made", {}),
            ("Reshape", [f"{y}:whole", f"{y}:made"], "placed", {}),
            ("Add", [kept, f"{y}:placed"], "", {}),
        ):
            graph.node.append(helper.make_node(op, inputs, [f"{y}:{output}" if output else y], f"{y}:{output}", **more))
