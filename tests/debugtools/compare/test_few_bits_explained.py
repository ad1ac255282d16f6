"""What few bits cost a model is no fault of it, and what they do not explain is: `run` of a quantised model."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support import products
from support.comparing import Compared, run_compare
from support.faults.quantised import Planter
from support.products import ROWS, WIDTH, embedded_products
from support.quantised import FORMS

from layerwise._tool.backends.feeds.writer import save_feeds
from layerwise._tool.backends.specs import FeedSpec, ModelOptions, RunnerSpec
from layerwise._tool.debugtools.compare.quantised.grid import Grid
from layerwise._tool.debugtools.compare.quantised.sites import Sites
from layerwise._tool.debugtools.compare.quantised.told import told
from layerwise._tool.debugtools.compare.quantised.weights import Weights
from layerwise._tool.debugtools.compare.sides.models import Model
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec, ToleranceSpec

FEED = {**products.FEED, "rows": np.arange(ROWS, dtype=np.int64) % WIDTH}
ALL, PLAIN = MarkSpec(everything=True), MarkSpec()


@pytest.fixture(scope="module")
def model() -> onnx.ModelProto:
    return embedded_products()


@pytest.fixture(scope="module")
def nbits(model: onnx.ModelProto) -> onnx.ModelProto:
    return FORMS["nbits"](model, FEED)


def compared(
    suspect: onnx.ModelProto, model: onnx.ModelProto, folder: Path, marks: MarkSpec, **tolerance: dict[str, float]
) -> Compared:
    paths = [folder / "suspect.onnx", folder / "float.onnx"]
    for path, each in zip(paths, (suspect, model), strict=True):
        onnx.save(each, path)
    save_feeds(folder / "in.json", [FEED])
    runners = [RunnerSpec(kind="onnxrt", threads=1), RunnerSpec(kind="onnxrt", threads=1, model=str(paths[1]))]
    return run_compare(CompareSpec(
        model=str(paths[0]), runners=runners, feeds=FeedSpec(files=[str(folder / "in.json")]), marks=marks,
        tolerance=ToleranceSpec(**tolerance),
    ))  # fmt: skip


@pytest.mark.parametrize("marks", [PLAIN, ALL])
def test_weights_in_int4_pass_for_what_their_rounding_costs(
    marks: MarkSpec, model: onnx.ModelProto, nbits: onnx.ModelProto, tmp_path: Path
) -> None:
    found = compared(nbits, model, tmp_path, marks)
    held, row = found.result["quantised"], found.row("y")
    assert found.result["passed"]
    assert held["explained"]
    assert held["cost"] == row["rel_l2"] > 0.05
    assert held["left"] < 1e-6
    assert "what rounding the weights costs" in row["note"]
    assert "what few bits cost" in found.result["conclusion"]


def test_weights_that_the_graph_dequantises_are_weights_alone_too(model: onnx.ModelProto, tmp_path: Path) -> None:
    stored = onnx.ModelProto()
    stored.CopyFrom(model)
    weight = next(tensor for tensor in stored.graph.initializer if tensor.name == "w1")
    values = numpy_helper.to_array(weight)
    scale = (np.abs(values).max(axis=0) / 127).astype(np.float32)
    codes = np.rint(values / scale).astype(np.int8)
    stored.graph.initializer.remove(weight)
    stored.graph.initializer.extend([numpy_helper.from_array(codes, "w1_q"), numpy_helper.from_array(scale, "w1_s")])
    node = helper.make_node("DequantizeLinear", ["w1_q", "w1_s"], ["w1"], "turn", axis=1)
    stored.graph.node.insert(0, node)
    for marks in (PLAIN, ALL):
        found = compared(stored, model, tmp_path, marks)
        assert found.result["passed"]
        assert found.result["quantised"]["explained"]
        assert found.result["quantised"]["left"] < 0.3 * found.result["quantised"]["cost"]


def test_a_plain_run_of_quantised_activations_says_what_would_tell_more(model: onnx.ModelProto, tmp_path: Path) -> None:
    found = compared(FORMS["qdq"](model, FEED), model, tmp_path, PLAIN)
    assert not found.result["passed"]
    assert "`--mark-all` tells whether their formats explain" in found.result["quantised"]["text"]


@pytest.mark.parametrize("kind", ["scale", "clipped channel", "wrong axis"])
def test_damaged_codes_explain_nothing(
    kind: str, model: onnx.ModelProto, nbits: onnx.ModelProto, tmp_path: Path
) -> None:
    damage = next(Planter(nbits, 3).plants(kind))
    found = compared(damage.model, model, tmp_path, PLAIN)
    assert not found.result["passed"]
    assert not found.result["quantised"]["explained"]
    assert found.result["quantised"]["wrong"] == 1
    assert "agree" not in found.result["conclusion"]


def test_an_operator_that_is_wrong_beside_rounded_weights_fails_where_it_is(
    model: onnx.ModelProto, nbits: onnx.ModelProto, tmp_path: Path
) -> None:
    wrong = onnx.ModelProto()
    wrong.CopyFrom(nbits)
    add = next(node for node in wrong.graph.node if node.name == "sum")
    add.op_type = "Mul"
    found = compared(wrong, model, tmp_path, ALL)
    assert not found.result["passed"]
    assert found.result["first_bad"]["tensor"] == "d"
    assert "does not explain" in found.row("d")["note"]
    assert found.row("c")["passed"]


def test_a_tolerance_that_was_given_decides_and_the_row_tells_what_rounding_costs(
    model: onnx.ModelProto, nbits: onnx.ModelProto, tmp_path: Path
) -> None:
    found = compared(nbits, model, tmp_path, PLAIN, atol={"": 1e-4})
    assert not found.result["passed"]
    assert "what rounding the weights costs" in found.row("y")["note"]


@pytest.mark.parametrize(
    ("shape", "axis", "scales"),
    [((), 1, (1,)), ((6, 64), 1, (6, 2)), ((64, 6), 0, (2, 6)), ((6, 40), 1, (6, 2))],
)
def test_codes_stand_for_their_scales_values_wherever_blocks_lie(
    shape: tuple[int, ...], axis: int, scales: tuple[int, ...]
) -> None:
    """One value alone, whole blocks along either axis, a last block that is short."""
    random = np.random.default_rng(0)
    scale, zero = random.uniform(0.5, 2, scales).astype(np.float32), random.integers(0, 15, scales).astype(np.float32)
    grid = Grid("uint4", scale, zero, axis, 32 if shape else 0)
    codes = np.asarray(random.integers(0, 16, shape), np.uint8)
    wide = [np.repeat(part, 32, axis)[tuple(map(slice, shape))] if shape else part[0] for part in (scale, zero)]
    values = grid.values(codes)
    assert values.shape == shape
    assert np.array_equal(values, ((codes.astype(np.float32) - wide[1]) * wide[0]).astype(np.float32))
    assert np.array_equal(grid.codes(values), codes)
    best = grid.best(values)
    assert np.abs(best.rounded(values) - values).max() <= np.max(best.scale) * 0.51


@pytest.mark.parametrize("form", ["qop_channel", "dynamic_7"])  # weights in 7 bits, of which no kernel saturates
def test_behind_rounded_activations_the_float_model_is_moved_as_far(
    form: str, model: onnx.ModelProto, tmp_path: Path
) -> None:
    found = compared(FORMS[form](model, FEED), model, tmp_path, ALL)
    held = found.result["quantised"]
    assert found.result["passed"]
    assert held["explained"]
    assert held["moved"] == pytest.approx(held["cost"], rel=0.5)


def test_an_operator_that_is_wrong_among_rounded_activations_fails(model: onnx.ModelProto, tmp_path: Path) -> None:
    wrong = FORMS["qdq"](model, FEED)
    relu = next(node for node in wrong.graph.node if node.op_type == "Add")
    relu.op_type = "Sub"
    found = compared(wrong, model, tmp_path, ALL)
    assert not found.result["passed"]
    assert not found.result["quantised"]["explained"]


@pytest.mark.parametrize("damaged", [False, True])
def test_weights_in_nf4_are_read_by_their_codebook(damaged: bool, model: onnx.ModelProto, tmp_path: Path) -> None:
    low = FORMS["bnb4"](model, FEED)
    if damaged:
        largest = next(tensor for tensor in low.graph.initializer if "absmax" in tensor.name)
        largest.CopyFrom(numpy_helper.from_array(4 * numpy_helper.to_array(largest), largest.name))
    found = compared(low, model, tmp_path, PLAIN)
    held = found.result["quantised"]
    assert held["explained"] is not damaged and found.result["passed"] is not damaged
    assert "nf4" in held["text"] and held["wrong"] == int(damaged)


def test_codes_that_are_not_read_are_told(model: onnx.ModelProto, tmp_path: Path) -> None:
    nodes = [helper.make_node("QMoE", ["x"], ["z"], "experts", domain="com.microsoft")]
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [ROWS, WIDTH])
    graph = helper.make_graph(nodes, "g", [value], [helper.make_tensor_value_info("z", TensorProto.FLOAT, None)])
    sets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=sets, ir_version=8), tmp_path / "experts.onnx")
    opened = Model(str(tmp_path / "experts.onnx"), ModelOptions())
    sites = Sites(opened.cut, Weights(opened.cut, tmp_path))
    assert not sites.all
    assert told([], sites.unread) == (
        "no tensor in few bits whose codes are read; 1 node is not read: #0 QMoE experts: what it holds in few bits is "
        "not read"
    )
