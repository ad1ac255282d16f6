"""Locating planted faults: the true node first, with the right word and the evidence."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from support.graphs import feed_for, random_model, run_whole
from support.layers import chain, overflowing
from support.locating import between
from support.models import conv_net, from_text, mlp, with_weights

Array = np.ndarray[Any, Any]
IMAGE = {"image": np.random.default_rng(0).standard_normal((1, 3, 16, 16)).astype(np.float32)}
X = {"x": np.random.default_rng(1).standard_normal((2, 8)).astype(np.float32)}


def node(model: onnx.ModelProto, name: str) -> onnx.NodeProto:
    (found,) = [node for node in model.graph.node if node.name == name]
    return found


def set_weight(model: onnx.ModelProto, name: str, change: Any) -> None:
    for tensor in model.graph.initializer:
        if tensor.name == name:
            tensor.CopyFrom(numpy_helper.from_array(change(numpy_helper.to_array(tensor)), name))


def model_of(
    nodes: list[onnx.NodeProto], outputs: list[str], weights: dict[str, Array] | None = None
) -> onnx.ModelProto:
    """A model of one input x, float32 [2, 8]."""
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 8])],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()],
    )
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


@settings(max_examples=15)
@given(seed=st.integers(0, 10_000), data=st.data())
def test_a_scaled_node_of_any_graph_comes_first_and_no_other_is_wrong(
    tmp_path_factory: pytest.TempPathFactory, seed: int, data: st.DataObject
) -> None:
    good, suspect = random_model(seed), random_model(seed)
    i = data.draw(st.sampled_from([i for i, n in enumerate(suspect.graph.node) if n.op_type != "Constant"]))
    name = suspect.graph.node[i].output[0]
    suspect.graph.node[i].output[0] = "unscaled"
    suspect.graph.initializer.append(numpy_helper.from_array(np.float32(1.25), "scale"))
    suspect.graph.node.insert(i + 1, helper.make_node("Mul", ["unscaled", "scale"], [name], name="planted"))
    feed = feed_for(seed)
    value = run_whole(good, [name], feed)[name]
    assume(not value.any() or np.abs(value).max() > 1e-5)  # what sums leave that cancel is all rounding
    done = between(suspect, good, tmp_path_factory.mktemp("locate"), feed)
    if not value.any() or name not in {row["tensor"] for row in done.table()}:
        assert done.suspects == []
    else:
        found, *others = done.suspects
        assert found["tensor"] == name and found["diagnosis"] == "kernel"
        assert all(other["diagnosis"] == "ill-conditioned" and other["local"] == 0 for other in others)
        assert found["local"] == pytest.approx(0.25) and "extra here: Mul planted" in found["evidence"]


def test_every_tensor_has_its_errors_and_its_word(tmp_path: Path) -> None:
    good = onnx.load(chain(tmp_path / "chain.onnx"))
    suspect = onnx.load(chain(tmp_path / "chain.onnx", scale=2.002))
    done = between(suspect, good, tmp_path, X)
    words = {row["tensor"]: row["diagnosis"] for row in done.table()}
    assert words == {"a": "clean", "b": "kernel", "c": "propagated", "y": "propagated", "z": "propagated"}
    assert [done.row(name)["local"] for name in "acyz"] == [0, 0, 0, 0]
    assert done.row("b")["local"] == done.row("b")["rel_l2"] == pytest.approx(1e-3, rel=1e-2)
    assert done.row("z")["rel_l2"] == pytest.approx(1e-3, rel=1e-2) and done.row("z")["ampl"] == pytest.approx(1.0)
    (found,) = done.suspects
    assert found == done.table("suspects")[0] and done.result["passed"] is True
    assert (found["i"], found["node"], found["op"], found["outputs"]) == (1, "scale_it", "Mul", ["b"])
    assert "from clean inputs" in found["evidence"]


def test_a_wrong_weight_is_named_with_the_node_that_reads_it(tmp_path: Path) -> None:
    suspect = conv_net()
    set_weight(suspect, "w1", lambda a: a * np.float32(1.01))
    (found,) = between(suspect, conv_net(), tmp_path, IMAGE).suspects
    assert found["node"] == "conv1" and found["local"] == pytest.approx(0.01, rel=0.1)
    assert "weight w1 is not the reference's: off by 0.01" in found["evidence"]


@pytest.mark.parametrize(
    ("change", "culprit", "evidence"),
    [
        (lambda n: setattr(n("relu1"), "op_type", "Abs"), "relu1", "operator Abs, in the reference Relu"),
        (lambda n: setattr(n("add"), "op_type", "Sub"), "add", "operator Sub, in the reference Add"),
        (
            lambda n: n("bn0").attribute.append(helper.make_attribute("epsilon", 0.1)),
            "bn0",
            "attribute epsilon is 0.1000",
        ),
        (lambda n: n("conv1").attribute.append(helper.make_attribute("dilations", [1, 1])), "", ""),
    ],
)
def test_changed_nodes_are_named_with_what_is_changed(change: Any, culprit: str, evidence: str, tmp_path: Path) -> None:
    suspect = conv_net()
    change(lambda name: node(suspect, name))
    done = between(suspect, conv_net(), tmp_path, IMAGE)
    assert done.nodes == ([culprit] if culprit else [])
    assert done.result["passed"] is (bool(culprit) or not done.result["outputs_differ"])
    assert evidence in "".join(found["evidence"] for found in done.suspects)


def test_swapped_inputs_and_a_missing_node(tmp_path: Path) -> None:
    def model(order: list[str], relu: bool) -> onnx.ModelProto:
        nodes = [helper.make_node("Mul", ["x", "w"], ["a"], name="mul")]
        nodes += [helper.make_node("Relu", ["a"], ["r"], name="relu")] if relu else []
        nodes += [helper.make_node("Exp", ["r" if relu else "a"], ["e"], name="exp")]
        return model_of(
            [*nodes, helper.make_node("Sub", order, ["y"], name="sub")], ["y"], {"w": np.full(8, 0.5, np.float32)}
        )

    swapped = between(model(["e", "a"], True), model(["a", "e"], True), tmp_path, X)
    assert swapped.nodes == ["sub"]
    assert "reads e, a, in the reference in the order a, e" in swapped.suspects[0]["evidence"]
    missing = between(model(["a", "e"], False), model(["a", "e"], True), tmp_path, X)
    assert missing.nodes == ["exp"] and "missing here: Relu relu" in missing.suspects[0]["evidence"]


def test_an_overflow_comes_first_where_it_starts(tmp_path: Path) -> None:
    good, suspect = (onnx.load(overflowing(tmp_path / "model.onnx", half)) for half in (False, True))
    set_weight(suspect, "one", lambda a: a * np.float32(3))
    done = between(suspect, good, tmp_path, {"x": np.full((2, 8), 0.9, np.float32)})
    assert [(s["tensor"], s["diagnosis"]) for s in done.suspects] == [("sq", "overflow"), ("y", "kernel")]
    assert "Inf where the reference has none" in done.suspects[0]["evidence"]
    assert done.row("s")["diagnosis"] == "propagated"


def test_a_nan_is_found_where_it_starts(tmp_path: Path) -> None:
    def model(op: str) -> onnx.ModelProto:
        nodes = [helper.make_node(op, ["x"], ["a"], name="first"), helper.make_node("Exp", ["a"], ["y"], name="second")]
        return model_of(nodes, ["y"])

    done = between(model("Sqrt"), model("Abs"), tmp_path, X)
    assert done.nodes == ["first"] and done.suspects[0]["diagnosis"] == "nan"
    assert done.row("y")["diagnosis"] == "propagated"


def test_infinities_on_both_sides_are_no_fault(tmp_path: Path) -> None:
    mask = np.where(np.arange(8) % 2, -np.inf, 0).astype(np.float32)

    def model(scale: float) -> onnx.ModelProto:
        nodes = [
            helper.make_node("Add", ["x", "mask"], ["masked"], name="mask_it"),
            helper.make_node("Mul", ["masked", "scale"], ["scaled"], name="scale_it"),
            helper.make_node("Softmax", ["scaled"], ["y"], name="softmax"),
        ]
        return model_of(nodes, ["y"], {"mask": mask, "scale": np.array(scale, np.float32)})

    done = between(model(1.01), model(1.0), tmp_path, X)
    assert done.nodes == ["scale_it"] and done.suspects[0]["local"] == pytest.approx(0.01, rel=1e-3)
    assert done.row("masked")["diagnosis"] == "clean"


def test_exact_values_forgive_nothing(tmp_path: Path) -> None:
    def model(step: int, largest: int) -> onnx.ModelProto:
        return from_text(
            f"""g (float[4] x, int64[4] n) => (float[2] v, int64[2] i, int64[4] m)
                <int64[1] k = {{2}}, int64[1] step = {{{step}}}> {{
                [add] m = Add(n, step)
                [top] v, i = TopK<largest={largest}>(x, k)
            }}"""
        )

    feed = {"x": np.array([3, -1, 4, 1], np.float32), "n": np.array([0, 1, 2, 1 << 60])}
    (found,) = between(model(1, 1), model(2, 1), tmp_path, feed).suspects
    assert found["node"] == "add" and found["local"] < 1e-12 and found["diagnosis"] == "kernel"
    assert "its values are exact ones" in found["evidence"]
    (found,) = between(model(1, 0), model(1, 1), tmp_path, feed).suspects
    assert found["node"] == "top" and found["outputs"] == ["v", "i"]
    assert "attribute largest is 0, in the reference 1" in found["evidence"]


def test_a_wrong_constant_is_the_suspect_and_its_readers_are_not(tmp_path: Path) -> None:
    def model(value: float) -> onnx.ModelProto:
        constant = numpy_helper.from_array(np.full((8, 3), value, np.float32))
        nodes = [
            helper.make_node("Constant", [], ["k"], name="constant", value=constant),
            helper.make_node("MatMul", ["x", "k"], ["y"], name="matmul"),
        ]
        return model_of(nodes, ["y"])

    done = between(model(3), model(2), tmp_path, X)
    assert done.nodes[0] == "constant" and done.row("y")["diagnosis"] == "propagated"


def test_an_ill_conditioned_node_is_told_from_the_fault(tmp_path: Path) -> None:
    def model(scale: float) -> onnx.ModelProto:
        nodes = [
            helper.make_node("Mul", ["x", "scale"], ["a"], name="slightly_off"),
            helper.make_node("Add", ["a", "large"], ["b"], name="add"),
            helper.make_node("Sub", ["b", "large"], ["c"], name="cancel"),
            helper.make_node("Sub", ["a", "c"], ["d"], name="what_is_left"),
            helper.make_node("Neg", ["d"], ["y"], name="neg"),
        ]
        return model_of(nodes, ["y"], {"scale": np.array(scale, np.float32), "large": np.array(100, np.float32)})

    done = between(model(1.00001), model(1), tmp_path, X)
    assert done.nodes[0] == "slightly_off" and done.suspects[0]["diagnosis"] == "kernel"
    row = done.row("d")
    assert row["diagnosis"] == "ill-conditioned" and row["ampl"] > 100 and row["local"] == 0
    assert "exact on the reference's inputs" in done.suspects[1]["evidence"]


def test_a_shape_that_differs_is_a_verdict_and_where_the_suspect_then_fails_is_told(tmp_path: Path) -> None:
    def model(shape: list[int]) -> onnx.ModelProto:
        nodes = [
            helper.make_node("Reshape", ["x", "shape"], ["a"], name="reshape"),
            helper.make_node("Neg", ["a"], ["b"], name="neg"),
            helper.make_node("MatMul", ["b", "w"], ["y"], name="matmul"),
        ]
        return model_of(nodes, ["y"], {"shape": np.array(shape), "w": np.ones((4, 3), np.float32)})

    done = between(model([2, 8]), model([4, 4]), tmp_path, X)
    assert done.nodes == ["reshape"]
    assert "shapes differ: (2, 8) and (4, 4)" in done.suspects[0]["evidence"]
    assert "weight shape is not the reference's" in done.suspects[0]["evidence"]
    assert "matmul" in done.result["stopped"]
    assert [done.row(name)["diagnosis"] for name in "aby"] == ["kernel", "clean", "clean"]
    assert "fails before" in done.row("y")["note"] and done.row("y")["passed"] is None


def test_a_node_that_cannot_run_is_the_suspect_with_its_message(tmp_path: Path) -> None:
    def model(index: int) -> onnx.ModelProto:
        nodes = [
            helper.make_node("Neg", ["x"], ["a"], name="neg"),
            helper.make_node("Gather", ["a", "index"], ["b"], name="gather", axis=1),
            helper.make_node("Relu", ["b"], ["y"], name="relu"),
            helper.make_node("Abs", ["a"], ["z"], name="abs"),
        ]
        return model_of(nodes, ["y", "z"], {"index": np.array([index])})

    done = between(model(99), model(1), tmp_path, X)
    (found,) = done.suspects
    assert found["node"] == "gather" and found["diagnosis"] == "kernel" and found["local"] is None
    assert "cannot run on the reference's inputs" in found["evidence"] and "indices" in found["evidence"]


def test_a_model_that_does_not_load_still_names_its_node(tmp_path: Path) -> None:
    def model(to: int) -> onnx.ModelProto:
        nodes = [
            helper.make_node("Mul", ["x", "x"], ["a"], name="square"),
            helper.make_node("Cast", ["a"], ["b"], name="cast", to=to),
            helper.make_node("Add", ["b", "a"], ["y"], name="add"),
        ]
        return model_of(nodes, ["y"])

    done = between(model(TensorProto.INT32), model(TensorProto.FLOAT), tmp_path, X)
    assert done.nodes == ["cast"] and done.result["stopped"]
    assert "attribute to is 6, in the reference 1" in done.suspects[0]["evidence"]


def test_two_faults_are_two_suspects(tmp_path: Path) -> None:
    suspect = mlp(layers=4)
    set_weight(suspect, "w0", lambda a: a * np.float32(1.001))
    set_weight(suspect, "b2", lambda a: a + np.float32(1))
    feed = {"x": np.random.default_rng(0).standard_normal((3, 16)).astype(np.float32)}
    done = between(suspect, mlp(layers=4), tmp_path, feed)
    assert set(done.nodes) == {"/fc0/MatMul", "/fc2/Add"} and done.result["n_suspects"] == 2
    assert between(suspect, mlp(layers=4), tmp_path, feed, top=1).nodes == ["/fc2/Add"]


def test_models_that_agree_have_no_suspect(tmp_path: Path) -> None:
    done = between(conv_net(), conv_net(), tmp_path, IMAGE)
    assert done.suspects == [] and done.result["passed"] is True
    assert done.result["summary"].startswith("no suspect: 9 tensors and all outputs agree")
    assert {row["diagnosis"] for row in done.table()} == {"clean"}


def test_random_nodes_are_no_suspects(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("RandomNormalLike", ["x"], ["noise"], name="noise"),
        helper.make_node("Add", ["x", "noise"], ["y"], name="add"),
    ]
    done = between(model_of(nodes, ["y"]), model_of(nodes, ["y"]), tmp_path, X)
    assert "noise" not in done.nodes and done.row("noise")["local"] is None
    assert done.row("y")["local"] == 0


def test_of_nan_in_the_reference_the_first_is_told_first(tmp_path: Path) -> None:
    """Behind it smaller regions have it too."""
    text = "g (float[4,8] x) => (float[4,8] y) {{ {} c = MatMul(b, w) y = MatMul(c, v) }}"
    random = np.random.default_rng(0)
    weights = {name: random.standard_normal((8, 8)).astype(np.float32) for name in ("w", "v")}
    good = with_weights(from_text(text.format("b = Tanh(x)")), **weights)
    bad = with_weights(from_text(text.format("n = Neg(x) a = Sqrt(n) b = Tanh(a)")), **weights)
    found = between(good, bad, tmp_path, {"x": random.standard_normal((4, 8)).astype(np.float32)})
    assert found.suspects[0]["tensor"] == "b"
    assert "no Inf or NaN where the reference has them" in found.suspects[0]["evidence"]


def test_of_a_reference_of_zeros_it_is_said_how_far_off_the_suspect_is(tmp_path: Path) -> None:
    text = "g (float[4,8] x) => (float[4,8] y) {{ b = {} c = Tanh(b) y = Add(c, x) }}"
    good, bad = from_text(text.format("Sub(x, x)")), from_text(text.format("Add(x, x)"))
    found = between(bad, good, tmp_path, {"x": np.ones((4, 8), np.float32)})
    assert "off by up to 2 where the reference is zero" in found.suspects[0]["evidence"]
