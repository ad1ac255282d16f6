"""A suspect that computes in lower precision as a whole: only what stands out is suspected."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.cli import layerwise

from surgery.demo import TROUBLE, make_demo
from surgery.precision import emulate_precision


def test_of_the_demos_fp16_form_the_two_troubled_nodes_are_told(tmp_path: Path) -> None:
    demo = make_demo(tmp_path)
    sides = (demo.fp16, "--reference-model", demo.fp32, "--onnxrt", "--load-inputs", demo.inputs)
    done = layerwise("debug", "locate", *sides, "--json", cwd=tmp_path)
    document = json.loads(done.stdout)
    named = {suspect["node"]: suspect["diagnosis"] for suspect in document["suspects"]}
    words = {"leap": "ill-conditioned", "overflow": "overflow"}
    assert {node: words[trouble] for node, trouble in TROUBLE.items()}.items() <= named.items()
    assert document["suspects"][0]["diagnosis"] == "overflow"
    assert len(named) <= 4


def tower(scale: float = 1.0) -> onnx.ModelProto:
    """Eight layers; the weight of layer 5 scaled."""
    rng = np.random.default_rng(5)
    nodes, weights, x = [], [], "x"
    for k in range(8):
        values = rng.standard_normal((16, 16)).astype(np.float32) / 4 * (scale if k == 5 else 1.0)
        weights.append(numpy_helper.from_array(values, f"w{k}"))
        nodes += [
            helper.make_node("MatMul", [x, f"w{k}"], [f"m{k}"], f"matmul{k}"),
            helper.make_node("Tanh", [f"m{k}"], [f"t{k}"], f"tanh{k}"),
        ]
        x = f"t{k}"
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 16]) for name in ("x", x)]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.mark.parametrize("scale", [1.0, 1.1])
def test_a_wrong_weight_stands_out_of_a_model_in_fp16(tmp_path: Path, scale: float) -> None:
    onnx.save(tower(), tmp_path / "good.onnx")
    onnx.save(emulate_precision(tower(scale), "float16"), tmp_path / "bad.onnx")
    done = layerwise(
        "debug", "locate", "bad.onnx", "--reference-model", "good.onnx", "--onnxrt", "--json", cwd=tmp_path
    )
    document = json.loads(done.stdout)
    assert [suspect["node"] for suspect in document["suspects"]] == (["matmul5"] if scale > 1 else [])
    assert "lower precision" in document["summary"]


def test_one_fp16_node_among_fp32_ones_is_the_culprit(tmp_path: Path) -> None:
    onnx.save(tower(), tmp_path / "good.onnx")
    keep = [node.name for node in tower().graph.node if node.name != "matmul3"]
    onnx.save(emulate_precision(tower(), "float16", keep=keep), tmp_path / "bad.onnx")
    done = layerwise(
        "debug", "locate", "bad.onnx", "--reference-model", "good.onnx", "--onnxrt", "--json", cwd=tmp_path
    )
    document = json.loads(done.stdout)
    assert [suspect["node"] for suspect in document["suspects"]] == ["matmul3"]
