"""Locating against another export of the network: no name in common, other operators and layouts."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from support.locating import Located, between
from support.two_exports import FEED, first, second


def located(suspect: str, folder: Path, **changed: float) -> Located:
    """One export with changed weights against the other one as it should be."""
    if suspect == "first":
        return between(first(**changed), second(), folder, FEED)
    return between(second(**changed), first(), folder, {"x": FEED["tokens"]})


@pytest.mark.parametrize("suspect", ["first", "second"])
def test_a_clean_pair_accuses_nobody(suspect: str, tmp_path: Path) -> None:
    done = located(suspect, tmp_path)
    assert done.suspects == [] and not done.result["outputs_differ"]


@pytest.mark.parametrize(
    ("suspect", "weight", "node"),
    [
        ("first", "w1", "/fc/MatMul"), ("first", "scale", "/norm"), ("first", "wq", "/q/MatMul"),
        ("first", "wo", "/out/MatMul"), ("second", "w1", "2"), ("second", "scale", "11"), ("second", "wo", "20"),
    ],
)  # fmt: skip
def test_the_wrong_node_is_named(suspect: str, weight: str, node: str, tmp_path: Path) -> None:
    found, *more = located(suspect, tmp_path, **{weight: 1.05}).suspects
    assert node in [found["tensor"], found["node"], *(each["node"] for each in found["region"])]
    assert len(found["region"]) <= (9 if weight == "scale" else 4) and not more


def test_two_faults_are_both_found(tmp_path: Path) -> None:
    done = located("first", tmp_path, w1=1.05, wo=0.9)
    regions = [{each["node"] for each in found["region"]} | {found["node"]} for found in done.suspects]
    assert len(regions) == 2
    assert any("/fc/MatMul" in region for region in regions) and any("/out/MatMul" in region for region in regions)


def scores(*, once: bool, factor: float = 1.0, mixed: bool = False) -> onnx.ModelProto:
    """Keys of two heads, as many positions as places in a head, turned in two steps or at once; then products.

    mixed: keys are taken in another order before they are given their shape.
    """
    random, p = np.random.default_rng(0), "o" if once else "t"
    held = {name: random.standard_normal((16, 16)).astype(np.float32) / 4 for name in "wk"}
    held["w"] = held["w"] * np.float32(factor)
    weights = [numpy_helper.from_array(value, p + name) for name, value in held.items()]
    weights.append(numpy_helper.from_array(np.array([1, 8, 2, 8]), f"{p}shape"))
    turns = [[0, 2, 3, 1]] if once else [[0, 2, 1, 3], [0, 1, 3, 2]]
    make = helper.make_node
    nodes = [
        make("MatMul", ["x", f"{p}w"], [f"{p}0"], "first" if not once else ""),
        make("Tanh", [f"{p}0"], [f"{p}1"]),
        make("MatMul", [f"{p}1", f"{p}k"], [f"{p}2"]),
        make("Reshape", [f"{p}2", f"{p}shape"], [f"{p}q"]),
        make("Transpose", [f"{p}q"], [f"{p}r"], perm=[0, 2, 1, 3]),
        make("Tanh", [f"{p}2"], [f"{p}3"]),
        *([make("Transpose", [f"{p}3"], [f"{p}mixed"], perm=[1, 0])] if mixed else []),
        make("Reshape", [f"{p}mixed" if mixed else f"{p}3", f"{p}shape"], [f"{p}turned0"], "keys"),
        *(make("Transpose", [f"{p}turned{i}"], [f"{p}turned{i + 1}"], perm=perm) for i, perm in enumerate(turns)),
        make("MatMul", [f"{p}r", f"{p}turned{len(turns)}"], ["y"]),
    ]
    io = [helper.make_tensor_value_info(*each) for each in (("x", 1, [8, 16]), ("y", 1, [1, 2, 8, 8]))]
    graph = helper.make_graph(nodes, "g", io[:1], io[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_a_view_that_the_other_side_has_in_another_order_is_no_fault_behind_one(tmp_path: Path) -> None:
    """Equal shapes: nothing but the values would tell the order of axes, and behind a fault these differ."""
    feed = {"x": np.random.default_rng(1).standard_normal((8, 16)).astype(np.float32)}
    found = between(scores(once=False, factor=1.05), scores(once=True), tmp_path, feed)
    assert [row["node"] for row in found.suspects if row["diagnosis"] == "kernel"] == ["first"]


def test_what_only_reads_the_wrong_order_is_not_accused_beside_what_makes_it(tmp_path: Path) -> None:
    feed = {"x": np.random.default_rng(1).standard_normal((8, 16)).astype(np.float32)}
    assert between(scores(once=False), scores(once=True, mixed=True), tmp_path, feed).nodes == ["keys"]


def convolution(*, folded: bool, mean: float) -> onnx.ModelProto:
    """A convolution, its normalisation (folded: in the weights of the convolution) and a Relu, named as exported."""
    random, p = np.random.default_rng(0), "f" if folded else "u"
    weight, scale = random.standard_normal((8, 4, 3)), random.uniform(0.5, 2.0, 8)
    gain = scale / np.sqrt(1 + 1e-5)
    statistics = {f"{p}scale": scale, f"{p}shift": np.zeros(8), f"{p}mean": np.full(8, mean), f"{p}var": np.ones(8)}
    held = {f"{p}w": weight * gain[:, None, None] if folded else weight}
    held |= {f"{p}b": -mean * gain} if folded else statistics
    conv = [f"{p}x1", f"{p}w", *([f"{p}b"] if folded else [])]
    norm = helper.make_node(
        "BatchNormalization", [f"{p}conv", *statistics], [f"{p}norm"], "/conv/conv.1/BatchNormalization"
    )
    nodes = [
        helper.make_node("Tanh", ["x"], [f"{p}x1"], "/Tanh"),
        helper.make_node("Conv", conv, [f"{p}conv"], "/conv/conv.0/Conv", pads=[1, 1]),
        *([] if folded else [norm]),
        helper.make_node("Relu", [f"{p}conv" if folded else f"{p}norm"], [f"{p}relu"], "/conv/conv.2/Relu"),
        helper.make_node("ReduceMean", [f"{p}relu"], ["y"], "/ReduceMean", axes=[2], keepdims=0),
    ]
    io = [helper.make_tensor_value_info("x", 1, [2, 4, 9]), helper.make_tensor_value_info("y", 1, [2, 8])]
    values = [numpy_helper.from_array(value.astype(np.float32), name) for name, value in held.items()]
    graph = helper.make_graph(nodes, "g", io[:1], io[1:], values)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("suspect", ["folded", "normalised"])
def test_a_normalisation_that_lies_in_the_weights_is_one_with_its_convolution(suspect: str, tmp_path: Path) -> None:
    """The convolution of a folded export is the counterpart of the normalisation, not of the other convolution, though
    both lie in modules of one name: a stale mean accuses it alone, and is told as what it makes of the bias."""
    models = [convolution(folded=folded, mean=mean) for folded, mean in ((True, 0.1), (False, 0.7))]
    feed = {"x": np.random.default_rng(1).standard_normal((2, 4, 9)).astype(np.float32)}
    done = between(*(models if suspect == "folded" else models[::-1]), tmp_path, feed)
    assert done.nodes == ["/conv/conv.0/Conv" if suspect == "folded" else "/conv/conv.1/BatchNormalization"]
    bias = ("fb", "ushift with uscale folded in")
    one, other = bias if suspect == "folded" else bias[::-1]
    weights = [part for part in done.suspects[0]["evidence"].split("; ") if part.startswith("weight ")]
    assert [part.partition(": off by ")[0] for part in weights] == [f"weight {one} is not the reference's {other}"]


def test_an_output_is_no_inner_tensor_of_the_other_model(tmp_path: Path) -> None:
    """What the suspect leaves out lies behind a tensor that equals its output: the two outputs differ all the same."""
    good = second()
    (output,) = good.graph.output
    last = next(node for node in good.graph.node if output.name in node.output)
    last.output[0] = "inner"
    good.graph.node.append(helper.make_node("Mul", ["inner", "factor"], [output.name], "scaled"))
    good.graph.initializer.append(numpy_helper.from_array(np.float32(1.01), "factor"))
    done = between(first(), good, tmp_path, FEED)
    assert done.nodes == ["/out/Add"] and done.suspects[0]["evidence"].endswith("Mul scaled")


def test_an_output_that_was_not_compared_is_told(tmp_path: Path) -> None:
    good = second()
    (output,) = good.graph.output
    good.graph.node.append(helper.make_node("ArgMax", [output.name], ["best"], "best"))
    good.graph.output.append(helper.make_tensor_value_info("best", 7, None))
    done = between(first(), good, tmp_path, FEED)
    assert done.suspects == [] and done.result["summary"].endswith("agree; not compared: the reference's output best")


def lengths(*, index: int | None) -> onnx.ModelProto:
    """Values times a length: taken from the shape at this index, or a constant. A constant 2 is something else."""
    make, p = helper.make_node, "s" if index is not None else "t"
    held = {f"{p}two": np.array(2)} | ({f"{p}length": np.float32(16)} if index is None else {f"{p}at": np.array(index)})
    taken = [
        make("Shape", ["x"], [f"{p}shape"], "shape"),
        make("Gather", [f"{p}shape", f"{p}at"], [f"{p}n"], "gather"),
        make("Cast", [f"{p}n"], [f"{p}length"], "cast", to=1),
    ]
    nodes = [
        *(taken if index is not None else []),
        make("Tanh", ["x"], [f"{p}0"]),
        make("Mul", [f"{p}0", f"{p}length"], [f"{p}1"], "product" if index is not None else ""),
        make("Cast", [f"{p}two"], [f"{p}2"], to=1),
        make("Sin", [f"{p}1"], [f"{p}3"]),
        make("Pow", [f"{p}3", f"{p}2"], ["y"]),
    ]
    io = [helper.make_tensor_value_info(name, 1, [2, 16]) for name in "xy"]
    weights = [numpy_helper.from_array(value, name) for name, value in held.items()]
    graph = helper.make_graph(nodes, "g", io[:1], io[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_a_length_that_something_else_has_too_does_not_hide_what_made_it(tmp_path: Path) -> None:
    feed = {"x": np.random.default_rng(1).standard_normal((2, 16)).astype(np.float32)}
    (found,) = between(lengths(index=0), lengths(index=None), tmp_path, feed).suspects
    assert {"gather", "product"} <= {each["node"] for each in found["region"]}
    assert between(lengths(index=1), lengths(index=None), tmp_path, feed).suspects == []
