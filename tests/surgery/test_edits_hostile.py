"""Edits of models that are broken, or steer terminals: an error in words, or a model; never an exception."""

import ast
import random
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper
from support.bad_models import KINDS
from support.big_graph import hostile_model
from support.random_edits import draw_edit

from backends.errors import LayerwiseError
from backends.model import ModelFile
from backends.text import shown
from surgery.checked import edit_problems, problems
from surgery.edits import edit_from
from surgery.gs_script import export_script
from surgery.saving import save
from surgery.settled import settled
from surgery.structure import Structure


def opened(path: Path) -> Structure:
    with ModelFile(path) as file:
        return Structure.open(file)


@pytest.mark.parametrize("kind", [*KINDS, "hostile names"])
def test_broken_models_are_edited_or_refused_in_words(kind: str, tmp_path: Path) -> None:
    if kind in KINDS:
        (tmp_path / "m.onnx").write_bytes(KINDS[kind]().SerializeToString())
    else:
        hostile_model(tmp_path / "m.onnx")
    for seed in range(5):
        try:
            first = structure = opened(tmp_path / "m.onnx")
            rng, steps = random.Random(seed), []
            for _ in range(5):
                edit = draw_edit(rng, structure)
                assert edit.describe() == shown(edit.describe())
                after = edit.apply(structure)
                steps.append((edit, after))
                found = edit_problems(structure, after)
                assert all(text == shown(text) for problem in found for text in problem)
                structure = after
            problems(structure)
            save(settled(first, structure), tmp_path / "out.onnx", overwrite=True)
            export_script(first, steps, tmp_path / "out.py", is_new=False)
            ast.parse((tmp_path / "out.py").read_text())
        except LayerwiseError as error:
            assert str(error)


def test_before_ir_4_a_new_weight_is_an_input_too(tmp_path: Path) -> None:
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "y", "w")]
    weight = helper.make_tensor("w", TensorProto.FLOAT, [2], [1, 2])
    nodes = [helper.make_node("Add", ["x", "w"], ["y"], "add")]
    graph = helper.make_graph(nodes, "g", [ends[0], ends[2]], ends[1:2], [weight])
    onnx.save(helper.make_model(graph, ir_version=3, opset_imports=[helper.make_opsetid("", 9)]), tmp_path / "m.onnx")
    made = edit_from({"edit": "insert-node", "tensor": "x", "op": "Mul", "operands": [{"values": [3, 4]}]}).apply(
        opened(tmp_path / "m.onnx")
    )
    save(made, tmp_path / "new.onnx")
    onnx.checker.check_model(tmp_path / "new.onnx", full_check=True)
