"""Models that are written after edits: weights, external data, large models, files that are there already."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.cli import run_script
from support.edit_models import described, edit, opened, varied_model
from support.views import graph_at

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.model.file import ModelFile, load_model
from layerwise._tool.surgery.history.soundness import edit_problems, problems
from layerwise._tool.surgery.history.tree import History
from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.saving import model as saving
from layerwise._tool.surgery.saving.model import save
from layerwise._tool.surgery.script import export as gs_script


@pytest.fixture
def model(tmp_path: Path) -> Structure:
    return opened(varied_model(tmp_path / "varied.onnx"))


def test_opening_and_saving_gives_the_same_model(tmp_path: Path) -> None:
    path = varied_model(tmp_path / "varied.onnx")
    with ModelFile(path) as file:
        assert Structure.open(file).proto() == file.structure()
    assert not problems(opened(path))


def test_weights_are_references_until_saving(model: Structure, tmp_path: Path) -> None:
    weight = model.initializers["w"]
    assert weight.data_location == TensorProto.EXTERNAL
    made = edit("rename-tensor", tensor="w", to="weight").apply(model)
    assert made.initializers["weight"].data_location == TensorProto.EXTERNAL
    save(made, tmp_path / "new.onnx")
    values = {t.name: numpy_helper.to_array(t) for t in onnx.load(tmp_path / "new.onnx").graph.initializer}
    with ModelFile(tmp_path / "varied.onnx") as file:
        np.testing.assert_array_equal(values["weight"], file.array("w"))


def test_saving_keeps_external_data_next_to_the_model(model: Structure, tmp_path: Path) -> None:
    (tmp_path / "apart").mkdir()
    save(model, tmp_path / "apart" / "m.onnx", external=Path("weights.bin"))
    assert (tmp_path / "apart" / "weights.bin").stat().st_size == 16 * 32 * 4
    again = opened(tmp_path / "apart" / "m.onnx")
    save(again, tmp_path / "apart" / "n.onnx")
    assert (tmp_path / "apart" / "n.onnx.data").exists()
    onnx.checker.check_model(str(tmp_path / "apart" / "n.onnx"))
    assert described(load_model(tmp_path / "apart" / "n.onnx")) == described(load_model(tmp_path / "varied.onnx"))


def test_large_weights_in_bodies_and_constants_are_saved(tmp_path: Path) -> None:
    large = numpy_helper.from_array(np.arange(400, dtype=np.float32), "large")
    then = helper.make_graph([helper.make_node("Add", ["x", "large"], ["t"], "then_add")], "then", [],
                             [helper.make_tensor_value_info("t", TensorProto.FLOAT, [400])], [large])  # fmt: skip
    other = helper.make_graph([helper.make_node("Constant", [], ["e"], "constant", value=large)], "else", [],
                              [helper.make_tensor_value_info("e", TensorProto.FLOAT, [400])])  # fmt: skip
    nodes = [helper.make_node("If", ["flag"], ["chosen"], "if", then_branch=then, else_branch=other),
             helper.make_node("Constant", [], ["c"], "outer", value=large),
             helper.make_node("Add", ["chosen", "c"], ["y"], "last")]  # fmt: skip
    ends = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [400]),
            helper.make_tensor_value_info("flag", TensorProto.BOOL, [])]  # fmt: skip
    graph = helper.make_graph(nodes, "g", ends, [helper.make_tensor_value_info("y", TensorProto.FLOAT, [400])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), tmp_path / "m.onnx")
    before = opened(tmp_path / "m.onnx")
    assert graph_at(before, ("if", "then_branch")).initializers["large"].data_location == TensorProto.EXTERNAL
    history = History.open(before, tmp_path)
    history.do(edit("set-op", nodes=["then_add"], op="Mul", scope=["if", "then_branch"]))
    history.do(edit("insert-node", tensor="e", op="Neg", scope=["if", "else_branch"]))
    history.do(edit("rename-tensor", tensor="c", to="offset"))
    history.do(edit("clean-up"))
    assert not edit_problems(before, history.structure)
    save(history.structure, tmp_path / "new.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "new.onnx", providers=["CPUExecutionProvider"])
    x, values = np.ones(400, np.float32), np.arange(400, dtype=np.float32)
    np.testing.assert_array_equal(session.run(None, {"x": x, "flag": np.array(True)})[0], values * 2)
    np.testing.assert_array_equal(session.run(None, {"x": x, "flag": np.array(False)})[0], values * 0)
    history.export_script(tmp_path / "edits.py")
    done = run_script(tmp_path / "edits.py", tmp_path / "m.onnx", tmp_path / "scripted.onnx")
    assert done.returncode == 0, done.stderr
    assert described(onnx.load(tmp_path / "scripted.onnx")) == described(onnx.load(tmp_path / "new.onnx"))


def test_models_over_two_gigabytes_are_saved_with_external_data(
    model: Structure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saving, "ONE_FILE_LIMIT", 1000)
    monkeypatch.chdir(tmp_path)
    save(model, Path("below") / "new.onnx")
    assert (tmp_path / "below" / "new.onnx.data").exists()
    assert described(load_model(tmp_path / "below" / "new.onnx")) == described(load_model(tmp_path / "varied.onnx"))


def test_a_script_saves_large_models_with_external_data(
    model: Structure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gs_script, "ONE_FILE_LIMIT", 1000)
    history = History.open(model, tmp_path)
    history.do(edit("set-op", nodes=["relu"], op="Abs"))
    history.export_script(tmp_path / "edits.py")
    done = run_script(tmp_path / "edits.py", tmp_path / "varied.onnx", tmp_path / "new.onnx")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "new.onnx.data").exists()
    assert onnx.load(tmp_path / "new.onnx").graph.node[2].op_type == "Abs"


def test_existing_files_are_not_overwritten_silently(model: Structure, tmp_path: Path) -> None:
    data = (tmp_path / "varied.onnx").read_bytes()
    with pytest.raises(UsageError, match="is there already"):
        save(edit("clean-up").apply(model), tmp_path / "varied.onnx")
    assert (tmp_path / "varied.onnx").read_bytes() == data
    save(edit("delete-node", nodes=["relu"]).apply(model), tmp_path / "varied.onnx", overwrite=True)
    assert "relu" not in opened(tmp_path / "varied.onnx").lookups.by_name
