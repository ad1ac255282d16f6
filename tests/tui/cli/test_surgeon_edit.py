"""`layerwise surgeon edit` and `surgeon replay` as commands."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from support.cli import layerwise
from support.edit_models import varied_model


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    varied_model(tmp_path / "m.onnx")
    return tmp_path


def test_help_shows_examples(folder: Path) -> None:
    for word in ("edit", "replay"):
        done = layerwise("surgeon", word, "--help", cwd=folder)
        assert done.returncode == 0
        assert f"layerwise surgeon {word} " in done.stdout


def test_edits_are_made_in_the_order_they_are_typed(folder: Path) -> None:
    words = ["--rename-node", "relu", "first", "--set-op", "first", "Tanh", "--rename-node", "first", "second"]
    done = layerwise("surgeon", "edit", "m.onnx", *words, "-o", "new.onnx", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert {n.name: n.op_type for n in onnx.load(folder / "new.onnx").graph.node}["second"] == "Tanh"


def test_a_scope_holds_for_what_follows_it(folder: Path) -> None:
    words = ["--scope", "if", "then_branch", "--set-op", "then_relu", "Abs", "--scope", "function", "my:Twice"]
    words += ["--rename-node", "twice_add", "sum", "--scope", "--set-op", "relu", "Tanh"]
    done = layerwise("surgeon", "edit", "m.onnx", *words, "-o", "new.onnx", cwd=folder)
    assert done.returncode == 0, done.stdout
    model = onnx.load(folder / "new.onnx")
    nodes = {node.name: node for node in model.graph.node}
    bodies = {attribute.name: attribute.g for attribute in nodes["if"].attribute}
    assert bodies["then_branch"].node[0].op_type == "Abs"
    assert model.functions[0].node[0].name == "sum"
    assert nodes["relu"].op_type == "Tanh"


def test_an_unsound_model_is_named_and_not_saved_unless_asked(folder: Path) -> None:
    words = ["m.onnx", "--set-attribute", "concat", "axis=3", "-o", "new.onnx"]
    done = layerwise("surgeon", "edit", *words, cwd=folder)
    assert done.returncode == 1
    assert "Not sound: concat" in done.stdout
    assert "--keep-broken" in done.stdout
    assert not (folder / "new.onnx").exists()
    kept = layerwise("surgeon", "edit", *words, "--keep-broken", cwd=folder)
    assert kept.returncode == 0, kept.stderr
    assert (folder / "new.onnx").exists()


def test_the_model_is_not_overwritten_without_a_word(folder: Path) -> None:
    before = (folder / "m.onnx").read_bytes()
    words = ["m.onnx", "--clean-up", "-o", "m.onnx"]
    assert layerwise("surgeon", "edit", *words, cwd=folder).returncode != 0
    assert (folder / "m.onnx").read_bytes() == before
    assert layerwise("surgeon", "edit", *words, "--overwrite", cwd=folder).returncode == 0


def test_trying_tells_how_far_outputs_moved(folder: Path) -> None:
    words = ["--insert", "z", "Add", "0.5", "--try", "--input-shapes", "x:[2,16]", "flag:[]"]
    done = layerwise("surgeon", "edit", "m.onnx", *words, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "Output y: equal, bit for bit" in done.stdout + done.stderr
    assert "Output z: moved by 0.5" in done.stdout + done.stderr


def test_a_log_is_replayed_and_misfits_are_named(folder: Path) -> None:
    edits = [{"edit": "set-op", "nodes": ["gone"], "op": "Abs"}, {"edit": "set-op", "nodes": ["relu"], "op": "Abs"}]
    (folder / "log.json").write_text(json.dumps(edits))
    words = ["log.json", "m.onnx", "-o", "new.onnx"]
    done = layerwise("surgeon", "replay", *words, cwd=folder)
    assert done.returncode == 1
    assert "there is no node 'gone'" in done.stderr
    assert not (folder / "new.onnx").exists()
    rest = layerwise("surgeon", "replay", *words, "--skip-misfits", cwd=folder)
    assert rest.returncode == 1
    assert "Does not fit: make gone Abs: there is no node 'gone'" in rest.stdout
    assert {n.name: n.op_type for n in onnx.load(folder / "new.onnx").graph.node}["relu"] == "Abs"


def test_weights_come_from_numpy_files(folder: Path) -> None:
    np.save(folder / "b.npy", np.arange(32, dtype=np.float32))
    words = ["m.onnx", "--set-weight", "b=b.npy", "-o", "new.onnx"]
    done = layerwise("surgeon", "edit", *words, cwd=folder)
    assert done.returncode == 0, done.stderr
    weights = {t.name: onnx.numpy_helper.to_array(t) for t in onnx.load(folder / "new.onnx").graph.initializer}
    np.testing.assert_array_equal(weights["b"], np.arange(32, dtype=np.float32))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["m.onnx"], "give an edit"),
        (["--clean-up"], "give a model, or --new"),
        (["m.onnx", "--new", "17", "--clean-up"], "give a model, or --new"),
        (["m.onnx", "--edit", "{"], "not JSON"),
        (["m.onnx", "--edit", '{"edit": "unknown"}'], "this is no edit"),
        (["m.onnx", "--edits", "none.json"], "none.json"),
        (["m.onnx", "--edits", "m.onnx"], "m.onnx"),
        (["m.onnx", "--insert", "x"], "--insert TENSOR OP"),
        (["m.onnx", "--set-weight", "b"], "NAME=FILE.npy"),
        (["m.onnx", "--set-weight", "b=none.npy"], "none.npy"),
        (["m.onnx", "--rename-tensor", "x\x1b[2J", "y2"], "x\\x1b[2J"),
        (["none.onnx", "--clean-up"], "none.onnx"),
    ],
)
def test_what_is_wrong_is_said_without_a_traceback(folder: Path, words: list[str], says: str) -> None:
    done = layerwise("surgeon", "edit", *words, "-o", "new.onnx", cwd=folder)
    assert done.returncode in (1, 2)
    assert says in done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert "\x1b[2J" not in done.stdout + done.stderr
    assert not (folder / "new.onnx").exists()
