"""The truth of every layer: clean conversions are acceptable, faults of 10 ulp are not, what has none is said."""

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from support.comparing import OFF, ORT, Compared, run_compare
from support.locating import between
from support.models import conv_net, from_text, mlp, with_weights

from layerwise._tool.backends.feeds.writer import save_feeds
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.specs import FeedSpec, RunnerSpec
from layerwise._tool.debugtools.compare.rows import LayerRow
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.debugtools.compare.truth.deviation import Unit, deviation
from layerwise._tool.surgery.precision.conversion import in_half

TEN_ULP = 20 * 2.0**-24
Array = np.ndarray[Any, Any]


def compared(
    folder: Path, suspect: onnx.ModelProto | Path, good: onnx.ModelProto, sides: RunnerSpec = OFF, **more: Any
) -> Compared:
    """The suspect, not optimised or as `sides` says, against another model, with the truth of every layer."""
    (folder / "good.onnx").write_bytes(good.SerializeToString())
    path = suspect if isinstance(suspect, Path) else folder / "suspect.onnx"
    if not isinstance(suspect, Path):
        path.write_bytes(suspect.SerializeToString())
    reference = msgspec.structs.replace(sides, model=str(folder / "good.onnx"))
    return run_compare(CompareSpec(model=str(path), runners=[sides, reference], truth=True, **more))


def times(done: Compared, side: str = "suspect") -> dict[str, float | None]:
    """By tensor: how many times what rounding explains a side is off."""
    return {row["tensor"]: row["truth"][side] for row in done.table()}


def scaled(model: onnx.ModelProto, tensor: str, factor: float) -> onnx.ModelProto:
    """The model with one tensor multiplied."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    (place,) = [i for i, node in enumerate(made.graph.node) if tensor in node.output]
    output = made.graph.node[place].output
    output[list(output).index(tensor)] = f"{tensor}_before"
    made.graph.initializer.append(numpy_helper.from_array(np.float32(factor), "factor"))
    made.graph.node.insert(place + 1, helper.make_node("Mul", [f"{tensor}_before", "factor"], [tensor], name="planted"))
    return made


@pytest.mark.parametrize("make", [conv_net, mlp])
def test_optimising_is_acceptable(tmp_path: Path, make: Callable[[], onnx.ModelProto]) -> None:
    (tmp_path / "m.onnx").write_bytes(make().SerializeToString())
    done = run_compare(CompareSpec(model=str(tmp_path / "m.onnx"), runners=[ORT, OFF], truth=True))
    found = done.result["truth"]
    assert found["acceptable"] and found["without"] == 0 and found["layers"] == len(done.table()) > 2
    assert found["worst"] < 2 and found["reference"] < 2
    text = rf"Acceptable: no layer is off by more than {found['worst']:.2g} times what FP32 rounding explains\b"
    assert re.match(text, found["text"])


def test_a_conversion_to_fp16_is_counted_in_fp16s_rounding(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(conv_net().SerializeToString())
    half = in_half(ModelFile(str(tmp_path / "m.onnx")), tmp_path)
    done = compared(tmp_path, half, conv_net())
    assert {row["truth"]["kind"] for row in done.table()} == {"float16"}
    assert 0.01 < done.result["truth"]["worst"] < 2 and "FP16 rounding" in done.result["truth"]["text"]
    accumulated = [row["truth"]["accumulated"] for row in done.table()]
    assert all(0 < each < 2 for each in accumulated)


def test_an_acceptable_model_of_two_types_is_told_by_both(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(conv_net().SerializeToString())
    half = in_half(ModelFile(str(tmp_path / "m.onnx")), tmp_path)
    done = compared(tmp_path, conv_net(), onnx.load(half))
    kinds = Counter(row["truth"]["kind"] for row in done.table() if row["truth"]["kind"])
    told = done.result["truth"]["text"]
    assert len(kinds) == 2, kinds
    assert f"{kinds['float16']} in FP16" in told and f"{kinds['float32']} in FP32" in told


def means(count: int) -> onnx.ModelProto:
    """So many means of sixteen numbers of either sign, each a tensor of one element."""
    values = np.random.default_rng(0).standard_normal((count, 16)).astype(np.float32)
    lines, weights = [], {"one": np.float32(1.1)}
    for i, row in enumerate(values):
        lines.append(f"t{i} = Mul(x, w{i})  s{i} = Mul(t{i}, one)  m{i} = ReduceMean<axes=[1]>(s{i})")
        weights[f"w{i}"] = row
    ends = ", ".join(f"float[1, 1] m{i}" for i in range(count))
    text = f"g (float[1, 16] x) => ({ends}) {{ {'  '.join(lines)} }}"
    return with_weights(from_text(text.replace("  ", "\n"), opset=13), **weights)


def test_what_cancels_to_one_element_is_acceptable_in_fp16(tmp_path: Path) -> None:
    """Moving the inputs once moves a single number by much or by nothing, as it happens."""
    (tmp_path / "m.onnx").write_bytes(means(48).SerializeToString())
    half = in_half(ModelFile(str(tmp_path / "m.onnx")), tmp_path)
    feed = {"x": np.random.default_rng(1).standard_normal((1, 16)).astype(np.float32)}
    save_feeds(tmp_path / "in.safetensors", [feed])
    done = compared(tmp_path, half, means(48), feeds=FeedSpec(files=[str(tmp_path / "in.safetensors")]), sides=ORT)
    assert done.result["truth"]["worst"] < 2, done.result["truth"]["text"]


@pytest.mark.parametrize("tensor", ["c1", "s", "scores"])
def test_ten_ulp_in_one_layer_are_too_many_and_that_layer_is_the_first(tmp_path: Path, tensor: str) -> None:
    done = compared(tmp_path, scaled(conv_net(), tensor, 1 + TEN_ULP), conv_net())
    found = done.result["truth"]
    assert not found["acceptable"] and found["first"]["tensor"] == tensor
    off = times(done)
    assert 4 < off[tensor] < 40 and all(value < 4 for name, value in off.items() if name != tensor)
    assert f"is off by {off[tensor]:.2g} times what FP32 rounding explains, on its own inputs" in found["text"]


@pytest.mark.parametrize("terms", [192, 768])
def test_weights_that_are_each_off_by_ten_ulp_either_way_are_found_among_many_terms(tmp_path: Path, terms: int) -> None:
    rng = np.random.default_rng(1)
    good = rng.standard_normal((terms, 16)).astype(np.float32)
    off = (good * (1 + TEN_ULP * rng.choice([-1.0, 1.0], good.shape))).astype(np.float32)
    text = f"m (float[64, {terms}] x) => (float[64, 16] y) {{ h = Tanh(x)  y = MatMul(h, w) }}"
    made = [with_weights(from_text(text), w=weight) for weight in (off, good)]
    done = compared(tmp_path, *made)
    assert done.result["truth"]["first"]["tensor"] == "y" and times(done)["y"] > 4
    assert compared(tmp_path, made[1], made[1]).result["truth"]["worst"] < 2


def test_scaled_weights_are_found_by_locating_too(tmp_path: Path) -> None:
    bad = conv_net()
    for tensor in bad.graph.initializer:
        if tensor.name == "w1":
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) * np.float32(1 + TEN_ULP), "w1"))
    done = between(bad, conv_net(), tmp_path, truth=True)
    assert done.result["truth"]["first"]["tensor"] == "c1" and not done.result["truth"]["acceptable"]
    assert done.row("c1")["truth"]["suspect"] > 4 > done.row("c1")["truth"]["reference"]
    assert [suspect["truth"]["suspect"] for suspect in done.suspects if suspect["tensor"] == "c1"]


def test_layers_that_only_make_errors_larger_are_acceptable_and_it_is_said(tmp_path: Path) -> None:
    """The suspect's weights are rounded otherwise, by one unit in the last place; the exponential makes that large."""

    def net(weight: float) -> onnx.ModelProto:
        model = from_text("""agraph (float[8,8] x) => (float[8,8] y) <float[8,8] w, float k> {
            h = MatMul(x, w)
            s = Mul(h, k)
            y = Exp(s)
        }""")
        return with_weights(model, w=np.eye(8, dtype=np.float32) * np.float32(weight), k=np.float32(80))

    found = compared(tmp_path, net(1 + 2.0**-23), net(1)).result["truth"]
    assert found["acceptable"] and found["worst"] < 4
    assert "yet the sides' difference grows to" in found["text"] and "at #2 Exp" in found["text"]


def test_each_side_answers_for_its_own_inputs(tmp_path: Path) -> None:
    done = compared(tmp_path, scaled(conv_net(), "c0", 1.5), conv_net())
    off = times(done)
    assert off["c0"] > 1000 and max(value for name, value in off.items() if name != "c0") < 2


def test_what_has_no_truth_is_said_and_counted(tmp_path: Path) -> None:
    model = with_weights(
        from_text("""agraph (float[4,4] x) => (float[4,4] y) <float[4,4] w> {
            h = Relu(x)
            y = com.microsoft.FusedMatMul(h, w)
        }"""),
        w=np.eye(4, dtype=np.float32),
    )
    model.opset_import.add(domain="com.microsoft", version=1)
    done = compared(tmp_path, model, model)
    truth = {row["tensor"]: row["truth"] for row in done.table()}
    assert truth["h"]["suspect"] == 0 and truth["y"]["suspect"] is None
    assert "FusedMatMul cannot be evaluated in FP64" in truth["y"]["why"]
    assert "no truth for 1 of 2 tensors" in done.result["truth"]["text"]


def test_saved_outputs_have_no_graph(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(mlp().SerializeToString())
    golden = str(tmp_path / "golden.json")
    run_compare(CompareSpec(model=str(tmp_path / "m.onnx"), runners=[OFF], save_outputs=golden, observe="every"))
    saved = RunnerSpec(kind="saved", results=golden)
    reference = run_compare(CompareSpec(model=str(tmp_path / "m.onnx"), runners=[OFF, saved], truth=True))
    assert reference.result["truth"]["acceptable"] is None
    assert reference.result["truth"]["text"].startswith("No verdict: no layer has a truth")
    suspect = run_compare(CompareSpec(model=str(tmp_path / "m.onnx"), runners=[saved, OFF], truth=True))
    assert suspect.result["truth"]["acceptable"] and suspect.result["truth"]["without"] == 0


def test_quantising_is_part_of_the_truth(tmp_path: Path) -> None:
    model = with_weights(
        from_text("""agraph (float[16,16] x) => (float[16,16] y) <float s, uint8 z> {
            q = QuantizeLinear(x, s, z)
            d = DequantizeLinear(q, s, z)
            y = Sqrt(d)
        }"""),
        s=np.float32(0.01),
        z=np.uint8(3),
    )
    done = compared(tmp_path, model, model)
    assert set(times(done)) == {"q", "d", "y"} and done.result["truth"]["worst"] < 2
    bad = onnx.ModelProto()
    bad.CopyFrom(model)
    bad.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.float32(0.011), "s"))
    assert compared(tmp_path, bad, model).result["truth"]["first"]["tensor"] == "q"


def test_masks_do_not_count_and_values_that_should_be_finite_do() -> None:
    truth = np.array([1.0, -3.4e38, 2.0, -np.inf, np.nan])
    half = np.array([1.0, -65504, 2.001, -np.inf, np.nan], np.float16)
    found = deviation(half, truth, "float16")
    assert found.size == 2 and not found.broken and found.times(Unit("float16")) < 4
    assert deviation(np.array([np.inf, 1], np.float16), np.array([70000.0, 1.0]), "float16").broken == 1
    assert deviation(np.array([np.nan, 1], np.float32), np.array([0.5, 1.0]), "float32").broken == 1


def test_numbers_too_small_for_the_type_are_explained_by_it() -> None:
    truth = np.array([3.0e-8, -5.0e-8, 4.4e-8])
    assert deviation(truth.astype(np.float16), truth, "float16").times(Unit("float16")) < 1


def test_a_row_of_an_earlier_version_has_no_truth() -> None:
    row = msgspec.convert({"tensor": "t"}, LayerRow)
    assert row.truth is msgspec.UNSET and row.times is None


@pytest.mark.parametrize(
    ("mask", "value", "acceptable"), [(-1e4, 1.0, True), (-65504.0, 1.0, True), (-1e4, 1.03, False)]
)
def test_a_mask_that_fp16_has_nearer_is_left_out(mask: float, value: float, acceptable: bool) -> None:
    truth = np.where(np.tri(8) > 0, np.linspace(-2, 2, 64).reshape(8, 8), -1e9)
    found = np.where(np.tri(8) > 0, truth * value, mask).astype(np.float16)
    assert (deviation(found, truth, "float16").times(Unit("float16")) < 4) is acceptable


def test_what_overflows_is_said_to(tmp_path: Path) -> None:
    good = from_text("g (float[4,4] x) => (float[4,4] y) { h = Exp(x)  y = Log(h) }", opset=17)
    (tmp_path / "m.onnx").write_bytes(good.SerializeToString())
    np.savez(tmp_path / "x.npz", x=np.full((4, 4), 14, np.float32))
    feeds = FeedSpec(files=[str(tmp_path / "x.npz")])
    done = compared(tmp_path, in_half(ModelFile(str(tmp_path / "m.onnx")), tmp_path), good, feeds=feeds)
    assert "Exp" in done.result["truth"]["text"] and "FP16 does not reach that far" in done.result["truth"]["text"]
    assert "overflows" in done.result["conclusion"]


def test_a_fault_is_said_to_begin_where_it_does_with_the_truth_too(tmp_path: Path) -> None:
    done = compared(tmp_path, scaled(mlp(), "m1", 1.01), mlp())
    assert done.result["truth"]["first"]["tensor"] == done.result["first_bad"]["tensor"] == "m1"
    assert "its inputs agree, so the fault is there" in done.result["conclusion"]
