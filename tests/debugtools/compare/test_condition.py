"""A node that makes small differences large is no fault where both sides compute it right; a fault in it is one."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.comparing import ORT, Compared, run_compare

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.runner import Loadable, open_runner
from layerwise._tool.backends.specs import FeedSpec, ModelOptions, RunnerSpec
from layerwise._tool.debugtools.compare.arithmetic.metrics import compare_arrays
from layerwise._tool.debugtools.compare.arithmetic.tolerance import Tolerances
from layerwise._tool.debugtools.compare.sides.models import make_model
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec, ToleranceSpec
from layerwise._tool.debugtools.compare.table.condition import Conditions
from layerwise._tool.debugtools.compare.table.judging import PairErrors
from layerwise._tool.debugtools.compare.table.places import Places

NODE = helper.make_node
W = (np.random.default_rng(0).standard_normal((64, 64)) / 8).astype(np.float32)
SHIFT = np.full(64, 200, np.float32)
SHIFTED = [NODE("MatMul", ["x", "W"], ["a"], "project"), NODE("Add", ["a", "c"], ["b"], "shift")]
CASES = {
    "a mean taken off": [NODE("ReduceMean", ["b"], ["m"], axes=[-1]), NODE("Sub", ["b", "m"], ["y"], "steep")],
    "weights whose sums vanish": [NODE("MatMul", ["b", "Z"], ["y"], "steep")],
    "a normalisation": [NODE("LayerNormalization", ["b", "one", "zero"], ["y"], "steep")],
    "a variance by squares": [
        NODE("Mul", ["b", "b"], ["s"]), NODE("ReduceMean", ["s"], ["q"], axes=[-1]),
        NODE("ReduceMean", ["b"], ["m"], axes=[-1]), NODE("Mul", ["m", "m"], ["mm"]),
        NODE("Sub", ["q", "mm"], ["y"], "steep"),
    ],
    "an angle of many turns": [NODE("Mul", ["b", "c"], ["t"]), NODE("Sin", ["t"], ["y"], "steep")],
}  # fmt: skip


def steep(case: str, path: Path, factor: float = 1.0, shift: Array = SHIFT) -> str:
    """A model with an ill-conditioned node, whose result is multiplied. shift: added before it."""
    nodes = [*SHIFTED, *CASES[case], NODE("Mul", ["y", "factor"], ["f"], "scale"), NODE("Abs", ["f"], ["z"], "end")]
    weights = {
        "W": W, "Z": W - W.mean(0, keepdims=True), "c": shift, "factor": np.float32([factor]),
        "one": np.ones(64, np.float32), "zero": np.zeros(64, np.float32),
    }  # fmt: skip
    graph = helper.make_graph(
        nodes, "steep", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [16, 64])],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(onnx.shape_inference.infer_shapes(model), path)
    return str(path)


def compared(suspect: str, good: str) -> Compared:
    sides = [ORT, RunnerSpec(kind="onnxrt", threads=1, model=good)]
    return run_compare(CompareSpec(model=suspect, runners=sides, marks=MarkSpec(everything=True), feeds=FeedSpec()))


@pytest.mark.parametrize("case", CASES)
def test_what_a_node_makes_of_rounding_is_no_fault_and_what_is_more_is_one(case: str, tmp_path: Path) -> None:
    good = steep(case, tmp_path / "good.onnx")
    rounded = np.nextafter(SHIFT, np.where(np.arange(64) % 3, 0, 999), dtype=np.float32)
    done = compared(steep(case, tmp_path / "rounded.onnx", shift=rounded), good)
    assert [row["tensor"] for row in done.table() if row["passed"] is False] == [], done.result["conclusion"]
    (row, *_) = [row for row in done.table() if row["finding"] == "ill-conditioned"]
    assert row["node"] == "steep" and "makes small differences large" in row["note"]
    assert done.result["first_ill_conditioned"]["node"] == "steep"
    assert "Small differences become large at" in done.result["conclusion"]
    wrong = compared(steep(case, tmp_path / "wrong.onnx", 1.2), good)
    assert wrong.result["first_bad"]["node"] == "scale"


def of_another_export(path: str) -> str:
    """The model with no name in common but its input's."""
    model = onnx.load(path)
    for node in model.graph.node:
        node.name = ""
        node.input[:] = [name if name == "x" else f"other_{name}" for name in node.input]
        node.output[:] = [f"other_{name}" for name in node.output]
    for value in (*model.graph.initializer, *model.graph.output):
        value.name = f"other_{value.name}"
    del model.graph.value_info[:]
    onnx.save(model, f"{path}.other.onnx")
    return f"{path}.other.onnx"


@pytest.mark.parametrize("case", ["a mean taken off", "weights whose sums vanish"])
def test_two_exports_are_not_accused_of_it_either(case: str, tmp_path: Path) -> None:
    good = of_another_export(steep(case, tmp_path / "good.onnx"))
    rounded = np.nextafter(SHIFT, np.where(np.arange(64) % 3, 0, 999), dtype=np.float32)
    done = compared(steep(case, tmp_path / "rounded.onnx", shift=rounded), good)
    assert [row["tensor"] for row in done.table() if row["passed"] is False] == [], done.result["conclusion"]
    assert done.result["first_ill_conditioned"]["node"] == "steep"
    wrong = compared(steep(case, tmp_path / "wrong.onnx", 1.2), good)
    assert wrong.result["first_bad"]["node"] == "scale"


def built(path: Path, nodes: list[onnx.NodeProto], weights: dict[str, Array], shape: tuple[int, ...], kind: int) -> str:
    """A model of x with the last node's output."""
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(nodes[-1].output[0], kind, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    path.write_bytes(model.SerializeToString())
    return str(path)


def growing(path: Path, start: float = 3.0, last: float = 1.0) -> str:
    """Thirty layers, each of which makes differences a little larger; the last but three is multiplied by `last`."""
    spread = np.random.default_rng(1).standard_normal((64, 64)).astype(np.float32)
    nodes = [NODE("Mul", ["x", "start"], ["t0"])]
    for i in range(20):
        nodes += [
            NODE("MatMul", [f"t{i}", "W"], [f"m{i}"]),
            NODE("Tanh", [f"m{i}"], [f"u{i}" if i == 12 else f"t{i + 1}"]),
        ]
        nodes += [NODE("Mul", ["u12", "last"], ["t13"], "scale")] if i == 12 else []
    return built(path, nodes, {"W": spread, "start": np.float32(start), "last": np.float32(last)}, (8, 64), 1)


def deciding(path: Path, scale: float = 1e4, wrong: int = 0) -> str:
    """Whole parts of numbers of which some are nearly whole, and rows of a table that they choose."""
    table = np.random.default_rng(2).standard_normal((64, 8)).astype(np.float32)
    nodes = [
        NODE("Mul", ["x", "scale"], ["s"]), NODE("Floor", ["s"], ["f"]), NODE("Cast", ["f"], ["i"], "whole", to=7),
        NODE("Add", ["i", "wrong"], ["j"], "index"), NODE("Mod", ["j", "rows"], ["r"]),
        NODE("Gather", ["table", "r"], ["y"]),
    ]  # fmt: skip
    weights = {"scale": np.float32(scale), "table": table, "wrong": np.int64(wrong), "rows": np.int64(64)}
    return built(path, nodes, weights, (512, 60), 1)


@pytest.mark.parametrize("case", ["growing", "deciding"])
def test_what_follows_from_what_a_side_read_is_no_fault_however_far_apart_the_sides_are(
    case: str, tmp_path: Path
) -> None:
    if case == "growing":
        good, other = (
            growing(tmp_path / "a.onnx"),
            growing(tmp_path / "b.onnx", np.nextafter(np.float32(3), np.float32(4))),
        )
        wrong = growing(tmp_path / "c.onnx", last=0.5)
    else:
        good, other = (
            deciding(tmp_path / "a.onnx"),
            deciding(tmp_path / "b.onnx", np.nextafter(np.float32(1e4), np.float32(0))),
        )
        wrong = deciding(tmp_path / "c.onnx", wrong=1)
    done = compared(other, good)
    assert [row["tensor"] for row in done.table() if row["passed"] is False] == [], done.result["conclusion"]
    assert (
        "each side gives what follows from what it read"
        in done.row("i" if case == "deciding" else done.result["first_ill_conditioned"]["tensor"])["note"]
    )
    assert (
        "No layer is wrong" in done.result["conclusion"]
        and "Small differences become large" in done.result["conclusion"]
    )
    assert compared(wrong, good).result["first_bad"]["node"] == ("scale" if case == "growing" else "index")


def blank(path: Path, factor: float = 1.0) -> str:
    """A Softmax of rows of which one is masked as a whole, and an Exp that overflows."""
    hidden = np.zeros((8, 8), np.float32)
    hidden[3] = -np.inf
    nodes = [
        NODE("Add", ["x", "hidden"], ["m"]), NODE("Softmax", ["m"], ["s"], "softmax"),
        NODE("Mul", ["s", "factor"], ["f"], "scale"), NODE("IsNaN", ["f"], ["n"]),
        NODE("Where", ["n", "zero", "f"], ["w"]), NODE("Mul", ["w", "large"], ["l"]), NODE("Exp", ["l"], ["y"]),
    ]  # fmt: skip
    weights = {"hidden": hidden, "factor": np.float32(factor), "zero": np.float32(0), "large": np.float32(900)}
    return built(path, nodes, weights, (8, 8), 1)


def test_nan_and_infinities_alike_on_both_sides_are_told_and_do_not_fail(tmp_path: Path) -> None:
    good = blank(tmp_path / "good.onnx")
    done = compared(blank(tmp_path / "same.onnx"), good)
    assert done.result["passed"] and done.row("s")["nan"] == [8, 8] and done.row("y")["inf"][0] > 0
    assert "NaN, or nothing but infinities, on both sides: the first #1 Softmax softmax" in done.result["conclusion"]
    wrong = compared(blank(tmp_path / "wrong.onnx", 1.01), good)
    assert wrong.result["first_bad"]["node"] == "scale"
    outputs = run_compare(CompareSpec(model=good, runners=[ORT, ORT], feeds=FeedSpec()))
    assert not outputs.result["passed"]  # tolerances are Polygraphy's: infinities pass where they are asked to


def test_a_tensor_of_the_plain_run_may_come_of_a_fused_node(tmp_path: Path) -> None:
    """What it is made from was observed in another run: a product whose sums vanish is one node with what reads it."""
    path = tmp_path / "model.onnx"
    steep("weights whose sums vanish", path, shift=100 * SHIFT)
    feed = {"x": np.random.default_rng(1).standard_normal((16, 64)).astype(np.float32)}
    names = ["a", "b", "y", "f", "z"]
    model = onnx.load(path)
    model.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names[:-1])
    with open_runner(ORT, Loadable(data=model.SerializeToString())) as runner:
        reference = runner.infer(feed).outputs
    places = Places(make_model(str(path), ModelOptions()), whole_graph=True)
    errors = PairErrors(places, one_backend=False, conditions=Conditions(places, feed))
    fused = np.abs((np.asarray(reference["b"], np.float64) @ (W - W.mean(0, keepdims=True))).astype(np.float32))
    for name in names:
        suspect = fused if name == "z" else reference[name]
        result = compare_arrays(suspect, reference[name], Tolerances(ToleranceSpec(auto=True)).rule(name))
        found = errors.judge(name, result, "plain" if name == "z" else "every", arrays=(suspect, reference[name]))
        assert found[1] == ("ill-conditioned" if name == "z" else "")
    assert result.rel_l2 is not None and result.rel_l2 > 1e-6 and result.passed


@pytest.mark.parametrize(("factor", "found"), [(1.0, ""), (1.2, "leap")])
def test_a_node_may_have_read_more_digits_than_were_observed(factor: float, found: str, tmp_path: Path) -> None:
    """Of a model in FP16 that is computed in FP32, a difference of two tensors that are rounded where they are seen."""
    nodes = [NODE("Abs", ["x"], ["a"]), NODE("Mul", ["x", "f"], ["b"]), NODE("Sub", ["a", "b"], ["y"])]
    path = built(tmp_path / "model.onnx", nodes, {"f": np.float32(1 - 1 / 32)}, (8, 8), TensorProto.FLOAT)
    random = np.random.default_rng(0)
    x = random.uniform(0.5, 1.5, (8, 8)).astype(np.float32)
    made = {"a": x, "b": x * np.float32(1 - 1 / 32), "y": x - x * np.float32(1 - 1 / 32)}
    before = made["b"] * (1 + random.normal(0, 1e-4, (8, 8)).astype(np.float32))  # what earlier nodes were off by
    other = {"a": x, "b": before, "y": (x - before) * np.float32(factor)}
    places = Places(make_model(path, ModelOptions()), whole_graph=True)
    errors = PairErrors(places, one_backend=True, conditions=Conditions(places, {"x": x}))
    for name, reference in made.items():
        suspect = other[name].astype(np.float16)
        result = compare_arrays(suspect, reference, Tolerances(ToleranceSpec(auto=True)).rule(name))
        told = errors.judge(name, result, "every", arrays=(suspect, reference))
    assert told[1] == found and result.passed is (not found)


def test_a_node_that_only_one_side_has_is_said_to_be_where_the_fault_is(tmp_path: Path) -> None:
    weights = {"factor": np.float32(0.99)}
    good = built(tmp_path / "good.onnx", [NODE("Abs", ["x"], ["a"]), NODE("Neg", ["a"], ["y"])], weights, (8, 8), 1)
    nodes = [NODE("Abs", ["x"], ["b"]), NODE("Mul", ["b", "factor"], ["a"], "planted"), NODE("Neg", ["a"], ["y"])]
    done = compared(built(tmp_path / "bad.onnx", nodes, weights, (8, 8), 1), good)
    assert (done.row("a")["finding"], done.row("y")["finding"]) == ("leap", "propagated")
    assert "#1 Mul planted: its inputs agree, so the fault is there" in done.result["conclusion"]


def masked(path: Path, axis: int, shift: Array) -> str:
    """The weights of an attention over 16 places, of which each sees those before it."""
    mask = np.triu(np.full((16, 16), np.finfo(np.float32).min, np.float32), 1)
    weights = {"W": np.ascontiguousarray(W[:, :16]), "c": shift, "mask": mask, "v": W[:16]}
    nodes = [
        NODE("MatMul", ["x", "W"], ["a"], "scores"), NODE("Add", ["a", "c"], ["b"], "shift"),
        NODE("Add", ["b", "mask"], ["s"], "hide"), NODE("Softmax", ["s"], ["w"], "attend", axis=axis),
        NODE("MatMul", ["w", "v"], ["z"], "end"),
    ]  # fmt: skip
    graph = helper.make_graph(
        nodes, "masked", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 16, 64])],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return str(path)


def test_what_a_mask_hides_excuses_nothing(tmp_path: Path) -> None:
    """Over another axis rounding would decide the softmax of -3.4e38 and -3.4e38; but nothing makes these differ."""
    shift = np.random.default_rng(1).standard_normal(16).astype(np.float32)
    good = masked(tmp_path / "good.onnx", 2, shift)
    moved = shift * np.float32(1.00001)
    assert compared(masked(tmp_path / "moved.onnx", 2, moved), good).result["first_bad"]["node"] == "shift"
    done = compared(masked(tmp_path / "wrong.onnx", 0, shift + np.float32(1e-7)), good)
    assert done.result["first_bad"]["node"] == "attend", done.result["conclusion"]
