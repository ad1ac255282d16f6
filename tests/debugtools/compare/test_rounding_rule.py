"""Where layers are compared, what rounding explains decides: no healthy layer fails, and a wrong one does."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.comparing import OFF, ORT, Compared, run_compare
from support.models import from_text, with_weights
from support.sample_models import mlp

from layerwise._tool.backends.feeds.writer import save_feeds
from layerwise._tool.backends.specs import FeedSpec, RunnerSpec
from layerwise._tool.debugtools.compare.arithmetic.metrics import compare_arrays
from layerwise._tool.debugtools.compare.arithmetic.tolerance import Rule, rounding_bound
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec, ToleranceSpec
from layerwise._tool.debugtools.compare.table.step import Scale, explained_error

ALL = MarkSpec(everything=True)
FEEDS = FeedSpec(shapes={"x": [[8, 64]]})


def saved(model: onnx.ModelProto, path: Path) -> str:
    onnx.save(model, path)
    return str(path)


def half(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model in FP16 between its inputs and outputs."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    graph = made.graph
    for weight in graph.initializer:
        weight.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weight).astype(np.float16), weight.name))
    graph.node[0].input[0] = "x16"
    graph.node.insert(0, helper.make_node("Cast", ["x"], ["x16"], to=TensorProto.FLOAT16, name="down"))
    last = graph.output[0].name
    graph.node[-1].output[0] = f"{last}16"
    graph.node.append(helper.make_node("Cast", [f"{last}16"], [last], to=TensorProto.FLOAT, name="up"))
    return made


def off_by(model: onnx.ModelProto, place: int, factor: Any) -> onnx.ModelProto:
    """The model with the tensor that its node `place` makes multiplied."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    graph = made.graph
    name = graph.node[place].output[0]
    graph.node[place].output[0] = "right"
    graph.initializer.append(numpy_helper.from_array(np.asarray(factor), "factor"))
    graph.node.insert(place + 1, helper.make_node("Mul", ["right", "factor"], [name], name="planted"))
    return made


def against(tmp_path: Path, suspect: onnx.ModelProto, good: onnx.ModelProto, **more: Any) -> Compared:
    runner = RunnerSpec(kind="onnxrt", threads=1, model=saved(suspect, tmp_path / "suspect.onnx"))
    model = saved(good, tmp_path / "good.onnx")
    return run_compare(CompareSpec(model=model, runners=[runner, ORT], marks=ALL, feeds=FEEDS, **more))


def failed(done: Compared) -> list[str]:
    return [row["tensor"] for row in done.table() if row["passed"] is False]


@pytest.mark.parametrize("lower", [False, True])
def test_an_optimised_model_agrees_with_the_model_as_it_is(tmp_path: Path, lower: bool) -> None:
    good = mlp(layers=3)
    path = saved(half(good) if lower else good, tmp_path / "model.onnx")
    done = run_compare(CompareSpec(model=path, runners=[ORT, OFF], marks=ALL, feeds=FEEDS))
    assert done.result["passed"] is True and failed(done) == []


def test_an_fp16_form_agrees_with_the_model_where_constants_flag_single_elements(tmp_path: Path) -> None:
    good = mlp(layers=3)
    done = against(tmp_path, half(good), good)
    assert done.result["passed"] is True and failed(done) == []
    fixed = against(tmp_path, half(good), good, tolerance=ToleranceSpec(auto=False))
    assert len(failed(fixed)) >= 6


@pytest.mark.parametrize("place", [1, 6, 9])
def test_a_layer_that_is_four_ulp_off_fails_alone(tmp_path: Path, place: int) -> None:
    good = mlp(layers=6)
    done = against(tmp_path, off_by(good, place, np.float32(1 + 4 * np.finfo(np.float32).eps)), good)
    assert failed(done) == [good.graph.node[place].output[0]]
    (row,) = [row for row in done.table() if row["passed"] is False]
    assert row["finding"] == "leap" and "of which rounding explains" in row["note"] and row["over"] == 0


def test_tolerances_of_the_user_decide_as_ever(tmp_path: Path) -> None:
    good = mlp(layers=3)
    wrong = off_by(good, 1, np.float32(1 + 4 * np.finfo(np.float32).eps))
    assert against(tmp_path, wrong, good, tolerance=ToleranceSpec(atol={"": 0.01})).result["passed"] is True
    assert against(tmp_path, wrong, good, tolerance=ToleranceSpec(rtol={"": 1e-9}, atol={"": 0})).result["n_failed"] > 1


def test_outputs_alone_are_judged_by_constants_unless_rounding_is_asked_about(tmp_path: Path) -> None:
    good = mlp(layers=3)
    runner = RunnerSpec(kind="onnxrt", threads=1, model=saved(half(good), tmp_path / "half.onnx"))
    model = saved(good, tmp_path / "good.onnx")
    spec = CompareSpec(model=model, runners=[runner, ORT], feeds=FEEDS)
    assert run_compare(spec).result["passed"] is False
    asked = CompareSpec(model=model, runners=[runner, ORT], feeds=FEEDS, tolerance=ToleranceSpec(auto=True))
    assert run_compare(asked).result["passed"] is True


def test_one_wrong_element_among_many_fails() -> None:
    reference = np.random.default_rng(0).standard_normal(1 << 20).astype(np.float32)
    suspect = reference.copy()
    suspect[77] += np.float32(1e-3)
    result = compare_arrays(suspect, reference, Rule(auto=True), depth=4)
    assert result.passed is False and result.over == 1 and result.rel_l2 is not None and result.rel_l2 < 2e-6


def test_what_lies_below_the_smallest_numbers_of_fp16_is_lost_without_a_fault() -> None:
    reference = np.random.default_rng(0).standard_normal(4096).astype(np.float32) * np.float32(4e-8)
    result = compare_arrays(reference.astype(np.float16), reference, Rule(auto=True))
    assert result.passed is True and result.rel_l2 is not None and result.rel_l2 > 0.1


@pytest.mark.parametrize(
    ("kind", "types", "off", "passes"),
    [
        (np.int8, ["bfloat16"], 1, True),
        (np.int8, ["bfloat16"], 2, False),
        (np.int8, [], 1, False),
        (np.int64, ["float32"], 1, False),
    ],
)
def test_quantised_values_may_be_one_step_apart_and_other_integers_not_at_all(
    kind: Any, types: list[str], off: int, passes: bool
) -> None:
    reference = np.full(200, 100, kind)
    suspect = reference.copy()
    suspect[3] += off
    assert compare_arrays(suspect, reference, Rule(auto=True), types=types).passed is passes


def test_a_layer_with_a_mask_says_both_what_is_left_out_and_what_is_too_much(tmp_path: Path) -> None:
    good = mlp(layers=2)
    mask = np.where(np.arange(64) < 16, np.float32(-1e9), np.float32(0))
    good.graph.initializer.append(numpy_helper.from_array(mask, "mask"))
    good.graph.node.insert(1, helper.make_node("Add", ["g0", "mask"], ["masked"], name="hide"))
    good.graph.node[2].input[0] = "masked"
    done = against(tmp_path, off_by(good, 1, np.float32(1 + 3 * np.finfo(np.float32).eps)), good)
    row = done.row("masked")
    assert (row["passed"], row["finding"]) == (False, "leap")
    assert "128 of 512 elements are sentinels" in row["note"] and "of which rounding explains" in row["note"]


def test_what_fp16_cannot_hold_is_no_excuse_for_a_step_in_fp32(tmp_path: Path) -> None:
    """A normalisation's epsilon 2 % off, in FP32, behind a tensor in FP16."""

    def model(epsilon: float) -> str:
        text = f"""m (float[4, 64] x) => (float[4, 1] y) <float eps = {{{epsilon}}}, int64[1] last = {{-1}}> {{
            small = Cast <to = 10> (x)  wide = Cast <to = 1> (small)  square = Mul(wide, wide)
            mean = ReduceMean(square, last)  sum = Add(mean, eps)  y = Sqrt(sum)
        }}"""
        return saved(from_text(text), tmp_path / f"{epsilon}.onnx")

    good = RunnerSpec(kind="onnxrt", threads=1, graph_optimization_level="disable", model=model(1e-6))
    feeds = FeedSpec(val_range={"": (0.03, 0.05)})
    done = run_compare(CompareSpec(model=model(1.02e-6), runners=[OFF, good], marks=ALL, feeds=feeds))
    assert next(row["tensor"] for row in done.table() if row["passed"] is False) == "sum"
    assert done.row("sum")["finding"] == "leap" and done.row("mean")["passed"]


def test_a_product_whose_sums_cancel_passes_errors_on_enlarged(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((64, 512)).astype(np.float32) / 8 for _ in range(2))
    b -= (b @ np.linalg.pinv(a) @ a) * np.float32(0.88)  # nearly at right angles to a
    text = """g (float[8, 64] x) => (float[8, 8] z) {
        p = MatMul (x, a)
        q = MatMul (x, b)
        t = Transpose <perm = [1, 0]> (q)
        y = MatMul (p, t)
        z = Neg (y)
    }"""
    good = with_weights(from_text(text, opset=17, ir=9), a=a, b=b)
    noise = 1 + rng.standard_normal(512) * 1.2e-7
    done = against(tmp_path, off_by(good, 0, noise.astype(np.float32)), good)
    assert failed(done) == []


@pytest.mark.parametrize("wrong", [11, 10])
def test_an_output_and_what_reads_one_are_judged_by_the_step_that_makes_them(wrong: int, tmp_path: Path) -> None:
    """By depth alone, which is left where an output is of another run than its inputs, FP16 explains 3 %."""
    weights = np.random.default_rng(0).standard_normal((12, 16, 16)).astype(np.float16) / np.float16(4)
    names = ["x", *(f"t{i}" for i in range(12))]
    nodes = [helper.make_node("MatMul", [names[i], f"w{i}"], [names[i + 1]], f"n{i}") for i in range(12)]
    outputs = ["t11"] if wrong == 11 else ["t9", "t11"]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT16, [8, 16])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT16, [8, 16]) for name in outputs],
        [numpy_helper.from_array(weight, f"w{i}") for i, weight in enumerate(weights)],
    )  # fmt: skip
    good = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    suspect = onnx.ModelProto()
    suspect.CopyFrom(good)
    off = numpy_helper.from_array(weights[wrong] * np.float16(1.015), f"w{wrong}")
    suspect.graph.initializer[wrong].CopyFrom(off)
    side = RunnerSpec(kind="onnxrt", threads=1, model=saved(suspect, tmp_path / "suspect.onnx"))
    model, feeds = saved(good, tmp_path / "good.onnx"), FeedSpec(shapes={"x": [[8, 16]]})
    done = run_compare(CompareSpec(model=model, runners=[side, OFF], marks=ALL, feeds=feeds))
    assert failed(done)[0] == f"t{wrong}"
    assert done.result["first_bad"]["finding"] == "leap"


def test_sums_over_a_graph_input_are_as_long_as_its_shape_says(tmp_path: Path) -> None:
    """Two libraries that sample an input at computed places differ by more than one rounding."""
    node = helper.make_node("Resize", ["x", "", "s"], ["y"], mode="cubic")
    values = [helper.make_tensor_value_info(name, 1, [1, 1, size, size]) for name, size in (("x", 12), ("y", 36))]
    scales = [numpy_helper.from_array(np.float32([1, 1, 3, 3]), "s")]
    graph = helper.make_graph([node], "g", values[:1], values[1:], scales)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = saved(model, tmp_path / "model.onnx")
    spec = CompareSpec(model=path, runners=[OFF, RunnerSpec(kind="reference")], marks=ALL, feeds=FeedSpec(seed=0))
    assert failed(run_compare(spec)) == []


def test_a_rectifier_may_leave_the_small_numbers_of_a_tensor_with_its_error() -> None:
    inputs = Scale(rms=1.0, peak=2.0), 1e-3
    right, found = np.float32([0.0, 0.01]), np.float32([0.0, 0.0105])
    result = compare_arrays(found, right, Rule(auto=True), depth=1, types=("float16",))
    limits = {op: explained_error(result, [op], 1e-6, inputs[1], [inputs[0]], 0.0) or 0.0 for op in ("Relu", "Reshape")}
    assert limits["Reshape"] < (result.rel_l2 or 0.0) < limits["Relu"] < 0.2


def equal_channels(tmp_path: Path) -> CompareSpec:
    """Sums of terms of one sign depend on their order; blocks of equal channels are alike wherever one looks."""
    sizes = {"w": (224, 16, 0.013), "v": (352, 16, 1.7), "u": (16, 576, 0.11)}
    weights = {name: np.full((made, read, 3, 3), value) for name, (made, read, value) in sizes.items()}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], "small", pads=[1] * 4),
        helper.make_node("Conv", ["x", "v"], ["b"], "large", pads=[1] * 4),
        helper.make_node("Concat", ["a", "b"], ["c"], "both", axis=1),
        helper.make_node("AveragePool", ["c"], ["d"], "pool", kernel_shape=[3, 3], pads=[1] * 4),
        helper.make_node("Conv", ["d", "u"], ["y"], "sums", pads=[1] * 4),
    ]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 16, 14, 14]) for name in "xy"]
    tensors = [numpy_helper.from_array(array.astype(np.float32), name) for name, array in weights.items()]
    model = helper.make_model(helper.make_graph(nodes, "g", values[:1], values[1:], tensors),
                              opset_imports=[helper.make_opsetid("", 17)], ir_version=8)  # fmt: skip
    save_feeds(tmp_path / "in.json", [{"x": np.full((1, 16, 14, 14), 0.7, np.float32)}])
    return CompareSpec(model=saved(model, tmp_path / "m.onnx"), runners=[ORT, OFF], marks=ALL,
                       feeds=FeedSpec(files=[str(tmp_path / "in.json")]))  # fmt: skip


def test_convolutions_whose_channels_are_equal_are_read_in_their_layout(tmp_path: Path) -> None:
    done = run_compare(equal_channels(tmp_path))
    assert failed(done) == []
    assert {row["tensor"] for row in done.table()} >= {"a", "b", "d", "y"}


def test_blocks_of_unknown_size_are_not_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("layerwise._tool.backends.onnxrt.channel_block.channel_block", lambda: 0)
    done = run_compare(equal_channels(tmp_path))
    assert failed(done) == []
    assert "y" in {row["tensor"] for row in done.table()}


@pytest.mark.parametrize("kind", ["bfloat16", "float16", "float32"])
@pytest.mark.parametrize("depth", [1, 400])
def test_rounding_never_explains_a_third_of_a_tensor_however_deep_it_lies(kind: str, depth: int) -> None:
    right = np.random.default_rng(depth).standard_normal(4000).astype(np.float32)
    noise = np.random.default_rng(depth + 1).standard_normal(4000).astype(np.float32)
    for error, passes in ((0.3, False), (rounding_bound([kind], depth) / 2, True)):
        result = compare_arrays(right + np.float32(error) * noise, right, Rule(auto=True), depth=depth, types=[kind])
        assert result.rule.bound is not None
        assert ((result.rel_l2 or 0.0) <= result.rule.bound) is passes
