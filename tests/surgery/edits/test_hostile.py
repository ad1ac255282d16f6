"""Edits of models that are broken or contain terminal escapes give a model or a readable error, never an exception."""

import ast
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper
from support.bad_models import KINDS
from support.big_graph import hostile_model
from support.edit_models import opened, varied_model
from support.random_edits import draw_edit

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.edits import edit_from
from layerwise._tool.surgery.history.soundness import edit_problems, problems
from layerwise._tool.surgery.saving.model import save
from layerwise._tool.surgery.script.export import export_script
from layerwise._tool.surgery.types.incremental import settled


@pytest.mark.parametrize("kind", [*KINDS, "hostile names"])
def test_broken_models_are_edited_or_give_a_readable_error(kind: str, tmp_path: Path) -> None:
    if kind in KINDS:
        (tmp_path / "m.onnx").write_bytes(KINDS[kind]().SerializeToString())
    else:
        hostile_model(tmp_path / "m.onnx")
    for seed in range(2):
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


def test_before_ir_4_a_new_weight_is_also_an_input(tmp_path: Path) -> None:
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


NUMBERS: list[Any] = [0, -1, 300, 2**70, 1.5, float("nan"), float("inf"), True, None, "a", "\ud800", "\x1b[2J", "\x00"]
VALUES: list[Any] = [*NUMBERS, [], [[]], [1, 2], [1, 2.5], [1, "a"], [[1], [2, 3]], {}, {"x": 1}, {"values": [1, "a"]}]
KINDS_OF_ATTRIBUTES = ["", "int", "float", "string", "ints", "floats", "strings", "tensor", "graph"]
DTYPES = ["float32", "bfloat16", "int4", "uint8", "int64", "bool", "string", "float8e4m3fn", "none"]


def half(values: list[Any], kinds: list[str]) -> Iterator[tuple[Any, str]]:
    """Every other pair: each value with half of the kinds, each kind with half of the values."""
    return ((value, kind) for i, value in enumerate(values) for k, kind in enumerate(kinds) if (i + k) % 2)


EDITS: list[dict[str, Any]] = [
    *({"edit": "set-attribute", "nodes": ["leaky"], "name": "alpha", "value": value, "kind": kind}
      for value, kind in half(VALUES, KINDS_OF_ATTRIBUTES)),
    *({"edit": "add-weight", "name": "new", "value": {"values": value, "dtype": dtype}}
      for value, dtype in half(VALUES, DTYPES)),
    *({"edit": "add-weight", "name": "new", "value": {"values": 1, "shape": [length]}} for length in NUMBERS),
    *({"edit": "set-shape", "tensors": [{"name": "x", "shape": [length, 16]}]} for length in NUMBERS),
    *({"edit": "set-batch", "batch": length} for length in NUMBERS),
    *({"edit": "freeze-dims", "dims": {"n": length}} for length in NUMBERS),
    *({"edit": "set-opset", "version": version, "domain": domain} for version in NUMBERS for domain in ("", "\n")),
    *({"edit": "rename-tensor", "tensor": old, "to": new} for old in ("x", "y", "w") for new in ("", "\x1b[2J", "z")),
    *({"edit": "add-node", "op": op, "inputs": [""], "outputs": outputs}
      for op in ("", "\n", "Relu") for outputs in ([], [""], ["a", "a"], ["y"])),
    *({"edit": "replace-pattern", "pattern": pattern, "op": "Neg", "inputs": [operand]}
      for pattern in ([], [""], ["Relu"], ["If"]) for operand in ("", "$", "$0.0", "$9.9", "$0.x")),
    *({"edit": "replace-pattern", "pattern": ["Relu"], "subgraph": data} for data in ("aGVsbG8=", "no base64", "")),
    *({"edit": "extract", "nodes": nodes, "before": steps} for nodes in ([], ["if"]) for steps in (-1, 0, 10**6)),
]  # fmt: skip


def test_unusual_edits_are_applied_or_give_a_readable_error(tmp_path: Path) -> None:
    before, made = opened(varied_model(tmp_path / "m.onnx")), 0
    for item in EDITS:
        try:
            edit = edit_from(item)
            assert edit.describe() == shown(edit.describe())
            after = edit.apply(before)
            edit_problems(before, after)
            save(settled(before, after), tmp_path / "out.onnx", overwrite=True)
            export_script(before, [(edit, after)], tmp_path / "out.py", is_new=False)
            made += 1
        except LayerwiseError as error:
            assert str(error)
        except Exception as error:
            raise AssertionError(f"{item}: {error!r}") from error
    assert 50 < made < len(EDITS)


def test_problems_name_tensors_in_full_so_that_those_that_differ_in_their_middle_stay_different(tmp_path: Path) -> None:
    names = [f"/model/{'x' * 80}/part{place}/{'y' * 80}" for place in range(3)]
    nodes = [
        helper.make_node("Relu", [names[1]], [names[0]], names[0]),
        helper.make_node("Relu", [names[2]], ["y"], "last"),
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", names[0], "y")]
    model = helper.make_model(
        helper.make_graph(nodes, "g", ends[:1], ends[1:]), opset_imports=[helper.make_opsetid("", 18)]
    )
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    told = [" ".join(problem) for problem in problems(opened(tmp_path / "m.onnx"))]
    assert any(names[0] in text and names[1] in text for text in told) and any(names[2] in text for text in told)
