"""What a conversion to INT8 costs, by running both models."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.quantised import static

from layerwise._tool.debugtools.convert.conclusion import conclusion
from layerwise._tool.debugtools.convert.cost import measured
from layerwise._tool.debugtools.convert.spec import ConvertSpec


def test_the_worst_output_and_how_far_it_is_off(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    weight = numpy_helper.from_array(random.standard_normal((16, 16)).astype(np.float32), "w")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"], "product"), helper.make_node("Neg", ["x"], ["b"], "minus")]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 16]) for name in "xab"]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    feeds = [{"x": random.standard_normal((4, 16)).astype(np.float32)} for _ in range(2)]
    onnx.save(model, tmp_path / "float.onnx")
    onnx.save(static(model, feeds[0], qdq=True), tmp_path / "int8.onnx")
    found = measured(tmp_path / "float.onnx", tmp_path / "int8.onnx", feeds)
    assert found.inputs == 2
    assert found.worst == "a"
    assert 1e-4 < found.outputs["a"] < 0.1
    told = {"nodes": 2, "quantised": 1, "cost": found.outputs, "worst": "a", "inputs": 2}
    spec = ConvertSpec(model="float.onnx", output="int8.onnx")
    assert f"output a is off by {found.outputs['a']:.2g} (relative L2) on 2 inputs" in conclusion(spec, told, [])


def test_what_is_not_finite_is_infinitely_far_off(tmp_path: Path) -> None:
    for name, op in (("float", "Neg"), ("broken", "Sqrt")):
        values = [helper.make_tensor_value_info(each, TensorProto.FLOAT, [2]) for each in "xy"]
        graph = helper.make_graph([helper.make_node(op, ["x"], ["y"])], "g", values[:1], values[1:])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
                  tmp_path / f"{name}.onnx")  # fmt: skip
    feed = {"x": np.array([-1.0, 2.0], np.float32)}
    found = measured(tmp_path / "float.onnx", tmp_path / "broken.onnx", [feed])
    assert found.outputs == {"y": pytest.approx(np.inf)}
    assert "no longer finite" in conclusion(
        ConvertSpec(model="m", output="o"), {"nodes": 1, "cost": {"y": None}, "worst": "y", "inputs": 1}, []
    )
