"""A model whose tensors cannot be computed, with inferred shapes that no memory holds, is still reduced."""

from pathlib import Path

import onnx
from onnx import TensorProto, helper
from support.cli import layerwise


def test_shapes_beyond_any_memory_are_not_fed(tmp_path: Path) -> None:
    weights = [
        helper.make_tensor("w", TensorProto.FLOAT, [3], [0.0] * 3),
        helper.make_tensor("i", TensorProto.INT64, [1], [7]),  # outside of w: nothing can be run
        helper.make_tensor("s", TensorProto.INT64, [2], [1 << 62] * 2),
    ]
    nodes = [helper.make_node("Gather", ["w", "i"], ["g"]), helper.make_node("Expand", ["g", "s"], ["e"]),
             helper.make_node("Mul", ["e", "x"], ["y"])]  # fmt: skip
    ends = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1]),
            helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]  # fmt: skip
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    done = layerwise("debug", "reduce", "m.onnx", "-o", "made.onnx", "--check", "false", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert onnx.load(tmp_path / "made.onnx", load_external_data=False).graph.node


def test_a_shape_that_is_empty_and_yet_too_large_is_not_made(tmp_path: Path) -> None:
    """Such tensors have no elements, but numpy refuses their shape; the model itself cannot be run."""
    values = {name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [1 << 62, 0]) for name in ("m", "y")}
    nodes = [
        helper.make_node("Identity", ["x"], ["m"]),
        helper.make_node("NoSuchOperator", ["m"], ["y"], domain="own"),
    ]
    fed = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])
    graph = helper.make_graph(nodes, "g", [fed], [values["y"]], value_info=[values["m"]])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), tmp_path / "empty.onnx")
    done = layerwise("debug", "reduce", "empty.onnx", "-o", "out.onnx", "--check", "false", cwd=tmp_path)
    assert done.returncode == 2 and "too big" not in done.stdout + done.stderr
    assert "the two sides have no tensor in common" in done.stdout + done.stderr
