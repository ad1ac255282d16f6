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
from support.quantised import FORMS

from layerwise._tool.backends.processor import integers_overflow

WIDTH = 32
CASES = [
    ("qdq", "scale"), ("qoperator", "zero point"), ("dynamic", "clipped channel"), ("nbits", "wrong axis"),
    ("modelopt", "scale"),
]  # fmt: skip


@pytest.fixture(scope="module")
def feed() -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(1).standard_normal((16, WIDTH)).astype(np.float32)}


@pytest.fixture(scope="module")
def model() -> onnx.ModelProto:
    """Three square products, a rectifier and a residual sum."""
    random = np.random.default_rng(0)
    weights = [
        numpy_helper.from_array((random.standard_normal((WIDTH, WIDTH)) / 6).astype(np.float32), f"w{i}")
        for i in range(3)
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "w0"], ["a"], "first"),
        helper.make_node("Relu", ["a"], ["b"], "relu"),
        helper.make_node("MatMul", ["b", "w1"], ["c"], "second"),
        helper.make_node("Add", ["c", "b"], ["d"], "sum"),
        helper.make_node("MatMul", ["d", "w2"], ["y"], "third"),
    ]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [16, WIDTH]) for name in "xy"]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture(scope="module")
def quantised(model: onnx.ModelProto, feed: dict[str, np.ndarray]) -> Callable[[str], onnx.ModelProto]:
    made: dict[str, onnx.ModelProto] = {}

    def get(form: str) -> onnx.ModelProto:
        if form not in made:
            made[form] = FORMS[form](model, feed)
        return made[form]

    return get


def rows(found: Located) -> dict[str, dict[str, object]]:
    return {str(row["tensor"]): row for row in found.table("quantised")}


@pytest.mark.parametrize(("form", "kind"), CASES)
def test_a_clean_form_accuses_nobody_and_damage_is_named_first(
    form: str, kind: str, quantised: Callable[[str], onnx.ModelProto], model: onnx.ModelProto,
    feed: dict[str, np.ndarray], tmp_path: Path,
) -> None:  # fmt: skip
    clean = between(quantised(form), model, tmp_path, feed)
    assert clean.nodes == []
    assert clean.result["quantised"]["wrong"] == 0
    assert all(row["sqnr"] is None or row["sqnr"] > 15 for row in rows(clean).values())
    damage = next(Planter(quantised(form), 3).plants(kind))
    found = between(damage.model, model, tmp_path, feed)
    assert found.suspects[0]["node"] in damage.names, damage.detail
    assert found.suspects[0]["diagnosis"] == "quantisation"


def test_codes_read_by_another_scale_than_they_are_made_by_accuse_the_reader(
    quantised: Callable[[str], onnx.ModelProto], model: onnx.ModelProto, feed: dict[str, np.ndarray], tmp_path: Path
) -> None:
    copy = onnx.ModelProto()
    copy.CopyFrom(quantised("qdq"))
    reader = next(node for node in copy.graph.node if node.op_type == "DequantizeLinear" and "x_" in node.input[0])
    scale = next(t for t in copy.graph.initializer if t.name == reader.input[1])
    copy.graph.initializer.append(numpy_helper.from_array(numpy_helper.to_array(scale) * np.float32(2), "other"))
    reader.input[1] = "other"
    found = between(copy, model, tmp_path, feed)
    assert found.suspects[0]["node"] == reader.name
    assert "but read with" in found.suspects[0]["evidence"]


def test_a_wrong_operator_between_codes_is_no_fault_of_their_format(
    quantised: Callable[[str], onnx.ModelProto], model: onnx.ModelProto, feed: dict[str, np.ndarray], tmp_path: Path
) -> None:
    """No tensor in few bits is accused, the region of the operator is."""
    copy = onnx.ModelProto()
    copy.CopyFrom(quantised("qdq"))
    add = next(node for node in copy.graph.node if node.op_type == "Add")
    add.op_type = "Sub"
    found = between(copy, model, tmp_path, feed)
    assert found.result["quantised"]["wrong"] == 0
    assert found.suspects[0]["diagnosis"] == "kernel"
    assert "sum" in [node["node"] for node in found.suspects[0]["region"]]


def test_the_stages_of_a_tensor_are_held_against_it_and_rows_survive_msgspec(
    quantised: Callable[[str], onnx.ModelProto], model: onnx.ModelProto, feed: dict[str, np.ndarray], tmp_path: Path
) -> None:
    from layerwise._tool.debugtools.compare.quantised_row import QuantisedRow

    found = between(quantised("qoperator"), model, tmp_path, feed)
    paired = {row["tensor"]: row.get("tensor2") for row in found.table()}
    assert paired["d_quantized"] == "d"
    row = msgspec.convert(rows(found)["d_quantized"], QuantisedRow)
    assert (row.role, row.form, row.other) == ("activation", "QOperator", "d")
    assert row.sqnr is not None
    assert row.scale is not None


def test_a_clean_float_model_is_not_accused_of_what_a_quantised_reference_rounds(
    quantised: Callable[[str], onnx.ModelProto], model: onnx.ModelProto, feed: dict[str, np.ndarray], tmp_path: Path
) -> None:
    assert between(model, quantised("dynamic_u8"), tmp_path, feed).nodes == []
    wrong = onnx.ModelProto()
    wrong.CopyFrom(model)
    next(node for node in wrong.graph.node if node.op_type == "Add").op_type = "Sub"
    found = between(wrong, quantised("dynamic_u8"), tmp_path, feed)
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


def test_integers_that_overflow_on_this_processor_are_told_as_that(tmp_path: Path) -> None:
    """Sums of the largest codes: right with VNNI, and elsewhere the kernel's fault, not the format's."""
    random = np.random.default_rng(0)
    weight = numpy_helper.from_array(random.uniform(0.9, 1, (64, 32)).astype(np.float32), "w")
    values = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [16, size]) for name, size in (("x", 64), ("y", 32))
    ]
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"], "product")], "g", values[:1], values[1:],
                              [weight])  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    feed = {"x": random.uniform(0.9, 1, (16, 64)).astype(np.float32)}
    found = between(FORMS["dynamic"](model, feed), model, tmp_path, feed)
    assert found.result["quantised"]["wrong"] == 0
    assert [("overflow" in row["evidence"]) for row in found.suspects] == [True] * integers_overflow()


def test_overflow_is_a_matter_of_the_processor(tmp_path: Path) -> None:
    source = tmp_path / "cpuinfo"
    for flags, overflow in (
        ("fma avx2", True),
        ("avx2 avx512_vnni", False),
        ("avx2 avx_vnni", False),
        ("asimd", False),
    ):
        source.write_text(f"flags\t\t: {flags}\n")
        assert integers_overflow(source) is overflow
