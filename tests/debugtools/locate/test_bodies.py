"""Locating inside of If, Loop and Scan: the body's node, in the first trip that goes wrong."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from support.comparing import ORT
from support.locating import Located, between
from support.models import from_text, if_model, loop_model, scan_model
from support.sample_models import if_model as two_branches

from layerwise._tool.backends.specs import RunnerSpec

Feed = dict[str, Any]


def body(model: onnx.ModelProto, attribute: str) -> onnx.GraphProto:
    """The body of the model's one control-flow node."""
    (found,) = [a.g for node in model.graph.node for a in node.attribute if a.name == attribute]
    return found


def inside(done: Located) -> dict[str, Any]:
    (found,) = done.suspects
    place: dict[str, Any] = found["inside"]
    return place


@pytest.mark.parametrize(
    ("make", "attribute", "index", "op", "feed"),
    [
        (if_model, "then_branch", 0, "Sub", {"cond": np.array(True), "x": np.arange(4, dtype=np.float32)}),
        (if_model, "else_branch", 0, "Add", {"cond": np.array(False), "x": np.arange(4, dtype=np.float32)}),
        (loop_model, "body", 1, "Mul", {"trips": np.array(3), "x": np.array([1, 3], np.float32)}),
        (scan_model, "body", 0, "Sub", {"state": np.ones(2, np.float32), "xs": np.ones((3, 2), np.float32)}),
    ],
)
def test_the_body_s_node_is_named(make: Any, attribute: str, index: int, op: str, feed: Feed, tmp_path: Path) -> None:
    suspect, good = make(), make()
    node = body(suspect, attribute).node[index]
    node.op_type = op
    done = between(suspect, good, tmp_path, feed, bodies=True)
    found = inside(done)
    assert (found["body"], found["trip"], found["note"]) == (attribute, 0, "")
    (inner,) = found["suspects"]
    assert (inner["node"], inner["i"], inner["diagnosis"]) == (node.name, index, "kernel")
    assert f"operator {op}, in the reference" in inner["evidence"]
    assert f"its {attribute} is not the reference's" in done.suspects[0]["evidence"]
    assert "inside" not in between(suspect, good, tmp_path, feed).suspects[0]


def test_of_a_body_the_weight_that_differs_is_told(tmp_path: Path) -> None:
    """Names of its own make no body another, nor does where in a file a weight lies."""
    suspect, good = two_branches(), two_branches()
    suspect.graph.initializer.insert(0, numpy_helper.from_array(np.ones(999, np.float32), "before"))
    branch = body(suspect, "else_branch")
    weight = numpy_helper.to_array(branch.initializer[0])
    branch.initializer[0].CopyFrom(numpy_helper.from_array(weight * np.float32(1.01), "renamed"))
    branch.node[0].input[1] = "renamed"
    (found,) = between(suspect, good, tmp_path, {"x": np.linspace(-9, -1, 512, dtype=np.float32)}).suspects
    told = "weight renamed of its else_branch is not the reference's: off by 0.01, at most 0.02"
    assert found["evidence"].endswith(told) and "then_branch" not in found["evidence"]


def long_sum(last: float) -> onnx.ModelProto:
    """A branch that adds up equal terms, and then multiplies by `last`."""
    length = 4096
    weights = {"w": np.full((length, 8), 0.0213, np.float32), "last": np.float32(last)}
    branch = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["sum"]), helper.make_node("Mul", ["sum", "last"], ["m"])],
        "branch", [], [helper.make_tensor_value_info("m", 1, None)],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )  # fmt: skip
    other = helper.make_graph(
        [helper.make_node("ReduceMax", ["x"], ["e"])], "other", [], [helper.make_tensor_value_info("e", 1, None)]
    )
    node = helper.make_node("If", ["cond"], ["y"], "if", then_branch=branch, else_branch=other)
    ends = [helper.make_tensor_value_info("cond", 9, []), helper.make_tensor_value_info("x", 1, [1, length])]
    graph = helper.make_graph([node], "g", ends, [helper.make_tensor_value_info("y", 1, None)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def test_long_sums_of_equal_terms_are_not_named_in_a_body(tmp_path: Path) -> None:
    """They add up in another order on the other backend, which the nodes outside of bodies are allowed as well."""
    feed = {"cond": np.array(True), "x": np.full((1, 4096), 0.7, np.float32)}
    sides = [ORT, RunnerSpec(kind="reference")]
    found = inside(between(long_sum(1.001), long_sum(1.0), tmp_path, feed, bodies=True, runners=sides))
    named = {row["tensor"] for row in found["suspects"] if row["diagnosis"] == "kernel"}
    assert named == {"m"}


def test_a_fault_in_the_branch_that_is_not_taken_has_no_effect(tmp_path: Path) -> None:
    suspect = if_model()
    body(suspect, "else_branch").node[0].op_type = "Mul"
    feed = {"cond": np.array(True), "x": np.arange(4, dtype=np.float32)}
    assert between(suspect, if_model(), tmp_path, feed, bodies=True).suspects == []


def test_the_first_trip_that_goes_wrong_is_told(tmp_path: Path) -> None:
    """A limit that only the fourth trip's value reaches."""

    def model(top: float) -> onnx.ModelProto:
        return from_text(
            f"""loop (int64 trips, float[2] x) => (float[2] last) <bool go = {{1}}, float top = {{{top}}}> {{
                [repeat] last = Loop (trips, go, x) <
                    body = step (int64 i, bool keep_in, float[2] v) => (bool keep, float[2] w) {{
                        [keep_on] keep = Identity(keep_in)
                        [double] d = Add(v, v)
                        [limit] w = Min(d, top)
                    }}
                >
            }}"""
        )

    feed = {"trips": np.array(6), "x": np.array([1, 0.5], np.float32)}
    found = inside(between(model(9), model(1000), tmp_path, feed, bodies=True))
    assert (found["trip"], [inner["node"] for inner in found["suspects"]]) == (3, ["limit"])
    assert "weight top is not the reference's" in found["suspects"][0]["evidence"]


def test_backwards_scans_and_their_axes(tmp_path: Path) -> None:
    def model(op: str) -> onnx.ModelProto:
        graph = body(scan_model(), "body")
        graph.node[0].op_type = op
        node = helper.make_node(
            "Scan", ["state", "xs"], ["final", "sums"], name="running", num_scan_inputs=1, body=graph,
            scan_input_axes=[1], scan_input_directions=[1],
        )  # fmt: skip
        whole = scan_model()
        whole.graph.node[0].CopyFrom(node)
        whole.graph.input[1].type.tensor_type.shape.dim[0].dim_value = 2
        whole.graph.input[1].type.tensor_type.shape.dim[1].dim_param = "n"
        return whole

    feed = {"state": np.zeros(2, np.float32), "xs": np.array([[3, 0, 0], [3, 0, 0]], np.float32)}
    found = inside(between(model("Sub"), model("Add"), tmp_path, feed, bodies=True))
    assert (found["trip"], found["suspects"][0]["node"]) == (2, "sum")


def test_bodies_in_bodies_are_entered(tmp_path: Path) -> None:
    def model(op: str) -> onnx.ModelProto:
        inner = helper.make_graph(
            [helper.make_node(op, ["h", "x"], ["deep"], name="deep_node")],
            "inner",
            [],
            [onnx.ValueInfoProto(name="deep")],
        )
        outer = helper.make_graph(
            [
                helper.make_node("Mul", ["x", "two"], ["h"], name="twice"),
                helper.make_node("If", ["yes"], ["chosen"], name="choose", then_branch=inner, else_branch=inner),
            ],
            "outer",
            [],
            [onnx.ValueInfoProto(name="chosen")],
        )
        node = helper.make_node("If", ["yes"], ["y"], name="outer_if", then_branch=outer, else_branch=outer)
        info = [helper.make_tensor_value_info(name, 1, [4]) for name in ("x", "y")]
        weights = [numpy_helper.from_array(np.array(True), "yes"), numpy_helper.from_array(np.float32(2), "two")]
        graph = helper.make_graph([node], "g", info[:1], info[1:], weights)
        return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])

    feed = {"x": np.arange(4, dtype=np.float32)}
    found = inside(between(model("Sub"), model("Add"), tmp_path, feed, bodies=True))
    assert [inner["node"] for inner in found["suspects"]] == ["choose"]
    deeper = found["suspects"][0]["inside"]
    assert deeper["body"] == "then_branch" and deeper["suspects"][0]["node"] == "deep_node"


def test_what_cannot_be_entered_says_why(tmp_path: Path) -> None:
    feed = {"trips": np.array(3), "x": np.array([1, 3], np.float32)}
    other = loop_model()
    other.graph.node[1].CopyFrom(helper.make_node("Identity", ["first"], ["last"], name="repeat"))
    other.graph.node.append(helper.make_node("Unsqueeze", ["x", "axis"], ["every"]))
    other.graph.initializer.append(numpy_helper.from_array(np.array([0]), "axis"))
    done = between(loop_model(), other, tmp_path, feed, bodies=True)
    assert inside(done)["note"].startswith("the reference has ")


def test_a_loop_that_runs_another_number_of_trips_has_a_body_that_agrees(tmp_path: Path) -> None:
    def model(most: int) -> onnx.ModelProto:
        whole = loop_model()
        whole.graph.initializer.append(numpy_helper.from_array(np.array(most), "most"))
        whole.graph.node[1].input[0] = "most"
        return whole

    feed = {"trips": np.array(3), "x": np.array([1, 3], np.float32)}
    done = between(model(3), model(4), tmp_path, feed, bodies=True)
    assert "agrees in all of 4 trips" in inside(done)["note"]
    assert "weight most is not the reference's" in done.suspects[0]["evidence"]


def _steps(name: str, factor: float) -> onnx.ModelProto:
    """x after three steps: v + tanh(factor v m)."""
    weights = f"float[3, 3] {name}m = {{0.5, -0.25, 0.75, 0.125, 1, -0.5, -1, 0.25, 0.5}}, float {name}f = {{{factor}}}"
    return from_text(
        f"""loop (float[2, 3] x) => (float[2, 3] y) <int64 {name}n = {{3}}, bool {name}go = {{1}}, {weights}> {{
            [{name}start] {name}h = Relu(x)
            [{name}repeat] {name}r = Loop ({name}n, {name}go, {name}h) <
                body = step (int64 {name}i, bool {name}in, float[2, 3] {name}v)
                    => (bool {name}keep, float[2, 3] {name}w) {{
                    [{name}keep_on] {name}keep = Identity({name}in)
                    [{name}product] {name}p = MatMul({name}v, {name}m)
                    [{name}scaled] {name}s = Mul({name}p, {name}f)
                    [{name}bent] {name}t = Tanh({name}s)
                    [{name}plus] {name}w = Add({name}v, {name}t)
                }}
            >
            [{name}end] y = Neg({name}r)
        }}"""
    )


def test_bodies_without_a_name_in_common_are_aligned_by_their_values(tmp_path: Path) -> None:
    feed = {"x": np.array([[1, 3, -1], [0.5, 2, 0.25]], np.float32)}
    found = inside(between(_steps("a", 0.5), _steps("b", 0.75), tmp_path, feed, bodies=True))
    assert (found["body"], found["trip"], found["note"]) == ("body", 0, "")
    assert [(inner["node"], inner["diagnosis"]) for inner in found["suspects"]] == [("ascaled", "kernel")]
    assert between(_steps("a", 0.5), _steps("b", 0.5), tmp_path, feed, bodies=True).suspects == []
