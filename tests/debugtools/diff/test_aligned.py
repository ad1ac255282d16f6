"""Two exports of one network compared: what really differs, and what is only written in another way."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from support.aligning import encoder, renamed
from support.models import from_text
from support.two_exports import first, second

from layerwise._tool.backends.errors import BadFile, UsageError
from layerwise._tool.debugtools.align.alignment import AlignedPair, Alignment
from layerwise._tool.debugtools.align.file import save_map
from layerwise._tool.debugtools.diff.models import diff_models
from layerwise._tool.debugtools.diff.outcome import DiffOutcome
from layerwise._tool.debugtools.diff.spec import DiffSpec


def compared(folder: Path, a: onnx.ModelProto, b: onnx.ModelProto, **fields: Any) -> DiffOutcome:
    for name, model in (("a", a), ("b", b)):
        onnx.save(model, folder / f"{name}.onnx")
    return diff_models(DiffSpec(a=str(folder / "a.onnx"), b=str(folder / "b.onnx"), **fields))


def found(outcome: DiffOutcome, key: str) -> list[dict[str, Any]]:
    return [item.fields for section in outcome.sections if section.key == key for item in section.items]


def test_what_another_exporter_writes_in_other_nodes_is_a_region(tmp_path: Path) -> None:
    outcome = compared(tmp_path, first(), second())
    regions = {item["node"]: (item["a"], item["b"][-1], item["other"]) for item in found(outcome, "regions")}
    assert regions == {
        "/fc/Add": (["MatMul", "Add"], "Gemm", "2"),
        "/norm": (["LayerNormalization"], "Add", "12"),
        "/out/Add": (["MatMul", "Add"], "Reshape", "result"),
    }
    assert found(outcome, "nodes_only_a") == found(outcome, "nodes_only_b") == []
    assert [item["a"] for item in found(outcome, "weights_relaid")] == ["fc.w"]
    assert found(outcome, "weights_changed") == []
    assert not outcome.equal


def test_names_alone_find_none(tmp_path: Path) -> None:
    outcome = compared(tmp_path, first(), second(), align="names")
    assert found(outcome, "regions") == []
    assert len(found(outcome, "nodes_only_a")) > 5


def test_a_weight_that_differs_is_measured_in_the_layout_of_the_first(tmp_path: Path) -> None:
    other = second()
    (weight,) = (tensor for tensor in other.graph.initializer if tensor.name == "W.1")
    values = numpy_helper.to_array(weight).copy()
    values[3, 5] += 0.25
    weight.CopyFrom(numpy_helper.from_array(values, "W.1"))
    outcome = compared(tmp_path, first(), other)
    (changed,) = found(outcome, "weights_changed")
    assert (changed["name"], changed["other"], changed["over"]) == ("fc.w", "W.1", 1)
    assert changed["max_abs"] == pytest.approx(0.25, rel=1e-6)


def test_an_attribute_that_differs_in_a_deep_encoder_of_other_names(tmp_path: Path) -> None:
    model = encoder(parts=False, layers=3)
    other, new = renamed(model)
    norms = [node for node in other.graph.node if node.op_type == "LayerNormalization"]
    norms[4].attribute[0].f = 0.1
    softmax = next(node for node in other.graph.node if node.op_type == "Softmax")
    softmax.op_type = "LogSoftmax"
    outcome = compared(tmp_path, model, other)
    changed = {item["other"]: item["changes"] for item in found(outcome, "nodes_changed")}
    assert changed.keys() == {norms[4].output[0], softmax.output[0]}
    assert changed[softmax.output[0]] == ["operator: Softmax → LogSoftmax"]
    assert all(new[item["node"]] == item["other"] for item in found(outcome, "nodes_changed"))
    assert not found(outcome, "nodes_only_a") and not found(outcome, "nodes_only_b")


def test_weights_of_equal_content_do_not_mislead(tmp_path: Path) -> None:
    """As initialised: every bias is zero, every scale one."""
    plain = encoder(parts=False, layers=3)
    for tensor in plain.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if array.ndim == 1 and array.dtype == np.float32:
            tensor.CopyFrom(numpy_helper.from_array(np.zeros_like(array), tensor.name))
    other, new = renamed(plain)
    outcome = compared(tmp_path, plain, other)
    assert outcome.equal or not [
        s.key for s in outcome.sections if s.items and s.key.startswith("nodes_") and not s.cosmetic
    ]
    for pair in found(outcome, "nodes_renamed"):
        assert new[pair["a"]] == pair["b"]


def test_a_map_decides_and_says_how_far_values_are_apart(tmp_path: Path) -> None:
    path = tmp_path / "map.json"
    pairs = [AlignedPair("fc_b", "2", "certain", ("hand",), None, 3e-7)]
    save_map(path, Alignment(pairs))
    outcome = compared(tmp_path, first(), second(), align=str(path))
    (region,) = (item for item in found(outcome, "regions") if item["node"] == "/fc/Add")
    assert "values in the map: 3e-07 apart" in region["lines"]
    save_map(path, Alignment([AlignedPair("fc_b", "gone", "certain", ("hand",))]))
    with pytest.raises(UsageError, match="second side has no tensor 'gone'"):
        compared(tmp_path, first(), second(), align=str(path))
    path.write_text("{}")
    with pytest.raises(BadFile):
        compared(tmp_path, first(), second(), align=str(path))


def test_constants_and_defaults_may_be_written_out(tmp_path: Path) -> None:
    """A shape as an initializer or as a Constant, an axis given or left out, one bias or two of equal values."""
    value = numpy_helper.from_array
    bias = np.full(16, 0.5, np.float32)

    def model(*, spelled: bool) -> onnx.ModelProto:
        make, shape = onnx.helper.make_node, np.array([4, -1])
        more = {"axis": -1} if spelled else {}
        nodes = [
            *([] if spelled else [make("Constant", [], ["s"], value=value(shape))]),
            make("Add", ["x", "b"], ["1"]), make("Relu", ["1"], ["2"]),
            make("Add", ["2", "b" if spelled else "again"], ["3"]), make("Softmax", ["3"], ["4"], **more),
            make("Reshape", ["4", "s"], ["y"], **({"allowzero": 0} if spelled else {})),
        ]  # fmt: skip
        own = [value(bias, "b"), *([value(shape, "s")] if spelled else [value(bias, "again")])]
        infos = [
            onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, dims)
            for name, dims in (("x", [2, 16]), ("y", [4, 8]))
        ]
        graph = onnx.helper.make_graph(nodes, "g", infos[:1], infos[1:], own)
        return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)

    outcome = compared(tmp_path, model(spelled=True), model(spelled=False))
    assert [s.key for s in outcome.sections if s.items and not s.cosmetic] == ["operators"]
    assert found(outcome, "operators") == [{"op": "Constant", "a": 0, "b": 1}]


def test_a_weight_of_one_name_that_another_exporter_turned_has_the_same_values(tmp_path: Path) -> None:
    kernel = np.random.default_rng(0).standard_normal((3, 5)).astype(np.float32)
    models = []
    for turned in (False, True):
        model = from_text(
            f"""g (float[2, 3] x) => (float[2, 5] y) {{ [dense] y = Gemm <transB = {int(turned)}> (x, kernel) }}"""
        )
        weight = numpy_helper.from_array(kernel.T.copy() if turned else kernel, "kernel")
        model.graph.initializer.append(weight)
        models.append(model)
    outcome = compared(tmp_path, *models)
    assert [item["permutation"] for item in found(outcome, "weights_relaid")] == [(1, 0)]
    assert found(outcome, "weights_changed") == []
