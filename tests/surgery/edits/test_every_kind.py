"""Every kind of edit round-trips through JSON, leaves a valid model that loads, and is reproduced by the script."""

import base64
import io
import typing
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from support.cli import run_script
from support.edit_models import described, varied_model

from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.surgery.edits import AnyEdit, Edit, edit_from, edits_from_json
from layerwise._tool.surgery.history.soundness import edit_problems
from layerwise._tool.surgery.history.tree import edits_to_json
from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.saving.model import save
from layerwise._tool.surgery.script.export import export_script
from layerwise._tool.surgery.types.incremental import settled


def npy(array: np.ndarray[Any, Any] | np.generic) -> str:
    stream = io.BytesIO()
    np.save(stream, array)
    return base64.b64encode(stream.getvalue()).decode()


EDITS: list[dict[str, Any]] = [
    {"edit": "delete-node", "nodes": ["leaky"]},
    {"edit": "bypass", "ops": ["Relu"]},
    {"edit": "insert-node", "tensor": "r1", "op": "Clip", "operands": [{"values": 0.0}, {"values": 6.0}]},
    {"edit": "insert-node", "tensor": "z", "op": "Add", "operands": ["scale"]},
    {"edit": "add-node", "op": "Add", "inputs": ["s1", {"values": [1.0] * 32}], "outputs": ["more"]},
    {"edit": "replace-node", "node": "relu", "op": "Elu", "attributes": {"alpha": 0.5}},
    {"edit": "replace-pattern", "pattern": ["MatMul", "Add"], "op": "Gemm", "inputs": ["$0.0", "$0.1", "$1.1"]},
    {"edit": "insert-between", "inputs": ["x", "w"], "outputs": ["product"], "op": "MatMul", "name": "again"},
    {"edit": "set-attribute", "nodes": ["leaky"], "name": "alpha", "value": 0.75},
    {"edit": "set-op", "nodes": ["then_relu"], "op": "Abs", "scope": ["if", "then_branch"]},
    {"edit": "rename-node", "node": "relu", "to": "first"},
    {"edit": "rename-tensor", "tensor": "w", "to": "weight"},
    {"edit": "rename-tensor", "tensor": "x", "to": "picture"},
    {"edit": "mark-output", "tensors": ["shape", "scale"]},
    {"edit": "unmark-output", "tensors": ["z"]},
    {"edit": "set-outputs", "outputs": [{"name": "cube"}]},
    {"edit": "debug-outputs", "ops": ["Sigmoid"]},
    {"edit": "set-inputs", "inputs": [{"name": "sum"}]},
    {"edit": "add-input", "input": {"name": "more", "dtype": "int8", "shape": ["n", None]}},
    {"edit": "remove-input"},
    {"edit": "set-shape", "tensors": [{"name": "x", "shape": [3, 16]}]},
    {"edit": "set-batch", "batch": "size"},
    {"edit": "freeze-dims", "dims": {"n": 4}},
    {"edit": "upper-bounds", "bounds": {"": 100}},
    {"edit": "set-weight", "weights": {"b": npy(np.arange(32, dtype=np.float32))}},
    {"edit": "add-weight", "name": "extra", "value": {"values": [1, 2], "dtype": "uint8"}},
    {"edit": "sparsify"},
    {"edit": "clean-up"},
    {"edit": "toposort"},
    {"edit": "deduplicate"},
    {"edit": "extract", "nodes": ["relu"], "before": 1, "after": 1},
    {"edit": "extract", "inputs": [{"name": "sum"}], "outputs": [{"name": "target"}]},
    {"edit": "fold"},
    {"edit": "convert-precision", "to": "float16", "keep": ["matmul"]},
    {"edit": "set-opset", "version": 18},
    {"edit": "infer-shapes"},
]
DIVIDE = {"edit": "replace-node", "node": "then_mul", "op": "Div", "scope": ["if", "then_branch"]}
NOTHING_TO_DO = {"remove-input", "upper-bounds"}  # on this model


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return varied_model(tmp_path_factory.mktemp("model") / "varied.onnx")


def label(item: dict[str, Any]) -> str:
    return str(item["edit"])


def test_the_examples_cover_every_kind() -> None:
    kinds = {typing.cast(Any, kind).__struct_config__.tag for kind in typing.get_args(AnyEdit)}
    assert kinds == {item["edit"] for item in EDITS}


def test_every_kind_and_field_is_documented() -> None:
    text = (Path(__file__).parents[3] / "docs" / "edits.md").read_text(encoding="utf-8")
    rows = {line.split("`")[1]: line for line in text.splitlines() if line.startswith("| `")}
    for kind in typing.get_args(AnyEdit):
        row = rows.pop(typing.cast(Any, kind).__struct_config__.tag)
        assert all(f"`{field}`" in row for field in typing.cast(Any, kind).__struct_fields__), row
    assert not rows


@pytest.mark.parametrize("item", EDITS, ids=label)
def test_an_edited_model_loads_and_equals_the_scripts(item: dict[str, Any], path: Path, tmp_path: Path) -> None:
    with ModelFile(path) as file:
        before = Structure.open(file)
    edit = edit_from(item)
    assert edits_from_json(edits_to_json([edit])) == [edit]
    assert edit.describe()
    made = edit.apply(before)
    assert not edit_problems(before, made)
    assert (made != before) is (item["edit"] not in NOTHING_TO_DO | {"clean-up", "toposort"})
    save(settled(before, made), tmp_path / "new.onnx")
    onnx.checker.check_model(tmp_path / "new.onnx", full_check=True)
    onnxruntime.InferenceSession(tmp_path / "new.onnx", providers=["CPUExecutionProvider"])

    assert_scripted(before, [(edit, made)], path, tmp_path)


@pytest.mark.parametrize(
    "edits",
    [
        [{"edit": "bypass", "ops": ["Relu"]}, {"edit": "rename-tensor", "tensor": "scale", "to": "factor"}, DIVIDE],
        [{"edit": "bypass", "ops": ["Relu"]}, {"edit": "set-weight", "weights": {"scale": npy(np.float32(2))}}, DIVIDE],
        [{"edit": "mark-output", "tensors": ["s2"]}, {"edit": "delete-node", "nodes": ["sigmoid2"]}],
    ],
    ids=["renamed", "replaced", "body made anew"],
)
def test_the_script_keeps_weights_captured_by_bodies(edits: list[dict[str, Any]], path: Path, tmp_path: Path) -> None:
    with ModelFile(path) as file:
        structure = before = Structure.open(file)
    steps = []
    for edit in map(edit_from, edits):
        structure = edit.apply(structure)
        steps.append((edit, structure))
    save(settled(before, structure), tmp_path / "new.onnx")
    assert_scripted(before, steps, path, tmp_path)


def assert_scripted(before: Structure, steps: list[tuple[Edit, Structure]], path: Path, tmp_path: Path) -> None:
    """The script of the steps makes the model in new.onnx."""
    export_script(before, steps, tmp_path / "edits.py", is_new=False)
    done = run_script(tmp_path / "edits.py", path, tmp_path / "scripted.onnx")
    assert done.returncode == 0, done.stderr
    ours, theirs = (described(onnx.load(tmp_path / name)) for name in ("new.onnx", "scripted.onnx"))
    for key, value in ours["graph"].items():
        assert theirs["graph"][key] == value, (tmp_path / "edits.py").read_text()
    assert theirs == ours, (tmp_path / "edits.py").read_text()
