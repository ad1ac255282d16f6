"""Invariants of random sequences of edits."""

import os
import random
import signal
import subprocess
import sys
import uuid
from dataclasses import replace
from pathlib import Path

import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.cli import run_script
from support.edit_models import described, opened, varied_model
from support.random_edits import draw_edit

from layerwise._tool.surgery.edits import Edit, EditError, edits_from_json
from layerwise._tool.surgery.edits.nodes import ReplaceNode
from layerwise._tool.surgery.history.soundness import edit_problems, problems
from layerwise._tool.surgery.history.tree import History, edits_to_json
from layerwise._tool.surgery.model.lookups import Lookups
from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.saving.model import save
from layerwise._tool.surgery.types.incremental import settled, types_of

SEEDS = st.integers(0, 1 << 32)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return varied_model(tmp_path_factory.mktemp("model") / "varied.onnx")


def random_steps(structure: Structure, seed: int, count: int) -> list[tuple[Edit, Structure]]:
    rng, steps = random.Random(seed), []
    for _ in range(count):
        edit = draw_edit(rng, structure)
        try:
            structure = edit.apply(structure)
        except EditError as error:
            assert error.reason
            continue
        steps.append((edit, structure))
    return steps


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=SEEDS)
def test_undoing_all_edits_gives_the_identical_model(model: Path, tmp_path: Path, seed: int) -> None:
    before = opened(model)
    data = before.proto().SerializeToString(deterministic=True)
    history = History(tmp_path / f"{uuid.uuid4()}.jsonl", before)
    steps = random_steps(before, seed, 12)
    for edit, _ in steps:
        history.do(edit)
    made = history.structure
    for _ in steps:
        history.undo()
    assert (
        history.structure.proto().SerializeToString(deterministic=True)
        == data
        == before.proto().SerializeToString(deterministic=True)
    )
    again = History(history.path, opened(model))
    for _ in steps:
        again.redo()
    assert again.structure.proto() == made.proto()
    assert again.next is None


@settings(max_examples=12)
@given(seed=SEEDS)
def test_lookups_are_updated_correctly(model: Path, seed: int) -> None:
    structure = opened(model)
    _ = structure.lookups
    for _, after in random_steps(structure, seed, 12):
        known, fresh = after.lookups, Lookups(after.nodes)
        assert known.makers == fresh.makers
        assert {n: sorted(map(id, r)) for n, r in known.readers.items()} == {
            n: sorted(map(id, r)) for n, r in fresh.readers.items()
        }
        assert known.by_name == fresh.by_name
        assert known.bodied.keys() == fresh.bodied.keys()


@settings(max_examples=12)
@given(seed=SEEDS)
def test_edits_survive_json(model: Path, seed: int) -> None:
    edits = [edit for edit, _ in random_steps(opened(model), seed, 12)]
    assert edits_from_json(edits_to_json(edits)) == edits


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=SEEDS)
def test_the_script_makes_the_identical_model(model: Path, tmp_path: Path, seed: int) -> None:
    before = opened(model)
    steps = random_steps(before, seed, 8)
    script, out = tmp_path / "edits.py", tmp_path / "new.onnx"
    if not steps:
        return
    history = History(tmp_path / f"{uuid.uuid4()}.jsonl", before)
    for edit, _ in steps:
        history.do(edit)
    history.export_script(script)
    done = run_script(script, model, out)
    assert done.returncode == 0, f"{done.stderr}\n{script.read_text()}"
    assert_same(out, settled(before, steps[-1][1]), tmp_path, script)


def assert_same(out: Path, made: Structure, folder: Path, script: Path) -> None:
    save(made, folder / "ours.onnx", overwrite=True)
    ours, theirs = described(onnx.load(folder / "ours.onnx")), described(onnx.load(out))
    for one, other in zip(theirs["graph"].pop("nodes"), ours["graph"].pop("nodes"), strict=True):
        assert one == other, script.read_text()
    for key in ours["graph"]:
        assert theirs["graph"][key] == ours["graph"][key], script.read_text()
    assert theirs == ours, script.read_text()


KILLED = """
import os, signal, sys
from pathlib import Path
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.surgery.edits import edits_from_json
from layerwise._tool.surgery.edits.nodes import ReplaceNode
from layerwise._tool.surgery.history.tree import History
from layerwise._tool.surgery.model.structure import Structure

history = History(Path(sys.argv[2]), Structure.open(ModelFile(sys.argv[1])))
for edit in edits_from_json(Path(sys.argv[3]).read_bytes()):
    history.do(edit)
history.undo()
history.undo()
print(history.at, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_state_and_redo_survive_a_kill(model: Path, tmp_path: Path) -> None:
    steps = random_steps(opened(model), 5, 12)
    assert len(steps) > 3
    (tmp_path / "edits.json").write_bytes(edits_to_json([edit for edit, _ in steps]))
    words = [sys.executable, "-c", KILLED, model, tmp_path / "log.jsonl", tmp_path / "edits.json"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=dict(os.environ))
    assert done.returncode == -signal.SIGKILL, done.stderr
    history = History(tmp_path / "log.jsonl", opened(model))
    assert history.at == int(done.stdout)
    assert history.structure.proto() == steps[-3][1].proto()
    history.redo()
    assert history.redo().proto() == steps[-1][1].proto()


def test_an_incomplete_line_is_ignored_but_not_its_successors(model: Path, tmp_path: Path) -> None:
    steps = random_steps(opened(model), 5, 12)
    history = History(tmp_path / "log.jsonl", opened(model))
    history.do(steps[0][0])
    with history.path.open("ab") as stream:
        stream.write(b'{"id": 2, "parent": 1, "ed')
    other = History(history.path, opened(model))
    assert other.at == 1
    other.do(steps[1][0])
    assert History(history.path, opened(model)).edits == [steps[0][0], steps[1][0]]


@settings(max_examples=10)
@given(seed=SEEDS)
def test_checks_per_edit_agree_with_a_check_of_the_whole_model(model: Path, seed: int) -> None:
    """A model that stayed sound edit by edit is sound as a whole, and its types are those inferred from scratch."""
    before = structure = opened(model)
    types_of(before)
    rng = random.Random(seed)
    for _ in range(8):
        try:
            after = draw_edit(rng, structure).apply(structure)
        except EditError:
            continue
        if not edit_problems(structure, after):
            structure = after
    anew = replace(settled(before, structure), carried=[])
    assert not problems(anew)
    carried = types_of(structure)
    for name, value in types_of(anew).items():
        if name in carried and carried[name].type.WhichOneof("value"):
            assert_no_contradiction(carried[name].type.tensor_type, value.type.tensor_type)


def assert_no_contradiction(one: onnx.TypeProto.Tensor, other: onnx.TypeProto.Tensor) -> None:
    assert one.elem_type == other.elem_type
    if one.HasField("shape") and other.HasField("shape"):
        for a, b in zip(one.shape.dim, other.shape.dim, strict=True):
            assert a.dim_value == b.dim_value or not (a.HasField("dim_value") and b.HasField("dim_value"))


def test_types_follow_changes_of_a_function(model: Path) -> None:
    before = opened(model)
    assert types_of(before)["z"].type.tensor_type.elem_type == onnx.TensorProto.FLOAT
    parts = {"node": "twice_id", "op": "Cast", "attributes": {"to": onnx.TensorProto.INT32}}
    cast = ReplaceNode(**parts, scope=("function", "my:Twice"))
    assert types_of(cast.apply(before))["doubled"].type.tensor_type.elem_type == onnx.TensorProto.INT32
