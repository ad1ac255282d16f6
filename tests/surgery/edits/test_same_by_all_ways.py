"""The result of an edit depends only on the edit, not on earlier inference or on who applies it."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from support.cli import run_script
from support.edit_models import described, opened

from layerwise._tool.surgery.edits import edit_from
from layerwise._tool.surgery.saving.model import save
from layerwise._tool.surgery.script.export import export_script
from layerwise._tool.surgery.types.incremental import settled, types_of


def small(path: Path) -> Path:
    """y = 1 + relu(x), reshaped to sizes that a node computes; a weight that nothing reads has the same values."""
    nodes = [
        helper.make_node("Add", ["half", "half"], ["sizes"], "sizes"),
        helper.make_node("Reshape", ["x", "sizes"], ["flat"], "reshape"),
        helper.make_node("Relu", ["flat"], ["positive"], "relu"),
        helper.make_node("Add", ["one", "positive"], ["y"], "add"),
    ]
    sizes = {"half": np.array([3, 1], np.int64), "unread": np.array([6, 2], np.int64)}
    weights = {**sizes, "one": np.array(1, np.float32)}
    graph = helper.make_graph(
        nodes, "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [6, 2])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()])  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def test_declared_shapes_do_not_depend_on_what_was_inferred_before(tmp_path: Path) -> None:
    path = small(tmp_path / "base.onnx")
    edit = edit_from({"edit": "replace-node", "node": "relu", "op": "Gelu", "domain": "com.microsoft"})
    fresh, known = opened(path), opened(path)
    types_of(known)
    later = edit.apply(known)
    types_of(later)
    assert settled(fresh, edit.apply(fresh)).proto() == settled(known, later).proto()


def test_a_script_does_not_confuse_an_unused_weight_with_a_folded_one(tmp_path: Path) -> None:
    path, script = small(tmp_path / "base.onnx"), tmp_path / "edits.py"
    before = opened(path)
    edit = edit_from({"edit": "fold"})
    made = edit.apply(before)
    assert "unread" not in made.initializers and len(made.nodes) == 3
    export_script(before, [(edit, made)], script, is_new=False)
    assert run_script(script, path, tmp_path / "scripted.onnx").returncode == 0
    save(settled(before, made), tmp_path / "ours.onnx")
    assert described(onnx.load(tmp_path / "scripted.onnx")) == described(onnx.load(tmp_path / "ours.onnx"))


def test_a_script_declares_the_inner_shapes_that_edits_declare(tmp_path: Path) -> None:
    path, script = small(tmp_path / "base.onnx"), tmp_path / "edits.py"
    before = opened(path)
    edit = edit_from({"edit": "infer-shapes"})
    made = edit.apply(before)
    export_script(before, [(edit, made)], script, is_new=False)
    assert run_script(script, path, tmp_path / "scripted.onnx").returncode == 0
    inner = {value.name: value.type for value in onnx.load(tmp_path / "scripted.onnx").graph.value_info}
    assert inner == {name: value.type for name, value in made.values.items()} and "flat" in inner
