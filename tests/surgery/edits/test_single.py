"""Single edits: their effects, and their errors."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.cli import run_script
from support.edit_models import described, edit, opened, varied_model
from support.views import graph_at

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.surgery.edits import Edit, EditError, edit_from, edits_from_json
from layerwise._tool.surgery.history.soundness import edit_problems
from layerwise._tool.surgery.history.tree import History
from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.saving.model import save
from layerwise._tool.surgery.types.incremental import settled


@pytest.fixture
def model(tmp_path: Path) -> Structure:
    return opened(varied_model(tmp_path / "varied.onnx"))


def outputs(structure: Structure, folder: Path) -> dict[str, np.ndarray[Any, Any]]:
    save(structure, folder / "run.onnx", overwrite=True)
    session = onnxruntime.InferenceSession(folder / "run.onnx", providers=["CPUExecutionProvider"])
    feed = {"x": np.linspace(-1, 1, 48, dtype=np.float32).reshape(3, 16), "flag": np.array(True)}
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, {i.name: feed[i.name] for i in session.get_inputs()}), strict=True))


def test_graph_outputs_keep_their_names_when_their_node_is_deleted(model: Structure, tmp_path: Path) -> None:
    made = edit("delete-node", nodes=["leaky"]).apply(model)
    assert made.output_names == ["y", "z"]
    assert made.lookups.makers["z"].op_type == "Twice"
    assert not edit_problems(model, made)
    before, after = outputs(model, tmp_path), outputs(settled(model, made), tmp_path)
    np.testing.assert_array_equal(np.where(after["z"] < 0, after["z"] * np.float32(0.25), after["z"]), before["z"])


def test_deleting_drops_the_weights_that_nothing_else_reads(model: Structure) -> None:
    made = edit("delete-node", nodes=["add"]).apply(model)
    assert "b" not in made.initializers
    assert "b" in model.initializers


def test_reconnection_can_be_specified(model: Structure) -> None:
    made = edit("delete-node", nodes=["last"], reconnect={"y": "s2"}).apply(model)
    assert made.lookups.makers["y"].name == "sigmoid2"
    with pytest.raises(EditError, match="does not read 'cube'"):
        edit("delete-node", nodes=["last"], reconnect={"y": "cube"}).apply(model)


def test_several_nodes_in_a_row_are_deleted_at_once(model: Structure) -> None:
    made = edit("delete-node", nodes=["relu", "reshape", "twice"]).apply(model)
    assert list(made.node("leaky").input) == ["sum"]
    assert list(made.node("shape").input) == ["sum"]


def test_captures_of_bodies_are_reconnected_too(model: Structure) -> None:
    made = edit("delete-node", nodes=["add"]).apply(model)
    assert list(graph_at(made, ("if", "then_branch")).node("then_relu").input) == ["product"]
    assert not edit_problems(model, made)


def test_bodies_and_functions_are_edited_in_place(model: Structure, tmp_path: Path) -> None:
    made = edit("set-op", nodes=["then_relu"], op="Abs", scope=["if", "then_branch"]).apply(model)
    made = edit("insert-node", tensor="d", op="Mul", operands=[{"values": 3.0}], scope=["function", "my:Twice"]).apply(
        made
    )
    assert [node.op_type for node in graph_at(made, ("function", "my:Twice")).nodes] == [
        "Constant",
        "Add",
        "Mul",
        "Identity",
    ]
    assert not edit_problems(model, made)
    np.testing.assert_allclose(outputs(made, tmp_path)["z"], outputs(model, tmp_path)["z"] * 3, rtol=1e-6)


def test_bypassing_reaches_bodies(model: Structure) -> None:
    made = edit("bypass", ops=["Relu"]).apply(model)
    assert [node.op_type for node in graph_at(made, ("if", "then_branch")).nodes] == ["Mul"]
    assert "relu" not in made.lookups.by_name


def test_inserting_for_one_reader_does_not_affect_others(model: Structure) -> None:
    made = edit("insert-node", tensor="r1", op="Neg", readers=["reshape"]).apply(model)
    assert list(made.node("shape").input) == ["r1"]
    assert made.node(made.node("reshape").input[0]).op_type == "Neg"


def test_nodes_with_equal_names_are_distinguished(tmp_path: Path) -> None:
    names = [("", "x", "a"), ("same", "a", "b"), ("same", "b", "c"), ("a", "c", "d"), ("b", "d", "y")]
    nodes = [helper.make_node("Neg", [read], [made], name) for name, read, made in names]
    ends = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, [2])] for name in ("x", "y")]
    model = helper.make_model(helper.make_graph(nodes, "g", *ends), opset_imports=[helper.make_opsetid("", 17)])
    onnx.save(model, tmp_path / "m.onnx")
    structure = opened(tmp_path / "m.onnx")
    labels = [structure.label(node) for node in structure.nodes]
    assert labels == ["output:a", "output:b", "c", "a", "b"]
    assert all(structure.node(label) is node for label, node in zip(labels, structure.nodes, strict=True))
    history = History.open(structure, tmp_path)
    for label in labels:
        history.do(edit("set-op", nodes=[label], op="Abs"))
    assert [node.op_type for node in history.structure.nodes] == ["Abs"] * 5
    history.export_script(tmp_path / "edits.py")
    assert run_script(tmp_path / "edits.py", tmp_path / "m.onnx", tmp_path / "new.onnx").returncode == 0
    assert [node.op_type for node in onnx.load(tmp_path / "new.onnx").graph.node] == ["Abs"] * 5
    with pytest.raises(EditError, match="2 nodes are named 'same'"):
        edit("set-op", nodes=["same"], op="Abs").apply(structure)


def test_a_new_domain_is_imported(model: Structure) -> None:
    made = edit("set-op", nodes=["relu"], op="Mine", domain="there").apply(model)
    assert made.opsets == {"": 17, "my": 1, "there": 1}


def test_nodes_are_sorted_after_a_late_operand(model: Structure) -> None:
    made = edit("replace-node", node="sigmoid", op="Add", inputs=["chosen", "r1"]).apply(model)
    made = edit("insert-node", tensor="product", op="Mul", operands=["w2"]).apply(
        edit("add-weight", name="w2", value={"values": 2.0}).apply(made)
    )
    assert not edit_problems(model, made)


def test_attributes_keep_their_kind(model: Structure) -> None:
    made = edit("set-attribute", nodes=["leaky"], name="alpha", value=1).apply(model)
    attribute = made.node("leaky").attribute[0]
    assert (attribute.type, attribute.f) == (onnx.AttributeProto.FLOAT, 1.0)
    assert not edit("set-attribute", nodes=["leaky"], name="alpha").apply(made).node("leaky").attribute
    with pytest.raises(EditError, match="alpha"):
        edit("set-attribute", nodes=["leaky"], name="alpha", value="much").apply(model)


def test_infinities_round_trip_through_the_history(model: Structure, tmp_path: Path) -> None:
    history = History.open(model, tmp_path)
    history.do(edit("insert-node", tensor="sum", op="Max", operands=[{"values": [float("-inf")]}]))
    history.do(edit("set-attribute", nodes=["leaky"], name="alpha", value=float("inf")))
    history.do(edit("insert-node", tensor="cube", op="Mine", domain="my", attributes={"low": float("-inf")}))
    again = History.open(model, tmp_path)
    assert again.structure.proto() == history.structure.proto()
    assert again.structure.node("leaky").attribute[0].f == float("inf")
    assert numpy_helper.to_array(again.structure.initializers["sum_Max_constant_0"]).tolist() == [float("-inf")]
    again.export_script(tmp_path / "edits.py")
    assert run_script(tmp_path / "edits.py", tmp_path / "varied.onnx", tmp_path / "new.onnx").returncode == 0
    save(again.structure, tmp_path / "ours.onnx")
    assert described(onnx.load(tmp_path / "new.onnx")) == described(onnx.load(tmp_path / "ours.onnx"))


def test_checks_name_the_node_and_the_reason(model: Structure) -> None:
    broken = {
        "nothing makes": edit("delete-node", nodes=["relu"], leave=True),
        "No Op registered for Relux": edit("set-op", nodes=["relu"], op="Relux"),
        "Unrecognized attribute: beta": edit("set-attribute", nodes=["relu"], name="beta", value=1.0),
        "inconsistent type": edit("insert-node", tensor="sum", op="Add", operands=[{"values": 1, "dtype": "int64"}]),
        "ncompatible dimensions": edit("set-shape", tensors=[{"name": "x", "shape": [3, 15]}]),
    }
    for reason, bad in broken.items():
        found = edit_problems(model, bad.apply(model))
        assert any(reason in problem.message for problem in found), (reason, found)


def test_shapes_changed_by_edits_are_declared(model: Structure, tmp_path: Path) -> None:
    made = settled(model, edit("set-batch", batch=5).apply(model))
    dims = [[d.dim_value or d.dim_param for d in v.type.tensor_type.shape.dim] for v in made.outputs]
    assert dims == [[5, 32], [5, 4, 8]]
    assert [d.dim_value for d in made.values["sum"].type.tensor_type.shape.dim] == [5, 32]
    save(made, tmp_path / "new.onnx")
    onnx.checker.check_model(tmp_path / "new.onnx", full_check=True)


def test_marked_outputs_have_their_types(model: Structure, tmp_path: Path) -> None:
    made = edit("mark-output", tensors=["shape", "cube"]).apply(model)
    assert [v.type.tensor_type.elem_type for v in made.outputs[2:]] == [TensorProto.INT64, TensorProto.FLOAT]
    assert outputs(made, tmp_path)["shape"].tolist() == [3, 32]


def test_freezing_a_symbol_changes_output_shapes(model: Structure) -> None:
    made = edit("freeze-dims", dims={"n": 2}).apply(model)
    assert [d.dim_value for d in made.outputs[1].type.tensor_type.shape.dim] == [2, 4, 8]
    with pytest.raises(EditError, match="no input has a dimension 'm'"):
        edit("freeze-dims", dims={"m": 2}).apply(model)


def test_equal_nodes_are_merged(model: Structure, tmp_path: Path) -> None:
    made = edit("deduplicate").apply(model)
    assert list(made.node("last").input) == ["s1", "s1"]
    np.testing.assert_array_equal(outputs(made, tmp_path)["y"], outputs(model, tmp_path)["y"])


def test_a_pattern_is_replaced_by_a_subgraph(model: Structure, tmp_path: Path) -> None:
    nodes = [helper.make_node("Abs", ["in"], ["mid"], "abs"), helper.make_node("Mul", ["mid", "k"], ["out"], "mul")]
    ends = [[helper.make_tensor_value_info(n, TensorProto.FLOAT, None)] for n in ("in", "out")]
    weight = numpy_helper.from_array(np.array(2, np.float32), "k")
    part = helper.make_model(helper.make_graph(nodes, "part", *ends, [weight]))
    made = edit_from(
        {"edit": "replace-pattern", "pattern": ["MatMul", "Add"], "subgraph": _base64(part.SerializeToString())}
    ).apply(model)
    assert [node.op_type for node in made.nodes[:2]] == ["Abs", "Mul"]
    assert made.nodes[1].output[0] == "sum"
    assert "w" not in made.initializers


def _base64(data: bytes) -> str:
    import base64

    return base64.b64encode(data).decode()


@pytest.mark.parametrize(
    "text",
    ["", "{", "[1]", '{"edit": "unknown"}', '{"edit": "set-op"}', '{"edit": "set-op", "nodes": ["a"], "more": 1}'],
)
def test_invalid_edits_are_rejected(text: str) -> None:
    with pytest.raises(UsageError):
        edits_from_json(text)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (edit("set-op", nodes=["none"], op="Relu"), "there is no node 'none'"),
        (edit("set-op", nodes=["x"], op="Relu", scope=["if"]), "a scope is pairs"),
        (edit("set-op", nodes=["x"], op="Relu", scope=["if", "nowhere"]), "no body 'nowhere'"),
        (edit("rename-tensor", tensor="r1", to="scale"), "that name is taken"),
        (edit("rename-tensor", tensor="r1", to="then_y"), "that name is taken"),
        (edit("unmark-output", tensors=["r1"]), "is no output"),
        (edit("mark-output", tensors=["then_y"]), "the main graph has no tensor"),
        (edit("remove-input", tensors=["x"]), "still read"),
        (edit("add-input", input={"name": "more"}), "give its type"),
        (edit("bypass", ops=["Conv"]), "no node is of that type"),
        (edit("set-weight", weights={"w": "aGVsbG8="}), "no .npy file"),
        (edit("extract", inputs=[{"name": "r1"}], outputs=[{"name": "y"}]), "the outputs need"),
        (edit("set-opset", version=99), "no opset 99"),
        (edit("replace-node", node="relu", op="Abs", outputs=["new"]), "still read"),
    ],
)
def test_an_edit_that_does_not_fit_gives_the_reason(model: Structure, bad: Edit, reason: str) -> None:
    with pytest.raises(EditError, match=reason) as error:
        bad.apply(model)
    assert bad.describe() in str(error.value)
