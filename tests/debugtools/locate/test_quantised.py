"""Quantised models against their float originals: formats explain what they lose, damage is named first."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.aligning import renamed
from support.faults.quantised import Planter
from support.locating import Located, between
from support.models import from_text, with_weights
from support.products import FEED, three_products
from support.quantised import FORMS, dynamic

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.results.inference import IterationResult
from layerwise._tool.debugtools.compare.sides.side import ModelSide
from layerwise._tool.debugtools.locate.quantised import behind_their_causes
from layerwise._tool.debugtools.locate.rows import SuspectRow

CASES = [
    ("qdq", "scale"), ("qoperator", "zero point"), ("dynamic_7", "clipped channel"), ("nbits", "wrong axis"),
    ("modelopt", "scale"),
]  # fmt: skip


@pytest.fixture(scope="module")
def model() -> onnx.ModelProto:
    return three_products()


@pytest.fixture(scope="module")
def quantised(model: onnx.ModelProto) -> Callable[[str], onnx.ModelProto]:
    made: dict[str, onnx.ModelProto] = {}

    def get(form: str) -> onnx.ModelProto:
        if form not in made:
            made[form] = FORMS[form](model, FEED)
        return made[form]

    return get


def rows(found: Located) -> dict[str, dict[str, object]]:
    return {str(row["tensor"]): row for row in found.table("quantised")}


@pytest.mark.parametrize(("form", "kind"), CASES)
def test_a_clean_form_accuses_nobody_and_damage_is_named_first(
    form: str, kind: str, quantised: Callable[[str], onnx.ModelProto], model: onnx.ModelProto, tmp_path: Path
) -> None:
    clean = between(quantised(form), model, tmp_path, FEED)
    assert clean.nodes == []
    assert clean.result["quantised"]["wrong"] == 0
    assert all(row["sqnr"] is None or row["sqnr"] > 15 for row in rows(clean).values())
    damage = next(Planter(quantised(form), 3).plants(kind))
    found = between(damage.model, model, tmp_path, FEED)
    assert found.suspects[0]["node"] in damage.names, damage.detail
    assert found.suspects[0]["diagnosis"] == "quantisation"


def test_codes_read_by_another_scale_than_they_are_made_by_accuse_the_reader(
    quantised: Callable[[str], onnx.ModelProto], model: onnx.ModelProto, tmp_path: Path
) -> None:
    copy = onnx.ModelProto()
    copy.CopyFrom(quantised("qdq"))
    reader = next(node for node in copy.graph.node if node.op_type == "DequantizeLinear" and "x_" in node.input[0])
    scale = next(t for t in copy.graph.initializer if t.name == reader.input[1])
    copy.graph.initializer.append(numpy_helper.from_array(numpy_helper.to_array(scale) * np.float32(2), "other"))
    reader.input[1] = "other"
    found = between(copy, model, tmp_path, FEED)
    assert found.suspects[0]["node"] == reader.name
    assert "but read with" in found.suspects[0]["evidence"]


def test_a_wrong_operator_between_codes_is_no_fault_of_their_format(
    quantised: Callable[[str], onnx.ModelProto], model: onnx.ModelProto, tmp_path: Path
) -> None:
    """No tensor in few bits is accused, the region of the operator is."""
    copy = onnx.ModelProto()
    copy.CopyFrom(quantised("qdq"))
    add = next(node for node in copy.graph.node if node.op_type == "Add")
    add.op_type = "Sub"
    found = between(copy, model, tmp_path, FEED)
    assert found.result["quantised"]["wrong"] == 0
    assert found.suspects[0]["diagnosis"] == "kernel"
    assert "sum" in [node["node"] for node in found.suspects[0]["region"]]


@pytest.mark.parametrize("form", ["qdq", "qoperator"])
@pytest.mark.parametrize("more", ["Exp", "Log"])
def test_a_fault_of_the_float_reference_is_not_put_down_to_codes_behind_it(
    more: str, form: str, quantised: Callable[[str], onnx.ModelProto], model: onnx.ModelProto, tmp_path: Path
) -> None:
    """The codes were made for other values than come of it, NaN among these."""
    wrong = onnx.ModelProto()
    wrong.CopyFrom(model)
    next(node for node in wrong.graph.node if node.name == "second").output[0] = "before"
    wrong.graph.node.insert(3, helper.make_node(more, ["before"], ["c"], "more"))
    found = between(quantised(form), wrong, tmp_path, FEED)
    assert [row["diagnosis"] for row in found.suspects] == ["kernel"]
    assert f"{more} more" in found.suspects[0]["evidence"]


def test_a_scale_is_suspected_behind_what_computes_other_numbers_before_it() -> None:
    scale = SuspectRow(i=5, op="QuantizeLinear", diagnosis="quantisation")
    before, behind = SuspectRow(i=2, diagnosis="kernel"), SuspectRow(i=7, diagnosis="kernel")
    assert behind_their_causes([scale], [behind, before]) == [before, scale, behind]
    weight = SuspectRow(i=1, op="DequantizeLinear", diagnosis="quantisation")
    assert behind_their_causes([scale, weight], [before]) == [scale, weight, before]


def test_of_a_weight_that_is_another_the_readers_in_the_reference_are_told(
    quantised: Callable[[str], onnx.ModelProto], model: onnx.ModelProto, tmp_path: Path
) -> None:
    wrong = onnx.ModelProto()
    wrong.CopyFrom(model)
    weight = wrong.graph.initializer[0]
    weight.CopyFrom(numpy_helper.from_array(-numpy_helper.to_array(weight), weight.name))
    found = between(quantised("qdq"), wrong, tmp_path, FEED)
    reader = next(node.name for node in wrong.graph.node if weight.name in node.input)
    assert [node["node"] for node in found.suspects[0]["reference"]] == [reader]


def test_the_stages_of_a_tensor_are_held_against_it_and_rows_survive_msgspec(
    quantised: Callable[[str], onnx.ModelProto], model: onnx.ModelProto, tmp_path: Path
) -> None:
    from layerwise._tool.debugtools.compare.quantised_row import QuantisedRow

    found = between(quantised("qoperator"), model, tmp_path, FEED)
    paired = {row["tensor"]: row.get("tensor2") for row in found.table()}
    assert paired["d_quantized"] == "d"
    row = msgspec.convert(rows(found)["d_quantized"], QuantisedRow)
    assert (row.role, row.form, row.other) == ("activation", "QOperator", "d")
    assert row.sqnr is not None
    assert row.scale is not None


def test_an_lstm_of_two_directions_has_a_scale_for_each(tmp_path: Path) -> None:
    random = np.random.default_rng(6)
    kind = '<hidden_size = 8, direction = "bidirectional">'
    cells = with_weights(
        from_text(f"g (float[5, 2, 8] x) => (float[5, 2, 2, 8] y) {{ y = LSTM {kind} (x, w, r) }}"),
        **{name: random.normal(0, 0.3, (2, 32, 8)).astype(np.float32) for name in "wr"},
    )
    feed = {"x": random.standard_normal((5, 2, 8)).astype(np.float32)}
    quantised = dynamic(cells, reduce_range=True)
    assert quantised.graph.node[0].op_type == "DynamicQuantizeLSTM"
    found = between(quantised, cells, tmp_path, feed)
    assert found.nodes == [] and found.result["quantised"]["wrong"] == 0


def test_a_clean_float_model_is_not_accused_of_what_a_quantised_reference_rounds(
    quantised: Callable[[str], onnx.ModelProto], model: onnx.ModelProto, tmp_path: Path
) -> None:
    assert between(model, quantised("dynamic_7"), tmp_path, FEED).nodes == []
    wrong = onnx.ModelProto()
    wrong.CopyFrom(model)
    next(node for node in wrong.graph.node if node.op_type == "Add").op_type = "Sub"
    found = between(wrong, quantised("dynamic_7"), tmp_path, FEED)
    assert "sum" in [node["node"] for node in found.suspects[0]["region"]]
    assert "is not the reference's" not in found.suspects[0]["evidence"]


def test_few_numbers_behind_a_rectifier_that_the_quantiser_left_out_accuse_nobody(tmp_path: Path) -> None:
    """As in squeeze-and-excite blocks, under names of the quantised model's own."""
    random = np.random.default_rng(3)
    weights = {"a": (8, 4), "b": (4,), "c": (4, 8), "d": (8,)}
    held = {name: random.standard_normal(shape).astype(np.float32) for name, shape in weights.items()}
    held |= {"a": held["a"] / np.float32(3), "b": held["b"] - np.float32(1)}
    nodes = [
        helper.make_node("Gemm", ["x", "a", "b"], ["g"], "squeeze"),
        helper.make_node("Relu", ["g"], ["h"], "relu"),
        helper.make_node("Gemm", ["h", "c", "d"], ["y"], "excite"),
    ]
    io = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 8]) for name in "xy"]
    initializers = [numpy_helper.from_array(value, name) for name, value in held.items()]
    graph = helper.make_graph(nodes, "g", io[:1], io[1:], initializers)
    block = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    values = {"x": np.random.default_rng(103).standard_normal((1, 8)).astype(np.float32)}
    quantised, new = renamed(FORMS["qdq"](block, values))
    suspect, reference = tmp_path / "suspect", tmp_path / "reference"
    for folder, pair, name in ((suspect, (block, quantised), "x"), (reference, (quantised, block), new["x"])):
        folder.mkdir()
        found = between(*pair, folder, {name: values["x"]})
        assert [(row["node"], row["diagnosis"]) for row in found.suspects] == []


def without_rectifier(weights: dict[str, Array]) -> list[onnx.ModelProto]:
    """A product, a Relu and another product; and the same with codes of scale s2 and zero point z2 for the Relu."""
    last = helper.make_node("MatMul", ["h", "c"], ["y"], "excite")
    own = [
        helper.make_node("MatMul", ["x", "a"], ["g"], "squeeze"),
        helper.make_node("Relu", ["g"], ["h"], "relu"),
        last,
    ]
    coded = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "s", "z"], ["xd"]),
        helper.make_node("MatMul", ["xd", "a"], ["g"]),
        helper.make_node("QuantizeLinear", ["g", "s2", "z2"], ["hq"]),
        helper.make_node("DequantizeLinear", ["hq", "s2", "z2"], ["h"]),
        last,
    ]
    io = [helper.make_tensor_value_info(*value) for value in (("x", 1, [1, 2]), ("y", 1, [1, 8]))]
    initializers = [numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()]
    return [
        helper.make_model(
            helper.make_graph(nodes, "g", io[:1], io[1:], initializers),
            opset_imports=[helper.make_opsetid("", 17)], ir_version=8,
        )
        for nodes in (own, coded)
    ]  # fmt: skip


def test_values_that_moved_beyond_the_ends_of_a_reference_s_codes_accuse_nobody(tmp_path: Path) -> None:
    """The codes of a rectifier's tensor end at the largest value of the float model; rounded inputs go beyond it."""
    weights = {
        "a": np.array([[-1.63, 1.09, 1.5, -1.48], [0.1, 0.04, 0.02, -0.3]], np.float32),
        "c": np.random.default_rng(2).standard_normal((4, 8)).astype(np.float32),
        "s": np.float32(1 / 29.5), "z": np.int8(0), "s2": np.float32(1.5 / 255), "z2": np.int8(-128),
    }  # fmt: skip
    found = between(*without_rectifier(weights), tmp_path, {"x": np.array([[1, 0.02]], np.float32)})
    assert [(row["node"], row["diagnosis"]) for row in found.suspects] == []


@pytest.mark.parametrize("size", [0.01, 0.2])
def test_codes_in_place_of_a_rectifier_that_gives_only_zeros_accuse_nobody(size: float, tmp_path: Path) -> None:
    """Of zeros a quantiser takes the scale 1, with codes below 0 too: small numbers become 0, as the Relu has them."""
    weights = {
        "a": -size * np.array([[1.63, 1.09, 1.5, 1.48], [0.1, 0.04, 0.02, 0.3]], np.float32),
        "c": np.random.default_rng(2).standard_normal((4, 8)).astype(np.float32),
        "s": np.float32(1 / 127), "z": np.int8(0), "s2": np.float32(1), "z2": np.int8(0),
    }  # fmt: skip
    own, coded = without_rectifier(weights)
    feed = {"x": np.array([[1, 0.02]], np.float32)}
    for side, models in (("quantised", (coded, own)), ("float", (own, coded))):
        (tmp_path / side).mkdir()
        found = between(*models, tmp_path / side, feed)
        assert [(row["node"], row["diagnosis"]) for row in found.suspects] == []
    weights["a"] *= np.float32(1 / size)  # not small: what is below 0 goes through
    own, coded = without_rectifier(weights)
    assert between(coded, own, tmp_path, feed).suspects[0]["diagnosis"] in ("quantisation", "kernel")


def skips(seed: int, factor: float = 1.0) -> onnx.ModelProto:
    """Four layers, what each gives summed up in turn; factor: of what the first gives."""
    random = np.random.default_rng(seed)
    layers = []
    weights: dict[str, Array] = {}
    for k in range(4):
        at = "x" if k == 0 else f"r{k - 1}"
        layers.append(f"[layer{k}] a{k} = MatMul({at}, w{k}) b{k} = Tanh(a{k}) [skip{k}] s{k} = MatMul(b{k}, v{k})")
        layers.append(f"r{k} = Add({at}, b{k})")
        weights |= {f"w{k}": random.standard_normal((32, 32)) / 6, f"v{k}": random.standard_normal((32, 32)) / 6}
    sums = (
        "[sum1] t1 = Add(s0, s1) [sum2] t2 = Add(t1, s2) [sum3] t3 = Add(t2, s3) c = Relu(t3) [end] y = MatMul(c, w0)"
    )
    weights["v0"] = weights["v0"] * factor
    model = from_text(f"g (float[16,32] x) => (float[16,32] y) {{ {' '.join(layers)} {sums} }}")
    return with_weights(model, **{name: value.astype(np.float32) for name, value in weights.items()})


@pytest.mark.parametrize("seed", [4, 5])
def test_behind_a_fault_sums_of_much_the_same_distribution_are_told_apart(seed: int, tmp_path: Path) -> None:
    """Quantiles of sums of many terms agree by chance within what few bits may cost."""
    quantised, _ = renamed(dynamic(skips(seed)))
    done = between(skips(seed, -1.5), quantised, tmp_path, FEED)
    accused = [row for row in done.suspects if row["diagnosis"] == "kernel"]
    assert len(accused) == 1 and "skip0" in {node["node"] for node in accused[0]["region"]}


def reordered(*, steps: bool, mixed: bool) -> onnx.ModelProto:
    """Views of a product, then its norm. steps: rounded to eighths before the norm; mixed: in another order."""
    p = "q" if steps else "f"
    before = f"{p}m = Transpose<perm=[3, 1, 2, 0]>({p}t)" if mixed else ""
    after = f"{p}c = QuantizeLinear({p}v, scale, zero)  {p}d = DequantizeLinear({p}c, scale, zero)" if steps else ""
    text = f"""g (float[4, 16] x) => (float[2, 4, 32] y) {{
        {p}0 = MatMul(x, w)  {p}1 = Tanh({p}0)  {p}r = Reshape({p}1, heads)  {p}t = Transpose<perm=[1, 0, 2, 3]>({p}r)
        {before}  {p}s = Reshape({p}{"m" if mixed else "t"}, flat)  {p}v = Transpose<perm=[1, 0, 2]>({p}s)
        {after}  {p}n = LayerNormalization({p}{"d" if steps else "v"}, g, b)  {p}z = MatMul({p}n, k)  y = Tanh({p}z)
    }}"""
    random = np.random.default_rng(0)
    held = {name: random.standard_normal(shape).astype(np.float32) / 4 for name, shape in
            {"w": (16, 64), "g": (32,), "b": (32,), "k": (32, 32)}.items()}  # fmt: skip
    held |= {"heads": np.array([4, 2, 2, 16]), "flat": np.array([4, 2, 32])}
    held |= {"scale": np.float32(1 / 64), "zero": np.int8(0)} if steps else {}
    return with_weights(from_text(text.replace("  ", "\n"), opset=17), **held)


def test_what_is_taken_back_has_the_counterpart_of_what_was_quantised(tmp_path: Path) -> None:
    """And not a view of it that has the right order only because of what is wrong there."""
    feed = {"x": np.random.default_rng(1).standard_normal((4, 16)).astype(np.float32)}
    found = between(reordered(steps=True, mixed=False), reordered(steps=False, mixed=True), tmp_path, feed)
    assert found.suspects[0]["tensor"] == "qs", found.nodes


@pytest.mark.parametrize("form", ["qdq", "qdq_s8s8", "qdq_u8u8"])
def test_codes_of_the_executed_graph_are_seen_as_the_values_that_they_stand_for(
    form: str, quantised: Callable[[str], onnx.ModelProto], model: onnx.ModelProto, tmp_path: Path
) -> None:
    found = between(quantised(form), model, tmp_path, FEED, observe="executed")
    for row in found.suspects:
        assert row["diagnosis"] == "saturation", row["evidence"]  # as it does on some CPUs
    looked_at = [row for row in found.table() if row["op"] == "QuantizeLinear"]
    assert all(row["dtype"] == ["float32", "float32"] for row in looked_at)
    assert form == "qdq_s8s8" or looked_at  # onnxruntime has no kernel for two int8, and makes them uint8 on some CPUs


def test_what_fusing_loses_is_said(
    quantised: Callable[[str], onnx.ModelProto], model: onnx.ModelProto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suspect = quantised("qdq_u8u8")  # whose kernels saturate on no CPU
    clean = between(suspect, model, tmp_path, FEED)
    assert clean.result["passed"] and "fused" not in clean.result["conclusion"]
    plain = ModelSide.plain

    def fused_wrongly(side: ModelSide, iteration: int, feed: dict[str, Array]) -> IterationResult:
        result = plain(side, iteration, feed)
        return result if side.index else IterationResult({"y": result.outputs["y"] * np.float32(1.5)}, 0.0, side.name)

    monkeypatch.setattr(ModelSide, "plain", fused_wrongly)
    found = between(suspect, model, tmp_path, FEED)
    assert found.nodes == [] and not found.result["passed"]
    assert "`debug locate --observe executed` looks there" in found.result["conclusion"]


def test_a_plain_run_that_fails_leaves_what_was_found(
    quantised: Callable[[str], onnx.ModelProto], model: onnx.ModelProto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(side: ModelSide, iteration: int, feed: dict[str, Array]) -> IterationResult:
        raise LayerwiseError("no such kernel")

    monkeypatch.setattr(ModelSide, "plain", refuse)
    found = between(quantised("qdq"), model, tmp_path, FEED)
    assert found.nodes == [] and found.result["passed"] and found.result["quantised"]["wrong"] == 0
