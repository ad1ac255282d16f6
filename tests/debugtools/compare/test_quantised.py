"""Tensors in few bits: grids, what files tell of them, and `run` against a float original."""

import struct
from pathlib import Path

import ml_dtypes
import msgspec
import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper, numpy_helper
from support.comparing import run_compare
from support.models import from_text, with_weights
from support.products import FEED, drawn, network
from support.quantised import static

from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.feeds.writer import save_feeds
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.onnxrt.saturation import saturates
from layerwise._tool.backends.specs import FeedSpec, RunnerSpec
from layerwise._tool.debugtools.compare.quantised.files import FileReview, read_cache
from layerwise._tool.debugtools.compare.quantised.grid import Grid
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec


@given(st.sampled_from(["int8", "uint8", "int4", "uint4", "int16"]), st.floats(1e-3, 1e3), st.integers(0, 7))
def test_codes_hold_what_they_reach_to_half_a_step(kind: str, scale: float, zero: int) -> None:
    grid = Grid(kind, np.asarray([scale], np.float32), np.asarray([zero], np.float32))
    values = (np.linspace(-5, 5, 101) * scale).astype(np.float32)
    held, outside = grid.rounded(values), grid.outside(values)
    assert (np.abs(held - values)[~outside] <= 0.501 * scale).all()
    assert (grid.rounded(held) == held).all()


def test_fp8_codes_are_those_of_the_cast() -> None:
    values = np.linspace(-500, 500, 4001).astype(np.float32)
    cast = np.clip(values, -448, 448).astype(ml_dtypes.float8_e4m3fn).astype(np.float32)
    assert np.array_equal(Grid("float8_e4m3fn", np.ones(1, np.float32)).rounded(values), cast)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """float.onnx, its Q/DQ form q.onnx, bad.onnx with a scale four times too large, and the feed in.json."""
    made = tmp_path_factory.mktemp("quantised")
    model = network("[product] a = MatMul(x, w0) [end] y = Sigmoid(a)", drawn(1))
    quantised = static(model, FEED, qdq=True)
    onnx.save(model, made / "float.onnx")
    onnx.save(quantised, made / "q.onnx")
    scale = next(t for t in quantised.graph.initializer if t.name == "a_scale")
    scale.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(scale) * np.float32(8), "a_scale"))
    onnx.save(quantised, made / "bad.onnx")
    save_feeds(made / "in.json", [FEED])
    return made


def compared(folder: Path, name: str, against: str = "float.onnx"):  # type: ignore[no-untyped-def]
    runners = [
        RunnerSpec(kind="onnxrt", threads=1),
        RunnerSpec(kind="onnxrt", threads=1, model=str(folder / against)),
    ]
    spec = CompareSpec(
        model=str(folder / name), runners=runners, feeds=FeedSpec(files=[str(folder / "in.json")]),
        marks=MarkSpec(everything=True),
    )  # fmt: skip
    return run_compare(spec)


def test_a_run_pairs_the_stages_and_says_what_they_lose(folder: Path) -> None:
    found = compared(folder, "q.onnx")
    assert found.result["passed"]
    assert found.result["quantised"]["wrong"] == 0
    row = next(row for row in found.table("layers") if row["tensor"].startswith("a_Quantize"))
    assert row["tensor2"] == "a"
    assert row["quantised"]["sqnr"] > 30


def test_a_run_does_not_pass_what_no_format_explains(folder: Path) -> None:
    found = compared(folder, "bad.onnx")
    assert not found.result["passed"]
    assert found.result["quantised"]["worst"][0]["word"] == "scale"
    assert "its scale is 8 times" in found.result["conclusion"]
    assert "agree" not in found.result["conclusion"].partition(":")[0]
    assert found.result["first_bad"]["tensor"].startswith("a_Quantize")
    assert "its scale is 8 times" in next(row["note"] for row in found.table("layers") if row["passed"] is False)


def test_codes_that_both_sides_have_are_compared_as_the_values_that_they_stand_for(folder: Path) -> None:
    """One side quantises one tensor more."""
    more = onnx.load(folder / "q.onnx")
    sigmoid = next(node for node in more.graph.node if node.op_type == "Sigmoid")
    at = list(more.graph.node).index(sigmoid)
    held = {"s": np.float32(1 / 255), "z": np.uint8(0)}
    more.graph.initializer.extend(numpy_helper.from_array(np.asarray(value), name) for name, value in held.items())
    last, sigmoid.output[0] = sigmoid.output[0], "float_end"
    more.graph.node.insert(at + 1, helper.make_node("QuantizeLinear", ["float_end", "s", "z"], ["codes"], "again"))
    more.graph.node.insert(at + 2, helper.make_node("DequantizeLinear", ["codes", "s", "z"], [last], "and back"))
    onnx.save(more, folder / "more.onnx")
    found = compared(folder, "more.onnx", against="q.onnx")
    assert [row["tensor"] for row in found.table("layers") if row["passed"] is False] == []
    assert found.result["passed"]


def test_files_and_a_calibration_cache_are_held_against_saved_tensors(folder: Path) -> None:
    values = {"a": np.random.default_rng(2).uniform(-1, 1, (16, 32)).astype(np.float32)}
    cache = folder / "calibration.cache"
    good, small = (struct.pack(">f", scale).hex() for scale in (1 / 127, 1 / 1270))
    cache.write_text(f"TRT-8601-EntropyCalibration2\na: {small}\nx: {good}\nno: such: {good}\n", encoding="utf-8")
    with ModelFile(folder / "q.onnx") as model, ModelFile(folder / "float.onnx") as other:
        review = FileReview(model, other).review([values], cache)
    weight = next(row for row in review.rows if row.role == "weight")
    assert weight.other == "w0"
    assert weight.sqnr is not None
    held = {row.tensor: row for row in review.cache}
    assert held["a"].word == "clipped"
    assert held["x"].word == ""
    assert held["no: such"].text == "the model has no such tensor"


def test_a_file_that_is_no_calibration_cache_is_told(tmp_path: Path) -> None:
    path = tmp_path / "c"
    for text in ("", "hello", "TRT-1\nx: zz\n", "TRT-1\nx\n"):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(BadFile):
            read_cache(path)


def test_rows_are_json(folder: Path) -> None:
    with ModelFile(folder / "q.onnx") as model:
        review = FileReview(model, None).review([], None)
    assert msgspec.json.encode(review.rows)
    assert all(row.word == "" for row in review.rows)


def test_a_run_says_that_kernels_saturate_on_this_cpu(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    weight = random.uniform(0.9, 1, (64, 32)).astype(np.float32)
    body = "g (float[16,64] x) => (float[16,32] y) { [product] y = MatMul(x, w) }"
    model = with_weights(from_text(body, opset=17, ir=8), w=weight)
    feed = {"x": random.uniform(0.9, 1, (16, 64)).astype(np.float32)}
    onnx.save(model, tmp_path / "float.onnx")
    onnx.save(static(model, feed, qdq=True), tmp_path / "q.onnx")
    save_feeds(tmp_path / "in.json", [feed])
    result = compared(tmp_path, "q.onnx").result
    assert result["quantised"]["wrong"] == 0
    assert result["passed"] is not saturates()
    assert ("saturate" in result["conclusion"]) is saturates()
