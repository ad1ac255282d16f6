"""Whole models in FP16 and bfloat16 load and run, and kept nodes keep their precision."""

from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto
from support import models
from support.heavy import heavy_model

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.model.protos import all_graphs
from layerwise._tool.backends.reference.evaluate import tensor_array
from layerwise._tool.backends.runner import Loadable, open_runner
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.surgery.history.soundness import edit_problems
from layerwise._tool.surgery.model.structure import Structure, node_label
from layerwise._tool.surgery.precision.conversion import every_node, labels, to_low_precision
from layerwise._tool.surgery.saving.model import save
from layerwise._tool.surgery.types.node_types import tensor_types

MIXED = """g (float[2,4] x, int64[1] n) => (float[2,4] y, int64[2] s, float[m] z) <float[4] w = {1, 2, 3, 4}> {
    [half] k = Constant<value = float {0.5}>()
    [scale] a = Mul(x, w)
    [shift] b = Add(a, k)
    [size] s = Shape(b)
    [fill] f = ConstantOfShape<value = float[1] {0.1}>(n)
    [soft] c = Softmax(b)
    [kcast] i = Cast<to=7>(c)
    [join] y = Add(c, w)
    [tail] z = Neg(f)
}"""
MAKERS = {
    "mixed": lambda: models.from_text(MIXED),
    "mlp": models.mlp,
    "conv": models.conv_net,
    "if": models.if_model,
    "loop": models.loop_model,
}


def structure(name: str) -> Structure:
    return Structure.from_proto(MAKERS[name]())


def types_inside(model: Structure) -> dict[str, int]:
    """Types of all tensors, those in bodies too."""
    inferred = onnx.shape_inference.infer_shapes(model.proto(), strict_mode=True, check_type=True)
    known = {}
    for graph in all_graphs(inferred):
        assert isinstance(graph, onnx.GraphProto)
        for value in (*graph.input, *graph.output, *graph.value_info):
            known[value.name] = value.type.tensor_type.elem_type
        known |= {tensor.name: tensor.data_type for tensor in graph.initializer}
    return known


def assert_kept(before: Structure, after: Structure, keep: set[str]) -> None:
    """Check that every kept node has the same inputs and outputs, and that operators support all types."""
    onnx.checker.check_model(after.proto())
    onnx.shape_inference.infer_shapes(after.proto(), strict_mode=True, check_type=True)
    old, new = tensor_types(before.proto()), tensor_types(after.proto())
    nodes = {node_label(node): node for node in after.nodes}
    for node in before.nodes:
        if node_label(node) in keep:
            now = nodes[node_label(node)]
            assert [new.get(name) for name in now.output] == [old.get(name) for name in node.output], node.name
            assert [new.get(name) for name in now.input] == [old.get(name) for name in node.input], node.name


@settings(max_examples=30)
@given(st.sampled_from(sorted(MAKERS)), st.sampled_from(["float16", "bfloat16"]), st.data())
def test_kept_nodes_keep_their_precision(name: str, low: str, data: st.DataObject) -> None:
    before = structure(name)
    keep = data.draw(st.sets(st.sampled_from([node_label(node) for node in before.nodes])))
    done = to_low_precision(before, low, keep)  # type: ignore[arg-type]
    assert_kept(before, done.structure, keep)
    assert done.low + done.kept + done.other == len(before.nodes)
    assert [v.type for v in done.structure.outputs] == [v.type for v in before.outputs]


def test_a_converted_real_network_loads_and_runs(tmp_path: Path) -> None:
    full, half = models.save(heavy_model("resnet50"), tmp_path / "full.onnx"), tmp_path / "half.onnx"
    with ModelFile(full) as file:
        before = Structure.open(file)
    keep = labels(before.nodes, [], ["Relu"])
    done = to_low_precision(before, "float16", keep)
    new = tensor_types(done.structure.proto())
    nodes = {node_label(node): node for node in done.structure.nodes}
    assert all(new[nodes[label].output[0]] == new[nodes[label].input[0]] == TensorProto.FLOAT for label in keep)
    assert new[next(n for n in before.nodes if n.op_type == "Conv").output[0]] == TensorProto.FLOAT16
    save(done.structure, half)
    assert half.stat().st_size < 0.6 * full.stat().st_size
    outputs = []
    for path in (full, half):
        with open_runner(RunnerSpec(kind="onnxrt"), Loadable(path=path)) as runner:
            image = np.random.default_rng(0).standard_normal((1, 3, 224, 224)).astype(np.float32)
            outputs.append(next(iter(runner.infer({runner.inputs[0].name: image}).outputs.values())))
    np.testing.assert_allclose(outputs[1], outputs[0], atol=2e-2)


@settings(max_examples=20)
@given(st.sampled_from(["if", "loop"]), st.data())
def test_bodies_are_converted_except_kept_nodes(name: str, data: st.DataObject) -> None:
    before = structure(name)
    inner = [node for node in every_node(before.nodes) if node not in before.nodes and node.op_type != "Identity"]
    keep = data.draw(st.sets(st.sampled_from([node_label(node) for node in every_node(before.nodes)])))
    done = to_low_precision(before, "float16", keep, bodies=True)
    assert_kept(before, done.structure, keep & {node_label(node) for node in before.nodes})
    assert edit_problems(before, done.structure) == []
    assert done.low + done.kept + done.other == len(list(every_node(before.nodes)))
    made = {node_label(node): node for node in every_node(done.structure.nodes)}
    known = types_inside(done.structure)
    for node in inner:
        now = made[node_label(node)]
        found = {known[tensor] for tensor in (*now.input, *now.output)}
        assert found == {TensorProto.FLOAT if node_label(node) in keep else TensorProto.FLOAT16}, node.name
    rng = np.random.default_rng(0)
    feed = {"cond": np.array(False), "trips": np.array(3)}
    feed = {v.name: feed.get(v.name, rng.random(v.type.tensor_type.shape.dim[0].dim_value, np.float32)
                             if v.type.tensor_type.shape.dim else None) for v in before.inputs}  # fmt: skip
    results = []
    for model in (before, done.structure):
        with open_runner(RunnerSpec(kind="onnxrt"), Loadable(data=model.proto().SerializeToString())) as runner:
            results.append(runner.infer(feed).outputs)  # type: ignore[arg-type]
    for output, want in results[0].items():
        np.testing.assert_allclose(results[1][output], want, rtol=5e-3, atol=1e-3)


def test_constants_out_of_range_saturate_and_are_named() -> None:
    model = models.from_text(
        "g (float[3] x) => (float[3] y) <float[3] mask = {-3e38, 1, 70000}> { [k] c = Constant<value = float {1e6}>()"
        " [add] a = Add(x, mask) [min] y = Min(a, c) }"
    )
    done = to_low_precision(Structure.from_proto(model), "float16")
    assert tensor_array(done.structure.initializers["mask"]).tolist() == [-65504, 1, 65504]
    assert set(done.clipped) == {"mask", "c"}
    assert to_low_precision(Structure.from_proto(model), "bfloat16").clipped == ()


def test_infinite_constants_stay_infinite() -> None:
    model = models.with_weights(
        models.from_text("g (float[2] x) => (float[2] y) { y = Max(x, w) }"), w=np.array([-np.inf, 1], np.float32)
    )
    done = to_low_precision(Structure.from_proto(model), "float16")
    assert tensor_array(done.structure.initializers["w"]).tolist() == [-np.inf, 1] and not done.clipped


def test_nodes_out_of_order_are_converted_too() -> None:
    before = structure("mlp")
    done = to_low_precision(before.with_(nodes=before.nodes[::-1]), "float16")
    want = to_low_precision(before, "float16")
    assert [node.name for node in done.structure.nodes] == [node.name for node in want.structure.nodes]
    with pytest.raises(LayerwiseError, match="cycle"):
        loop = [onnx.helper.make_node("Neg", ["b"], ["a"]), onnx.helper.make_node("Neg", ["a"], ["b"])]
        to_low_precision(before.with_(nodes=(*before.nodes, *loop)), "float16")


def test_nodes_are_selected_by_name_output_glob_or_operator() -> None:
    nodes = structure("mlp").nodes
    assert labels(nodes, ["/fc0/*"], ["Relu"]) == {
        "/fc0/MatMul", "/fc0/Add", "/fc0/Relu", "/fc1/Relu", "/fc2/Relu",
    }  # fmt: skip
    assert labels(nodes, ["m1"], []) == {"/fc1/MatMul"}
    with pytest.raises(UsageError, match="no node 'nothing'"):
        labels(nodes, ["nothing"], [])
    with pytest.raises(UsageError, match="no node of type 'Conv'"):
        labels(nodes, [], ["Conv"])


def test_bfloat16_weights_are_bfloat16() -> None:
    done = to_low_precision(structure("mlp"), "bfloat16")
    kinds = {tensor.data_type for tensor in done.structure.initializers.values()}
    assert kinds == {TensorProto.BFLOAT16}
    assert tensor_array(done.structure.initializers["w0"]).dtype == ml_dtypes.bfloat16
