"""Kernels that saturate, on CPUs that do so and on others: what they do to a quantised model is said, nobody else is
accused."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from support.aligning import renamed
from support.comparing import run_compare
from support.locating import between
from support.products import FEED, ROWS, WIDTH, drawn, network, two_products
from support.quantised import FORMS, dynamic, static
from support.saturating import let_saturate

from layerwise._tool.backends.feeds.writer import save_feeds
from layerwise._tool.backends.onnxrt.saturation import SETTING, precise, saturates
from layerwise._tool.backends.specs import FeedSpec, ModelOptions, RunnerSpec
from layerwise._tool.debugtools.compare.sides.models import Model
from layerwise._tool.debugtools.compare.sides.stream import GraphStream, SessionPool
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec
from layerwise._tool.debugtools.search.lens.rows import LensResult
from layerwise._tool.debugtools.search.lens.sentences import concluded

ORT = RunnerSpec(kind="onnxrt", threads=1)


@pytest.fixture(scope="module")
def model() -> onnx.ModelProto:
    return two_products()


@pytest.fixture(scope="module")
def quantised(model: onnx.ModelProto) -> onnx.ModelProto:
    return FORMS["dynamic"](model, FEED)


@pytest.fixture(autouse=True)
def saturating(monkeypatch: pytest.MonkeyPatch) -> None:
    let_saturate(monkeypatch)


def specified(models: list[onnx.ModelProto], folder: Path, runner: RunnerSpec = ORT) -> CompareSpec:
    """A run of the first model against the second, every layer."""
    for model, name in zip(models, "ab", strict=True):
        onnx.save(model, folder / f"{name}.onnx")
    save_feeds(folder / "in.json", [FEED])
    other = RunnerSpec(kind=runner.kind, threads=1, model=str(folder / "b.onnx"), options=runner.options)
    return CompareSpec(model=str(folder / "a.onnx"), runners=[runner, other], marks=MarkSpec(everything=True),
                       feeds=FeedSpec(files=[str(folder / "in.json")]))  # fmt: skip


@pytest.mark.parametrize("side", [0, 1])
def test_a_run_fails_and_says_which_kernel_saturates_and_what_avoids_it(
    side: int, model: onnx.ModelProto, quantised: onnx.ModelProto, tmp_path: Path
) -> None:
    models = [quantised, model] if side == 0 else [model, quantised]
    found = run_compare(specified(models, tmp_path))
    held = found.result["saturated"]
    assert not found.result["passed"]
    assert held["tensor"] == "a" and held["side"] == side and held["first"].endswith("MatMulInteger first_quant")
    assert held["left"] < 0.015 and held["error"] > 0.03
    assert "kernels saturate" in found.row("a")["note"]
    assert f"{SETTING}=1" in found.result["conclusion"] and "the fault is there" not in found.result["conclusion"]


def test_a_run_with_the_setting_passes_for_what_few_bits_cost(
    model: onnx.ModelProto, quantised: onnx.ModelProto, tmp_path: Path
) -> None:
    found = run_compare(specified([quantised, model], tmp_path, precise(ORT, quantised)))
    assert found.result["passed"] and found.result["quantised"]["explained"]


def test_another_fault_is_not_put_down_to_it(
    model: onnx.ModelProto, quantised: onnx.ModelProto, tmp_path: Path
) -> None:
    """The first product is far off; what saturates is little beside it."""
    wrong = onnx.ModelProto()
    wrong.CopyFrom(model)
    wrong.graph.initializer[0].CopyFrom(
        numpy_helper.from_array(3 * numpy_helper.to_array(model.graph.initializer[0]), "w0")
    )
    found = run_compare(specified([wrong, quantised], tmp_path))
    assert not found.result["passed"] and found.result["saturated"] is None


def test_locating_names_the_kernel_of_a_quantised_suspect(
    model: onnx.ModelProto, quantised: onnx.ModelProto, tmp_path: Path
) -> None:
    found = between(quantised, model, tmp_path, FEED)
    suspect = found.suspects[0]
    assert suspect["diagnosis"] == "saturation" and suspect["tensor"] == "a"
    assert "MatMulInteger first_quant" in suspect["evidence"] and f"{SETTING}=1" in found.result["conclusion"]
    assert "reduce` proves" not in found.result["conclusion"]


def test_a_float_suspect_is_not_accused_of_it_but_of_its_own_fault(
    model: onnx.ModelProto, quantised: onnx.ModelProto, tmp_path: Path
) -> None:
    clean = between(model, quantised, tmp_path, FEED)
    assert clean.nodes == [] and not clean.result["passed"]
    assert clean.result["saturated"]["side"] == 1 and clean.result["saturated"]["first"].endswith("first_quant")
    assert f"{SETTING}=1" in clean.result["conclusion"]
    wrong = onnx.ModelProto()
    wrong.CopyFrom(model)
    next(node for node in wrong.graph.node if node.op_type == "Add").op_type = "Sub"
    found = between(wrong, quantised, tmp_path, FEED)
    assert "sum" in [node["node"] for node in found.suspects[0]["region"]]


def test_a_float_suspect_is_not_accused_of_it_where_the_reference_has_tensors_in_another_shape(tmp_path: Path) -> None:
    body = "[first] a = MatMul(x, w0) [relu] b = Relu(a) [minus] c = Neg(b) [second] y = MatMul(c, w1)"
    apart = (
        "p = MatMul(x, w0) q = Relu(p) t = Constant<value = int64[3] {4, 4, 32}>() u = Reshape(q, t) v = Neg(u) "
        "z = MatMul(v, w1) s = Constant<value = int64[2] {16, 32}>() y = Reshape(z, s)"
    )
    other = FORMS["dynamic"](network(apart, drawn(2)), FEED)
    found = between(network(body, drawn(2)), other, tmp_path, FEED)
    assert found.nodes == [] and found.result["saturated"]["side"] == 1


def test_a_kernel_that_saturates_beside_the_reference_evaluator_is_named(
    quantised: onnx.ModelProto, tmp_path: Path
) -> None:
    found = between(quantised, quantised, tmp_path, FEED, runners=(ORT, RunnerSpec(kind="reference")))
    assert found.suspects[0]["diagnosis"] == "saturation" and found.suspects[0]["node"] == "first_quant"


def test_what_the_optimiser_makes_of_q_and_dq_is_looked_at_where_their_nodes_are_right(tmp_path: Path) -> None:
    """All codes of all tensors are taken up: fused, its products saturate where this CPU's do."""
    random = np.random.default_rng(0)
    weights = [random.uniform(-1, 1, (WIDTH, WIDTH)).astype(np.float32) for _ in range(2)]
    body = "[first] a = MatMul(x, w0) [squash] b = Sigmoid(a) [second] y = MatMul(b, w1)"
    floats = network(body, weights, opset=19, ir=9)
    feed = {"x": random.uniform(0, 1, (ROWS, WIDTH)).astype(np.float32)}
    codes = static(floats, feed, qdq=True)
    onnx.save(codes, tmp_path / "codes.onnx")
    save_feeds(tmp_path / "in.json", [feed])
    runners = [ORT, RunnerSpec(kind="reference")]
    ran = run_compare(CompareSpec(model=str(tmp_path / "codes.onnx"), runners=runners, marks=MarkSpec(everything=True),
                                  feeds=FeedSpec(files=[str(tmp_path / "in.json")])))  # fmt: skip
    found = between(codes, floats, tmp_path, feed)
    assert found.nodes == []
    for result in (ran.result, found.result):
        assert result["passed"] is not saturates()
        assert (result["saturated"] or {}).get("tensor") == ("y" if saturates() else None)


def test_a_lens_says_what_the_mixed_model_does_without_the_setting() -> None:
    result = LensResult(passed=True, format="int8", candidates=2, kept=[], frontier=[], adds=True, proved=0.01,
                        needs=f"{SETTING}=1", saturated=0.3)  # fmt: skip
    said = concluded(result).conclusion
    assert (
        "without it onnxruntime's kernels for uint8 times int8 saturate on this CPU, and the mixed model is off by 0.3"
        in said
    )
    assert "refuse" not in said


def test_layers_are_observed_with_the_setting_though_onnxruntime_refuses_a_weight_that_is_dequantised_twice(
    tmp_path: Path,
) -> None:
    floats = network("[first] a = MatMul(x, w0) [last] y = MatMul(a, w0)", drawn(1))
    codes = static(floats, FEED, qdq=True, per_channel=True)
    onnx.save(codes, tmp_path / "codes.onnx")
    model = Model(str(tmp_path / "codes.onnx"), ModelOptions())
    plan = model.cut.segments(["a", "y"], 1 << 20, {})
    stream = GraphStream(model.cut, plan, precise(ORT, codes), "codes", tmp_path, FEED, SessionPool(keep=False))
    assert [name for made in stream for name in made] == ["a", "y"]


def table_of_positions() -> onnx.ModelProto:
    """A product of two constants, positions in -1 to 1 and a weight of a third of that, added to what is fed."""
    positions = np.sin(np.outer(np.arange(ROWS), 0.7 ** np.arange(WIDTH))).astype(np.float32)
    positions = np.pad(positions, ((0, WIDTH - ROWS), (0, 0)), mode="symmetric")
    body = "[table] p = MatMul(w0, w1) [rows] r = Slice(p, start, end) [product] a = MatMul(x, w2) [sum] y = Add(a, r)"
    model = network(body, [positions, *drawn(2)])
    bounds = {"start": [0], "end": [ROWS]}
    model.graph.initializer.extend(numpy_helper.from_array(np.array(at), name) for name, at in bounds.items())
    return model


@pytest.mark.parametrize("suspect", ["quantised", "float"])
def test_a_product_of_two_constants_is_nobodys_fault(suspect: str, tmp_path: Path) -> None:
    """Whose scale is whose, their places tell where names say nothing; a session computes it when it is opened."""
    good = table_of_positions()
    quantised, names = renamed(dynamic(good))
    if suspect == "quantised":
        found = between(quantised, good, tmp_path, {names["x"]: FEED["x"]})
    else:
        found = between(good, quantised, tmp_path, FEED)
    assert {row["diagnosis"] for row in found.suspects} <= {"saturation"}
    assert all(not row["word"] for row in found.table("quantised"))
    assert len(found.table("quantised")) == (4 if suspect == "quantised" else 0)
