"""The history of a model's edits: undo and redo, branches, what is kept on disk."""

import tracemalloc
from pathlib import Path

import pytest
from support.big_graph import chain_model
from support.edit_models import edit, opened, varied_model

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.surgery.history.tree import History, read_edits, replay
from layerwise._tool.surgery.model.structure import Structure


@pytest.fixture
def model(tmp_path: Path) -> Structure:
    return opened(varied_model(tmp_path / "varied.onnx"))


def test_replay_lists_edits_that_do_not_fit(model: Structure) -> None:
    edits = [edit("delete-node", nodes=["gone"]), edit("set-op", nodes=["relu"], op="Tanh")]
    made, misfits = replay(edits, model)
    assert [(misfit.edit, misfit.reason) for misfit in misfits] == [(edits[0], "there is no node 'gone'")]
    assert made.node("relu").op_type == "Tanh"


def test_a_history_branches_and_redo_follows_the_last_branch(model: Structure, tmp_path: Path) -> None:
    history = History.open(model, tmp_path)
    for op in ("Tanh", "Abs"):
        history.do(edit("set-op", nodes=["relu"], op=op))
        history.undo()
    history.jump(1)
    history.undo()
    assert history.redo().node("relu").op_type == "Tanh"
    assert [entry.id for entry in history.children(0)] == [1, 2]
    other = History.open(model, tmp_path)
    assert (other.at, other.structure) == (1, history.structure)
    assert read_edits(other.path) == other.edits
    with pytest.raises(UsageError, match="nothing to redo"):
        other.redo()


def test_a_long_history_of_a_large_graph_stays_small(tmp_path: Path) -> None:
    history = History.open(opened(chain_model(tmp_path / "chain.onnx", 2000)), tmp_path)
    nodes = [node.name for node in history.structure.nodes if node.op_type == "Relu"][:60]
    history.do(edit("set-op", nodes=nodes[:1], op="Abs"))
    tracemalloc.start()
    for name in nodes[1:]:
        history.do(edit("set-op", nodes=[name], op="Abs"))
        assert history.structure.lookups.makers
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used < 60 * 2000 * 8 * 3
    for name in reversed(nodes):
        assert history.structure.node(name).op_type == "Abs"
        assert history.undo().node(name).op_type == "Relu"


def test_the_history_is_found_after_renaming_the_model(model: Structure, tmp_path: Path) -> None:
    History.open(model, tmp_path).do(edit("clean-up"))
    (tmp_path / "varied.onnx").rename(tmp_path / "other.onnx")
    assert History.open(opened(tmp_path / "other.onnx"), tmp_path).at == 1


def test_results_of_slow_edits_are_read_from_disk(model: Structure, tmp_path: Path) -> None:
    history = History.open(model, tmp_path)
    made = history.do(edit("set-opset", version=18))
    assert made.opsets[""] == 18
    (file,) = (tmp_path / "edits").rglob("1.*.structure")
    again = History.open(model, tmp_path)
    assert again.structure.proto() == made.proto()
    file.unlink()
    assert History.open(model, tmp_path).structure.proto() == made.proto()
