"""What is kept of a model is made anew once the model, its weights or versions change, with size and time kept."""

import os
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from layerwise._tool.backends.filesystem.states import settled_state
from layerwise._tool.backends.jobs.context import JobContext
from layerwise._tool.backends.model.file import ModelFile, load_model
from layerwise._tool.backends.versions import versions
from layerwise._tool.surgery.edits import edit_from
from layerwise._tool.surgery.edits.whole import Fold
from layerwise._tool.surgery.graph import GraphIndex, cache
from layerwise._tool.surgery.graph.build import action_index
from layerwise._tool.surgery.graph.cache import has_index, index_folder
from layerwise._tool.surgery.history import records
from layerwise._tool.surgery.history.requests import answer_result
from layerwise._tool.surgery.history.tree import History
from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.saving.model import save
from layerwise._tool.surgery.weights.statistics import answer_weights

SIZE = 512


class Context:
    """What an action needs of a worker."""

    def __init__(self, **params: object) -> None:
        self.params = params

    def progress(self, *state: Any) -> None:
        pass

    def warn(self, text: str) -> None:
        raise AssertionError(text)


def context(**params: object) -> JobContext:
    return cast(JobContext, Context(**params))


def scaled(path: Path, external: bool, name: str = "y") -> Path:
    """Write x * (w + w), w all 2; return the file that holds w."""
    weights = numpy_helper.from_array(np.full(SIZE, 2, np.float32), "w")
    nodes = [helper.make_node("Add", ["w", "w"], ["v"], "sum"), helper.make_node("Mul", ["x", "v"], [name], "scale")]
    ends = [helper.make_tensor_value_info(end, TensorProto.FLOAT, [SIZE]) for end in ("x", name)]
    graph = helper.make_graph(nodes, f"g{external}", ends[:1], ends[1:], [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, path, save_as_external_data=external, location=f"{path.name}.data", size_threshold=0)
    return path.with_name(f"{path.name}.data") if external else path


def change(file: Path, before: bytes, after: bytes) -> None:
    """Change a file's content in place, but neither its size nor its time."""
    state, data = file.stat(), file.read_bytes()
    assert before in data and len(before) == len(after)
    file.write_bytes(data.replace(before, after))
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (state.st_size, state.st_mtime_ns)


def weights_to(file: Path, value: float) -> None:
    change(file, np.full(SIZE, 2, np.float32).tobytes(), np.full(SIZE, value, np.float32).tobytes())


def test_a_settled_state_tells_every_later_change(tmp_path: Path) -> None:
    path = tmp_path / "f"
    for number in range(50):
        path.write_bytes(b"%9d" % number)
        state = settled_state(path)
        assert state is not None
        change(path, b"%9d" % number, b"%9d" % (number + 1))
        assert settled_state(path) != state


@pytest.mark.parametrize("external", [False, True], ids=["inside", "external"])
def test_the_warm_worker_reads_changed_weights_anew(external: bool, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    file = scaled(path, external)

    def mean() -> float:
        return float(answer_weights(context(), {"path": str(path), "names": ["w"]})["w"]["mean"])

    assert mean() == 2 == mean()
    weights_to(file, 5)
    assert mean() == 5
    replaced = scaled(tmp_path / "other.onnx", external)
    weights_to(replaced, 7)
    replaced.replace(file)
    assert mean() == 7
    model = onnx.load(path, load_external_data=False)
    model.graph.initializer.insert(0, numpy_helper.from_array(np.zeros(9, np.float32), "first"))
    onnx.save(model, path)
    assert mean() == 7, "the weights are at another place"


def test_the_warm_worker_reads_a_changed_structure_anew(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    scaled(path, True)

    def output() -> str:
        params = {"path": str(path), "log": str(tmp_path / "log"), "at": 0, "edits": [], "out": str(tmp_path / "out")}
        answer_result(context(), params)
        return str(onnx.load(tmp_path / "out", load_external_data=False).graph.output[0].name)

    assert output() == "y" == output()
    model = onnx.load(path, load_external_data=False)
    data = path.read_bytes()
    model.graph.output[0].name = model.graph.node[1].output[0] = "z"
    change(path, data, model.SerializeToString())
    assert output() == "z"


def indexed(path: Path, root: Path) -> GraphIndex:
    folder = index_folder(root, path)
    if not has_index(folder):
        folder = Path(action_index(context(path=str(path), cache=str(root)))["folder"])
    return GraphIndex.open(folder)


def test_an_index_holds_for_the_file_and_the_versions_that_made_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, root = tmp_path / "m.onnx", tmp_path / "cache"
    scaled(path, True)

    def output() -> str:
        return indexed(path, root).tensor_name(indexed(path, root).node_outputs(1)[0])

    assert output() == "y" and has_index(index_folder(root, path))
    model, data = onnx.load(path, load_external_data=False), path.read_bytes()
    model.graph.output[0].name = model.graph.node[1].output[0] = "z"
    change(path, data, model.SerializeToString())
    assert not has_index(index_folder(root, path)) and output() == "z"
    known = index_folder(root, path)
    with monkeypatch.context() as patch:
        patch.setattr(cache, "versions", lambda: {"onnx": "another"})
        assert not has_index(index_folder(root, path)), "another onnx infers other shapes"
        assert Path(indexed(path, root).folder) != known
    monkeypatch.setattr(cache, "VERSION", "another")
    assert not has_index(index_folder(root, path))
    assert Path(indexed(path, root).folder) != known


def test_a_model_that_changes_while_it_is_indexed_is_indexed_again(tmp_path: Path) -> None:
    path, root = tmp_path / "m.onnx", tmp_path / "cache"
    scaled(path, True)
    model, data = onnx.load(path, load_external_data=False), path.read_bytes()
    model.graph.output[0].name = model.graph.node[1].output[0] = "z"

    class Changing(Context):
        def progress(self, *state: Any) -> None:
            if state[0] == 2:
                change(path, data, model.SerializeToString())

    action_index(cast(JobContext, Changing(path=str(path), cache=str(root))))
    index = indexed(path, root)
    assert index.tensor_name(index.node_outputs(1)[0]) == "z"


def history_of(path: Path, root: Path) -> History:
    with ModelFile(path) as file:
        return History.open(Structure.open(file), root)


@pytest.mark.parametrize("external", [False, True], ids=["inside", "external"])
def test_a_folded_model_holds_for_the_weights_that_it_was_made_of(external: bool, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    file = scaled(path, external)

    def folded() -> set[float]:
        history = history_of(path, tmp_path)
        if not history.edits:
            history.do(edit_from({"edit": "fold"}))
        save(history.structure, tmp_path / "folded.onnx", overwrite=True)
        found = load_model(tmp_path / "folded.onnx").graph.initializer
        return {float(value) for tensor in found for value in numpy_helper.to_array(tensor)}

    assert folded() == {4} == folded()
    weights_to(file, 3)
    assert folded() == {6}


def test_a_folded_model_is_not_folded_again_unless_versions_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.onnx"
    scaled(path, False)
    calls, fold = [], Fold._applied

    def counted(self: Fold, before: Structure) -> Structure:
        calls.append(self)
        return fold(self, before)

    monkeypatch.setattr(Fold, "_applied", counted)
    history_of(path, tmp_path).do(edit_from({"edit": "fold"}))
    for changed in ({}, {"onnxruntime_gpu": "another"}, {"onnx": "another"}):
        monkeypatch.setattr(records, "versions", lambda changed=changed: {**versions(), **changed})
        calls.clear()
        assert history_of(path, tmp_path).structure.initializers
        assert len(calls) == bool(changed), changed


def test_weights_that_change_while_a_model_is_folded_leave_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, fold = tmp_path / "m.onnx", Fold._applied
    file = scaled(path, True)

    def slow(self: Fold, before: Structure) -> Structure:
        found = fold(self, before)
        weights_to(file, 3)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(Fold, "_applied", slow)
        history_of(path, tmp_path).do(edit_from({"edit": "fold"}))
    structure = history_of(path, tmp_path).structure
    save(structure, tmp_path / "folded.onnx")
    (tensor,) = load_model(tmp_path / "folded.onnx").graph.initializer
    assert set(numpy_helper.to_array(tensor)) == {6}
