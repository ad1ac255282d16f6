"""A suspect that computes in lower precision as a whole: only what stands out is suspected."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.cli import layerwise

from layerwise._tool.surgery.demo import TROUBLE, make_demo
from layerwise._tool.surgery.precision.nodes import emulate_precision


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


def test_a_model_in_fp16_is_reduced_to_what_stands_out(tmp_path: Path) -> None:
    demo = make_demo(tmp_path)
    sides = (demo.fp16, "--reference-model", demo.fp32, "--onnxrt", "--load-inputs", demo.inputs)
    done = layerwise("debug", "reduce", *sides, "-o", "reduced.onnx", "--json", cwd=tmp_path)
    result = json.loads(done.stdout)
    assert (done.returncode, result["verified"]) == (0, True)
    overflow = next(node for node, trouble in TROUBLE.items() if trouble == "overflow")
    assert [[node["node"] for node in found["nodes"]] for found in result["found"]] == [[overflow]]
    assert sorted(path.name for path in tmp_path.glob("reduced*")) == ["reduced.onnx"]


def test_many_independent_culprits_are_cut_short(tmp_path: Path) -> None:
    good = tower()
    bad = tower()
    for k in range(8):
        bad.graph.initializer[k].CopyFrom(
            numpy_helper.from_array(numpy_helper.to_array(bad.graph.initializer[k]) * np.float32(1.1 + k / 50), f"w{k}")
        )
    onnx.save(good, tmp_path / "good.onnx")
    onnx.save(bad, tmp_path / "bad.onnx")
    done = layerwise(
        "debug", "reduce", "bad.onnx", "--reference-model", "good.onnx", "--onnxrt", "-o", "r.onnx", cwd=tmp_path
    )
    assert done.returncode == 0
    assert "and 3 more" in done.stdout


def activated(approximate: str) -> onnx.ModelProto:
    """Five layers with Gelu behind each."""
    model = tower()
    del model.graph.node[10:]
    for weight in model.graph.initializer:
        weight.CopyFrom(numpy_helper.from_array(2 * numpy_helper.to_array(weight), weight.name))
    for node in model.graph.node:
        if node.op_type == "Tanh":
            node.op_type = "Gelu"
            node.attribute.append(helper.make_attribute("approximate", approximate))
    model.graph.output[0].name = model.graph.node[-1].output[0]
    model.opset_import[0].version = 20
    return model


@pytest.mark.parametrize("other", [("--reference-model", "good.onnx"), ("--runner", "reference,model=good.onnx")])
def test_of_an_activation_that_is_wrong_everywhere_the_first_is_told(other: tuple[str, str], tmp_path: Path) -> None:
    """None stands out among its like; but the errors are their own, not those of inputs that they make larger."""
    onnx.save(activated("none"), tmp_path / "good.onnx")
    onnx.save(activated("tanh"), tmp_path / "bad.onnx")
    done = layerwise("debug", "locate", "bad.onnx", "--onnxrt", *other, "--json", cwd=tmp_path)
    document = json.loads(done.stdout)
    assert [(suspect["node"], suspect["diagnosis"]) for suspect in document["suspects"]] == [("tanh0", "kernel")]
    assert "so are 5 of 5 nodes of Gelu" in document["suspects"][0]["evidence"]
