"""A model and its external data change together: a kill or failure at any step leaves no mixture."""

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.killpoints import every_failure, every_kill

from layerwise._tool.backends.filesystem.temporary import sweep
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.debugtools.compare.sides.save_model import write_onnx
from layerwise._tool.surgery.cut import file as live_file
from layerwise._tool.surgery.cut.file import write_cut
from layerwise._tool.surgery.cut.segments import GraphCut, Segment
from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.saving.model import save
from layerwise.backend.onnx import save_onnx

OPTIONS = onnxruntime.SessionOptions()
OPTIONS.intra_op_num_threads = 1
OPTIONS.log_severity_level = 4
FEED = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)


def model(seed: int) -> onnx.ModelProto:
    """Two products with weights of the same shapes, Neg or Tanh behind them: the weights of one load into the other."""
    rng = np.random.default_rng(seed)
    weights = [numpy_helper.from_array(rng.standard_normal((4, 4)).astype(np.float32), f"w{k}") for k in range(2)]
    nodes = [helper.make_node("MatMul", ["x", "w0"], ["h"]), helper.make_node("MatMul", ["h", "w1"], ["i"])]
    nodes.append(helper.make_node("Neg" if seed == 1 else "Tanh", ["i"], ["y"]))
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 4]) for name in "xy"]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def outputs(path: Path) -> bytes | None:
    """Return a model's outputs for the feed; None if it does not exist or cannot be loaded."""
    try:
        session = onnxruntime.InferenceSession(path, OPTIONS, ["CPUExecutionProvider"])
    except Exception:  # onnxruntime's own classes, by what is wrong
        return None
    return np.asarray(session.run(None, {"x": FEED})[0]).tobytes()


def structure(seed: int) -> Structure:
    return Structure.from_proto(model(seed))


def save_named(seed: int, path: Path) -> None:
    save(structure(seed), path, external=Path("weights.bin"), threshold=0, overwrite=True)


def save_below(seed: int, path: Path) -> None:
    save(structure(seed), path, external=Path("below/weights.bin"), threshold=0, overwrite=True)


def save_outside_again(seed: int, path: Path) -> None:
    """Read from the very files that are to be replaced: what `surgeon --overwrite` does."""
    source = path.parent / f"source-{seed}"
    with ModelFile(source / "m.onnx") as file:
        save(Structure.open(file), path, threshold=0, overwrite=True)


def save_embedded(seed: int, path: Path) -> None:
    save(structure(seed), path, overwrite=True)


def save_as_run(seed: int, path: Path) -> None:
    write_onnx(model(seed), path, "weights.bin", 0)


def save_each_apart(seed: int, path: Path) -> None:
    write_onnx(model(seed), path, "", 0, one_file=False)


def save_by_the_api(seed: int, path: Path) -> None:
    save_onnx(model(seed), str(path), external_data_path="weights.bin", size_threshold=0)


def save_by_the_api_inside(seed: int, path: Path) -> None:
    save_onnx(model(seed), str(path))


def save_cut(seed: int, path: Path) -> None:
    source = path.parent / f"source-{seed}"
    with ModelFile(source / "m.onnx") as file:
        cut = GraphCut(file.structure())
        part = Segment((0, 1, 2), ("x",), ("y",))
        tensors = dict.fromkeys("xhiy", FEED)
        write_cut(path, cut, part, tensors, file.folder)


WRITERS: list[Callable[[int, Path], None]] = [
    save_named, save_below, save_outside_again, save_embedded, save_as_run, save_each_apart, save_by_the_api,
    save_by_the_api_inside, save_cut,
]  # fmt: skip


def nothing(path: Path) -> None:
    """No file is there."""


def embedded(path: Path) -> None:
    onnx.save(model(1), path)


def pair(path: Path) -> None:
    onnx.save(model(1), path, save_as_external_data=True, location="weights.bin", size_threshold=0)


def pair_of_data(path: Path) -> None:
    onnx.save(model(1), path, save_as_external_data=True, location=f"{path.name}.data", size_threshold=0)


def without_weights(path: Path) -> None:
    pair(path)
    (path.parent / "weights.bin").unlink()


def linked(path: Path) -> None:
    other = path.parent / "other"
    other.mkdir()
    onnx.save(model(1), other / "real.onnx")
    path.symlink_to(other / "real.onnx")


def same_again(writer: Callable[[int, Path], None]) -> Callable[[Path], None]:
    return lambda path: writer(1, path)


OFTEN, SELDOM = [nothing, pair_of_data], [embedded, without_weights, linked]


@pytest.fixture(autouse=True)
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_file, "EMBED_LIMIT", 0)
    for seed in (1, 2):
        folder = tmp_path / "sources" / f"source-{seed}"
        folder.mkdir(parents=True)
        onnx.save(model(seed), folder / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)


def prepared(tmp_path: Path, before: Callable[[Path], None]) -> Callable[[], None]:
    folder = tmp_path / "here"

    def prepare() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(tmp_path / "sources", folder)
        before(folder / "m.onnx")

    return prepare


@pytest.mark.parametrize("writer", WRITERS, ids=lambda writer: writer.__name__)
def test_a_kill_at_any_step_leaves_the_old_or_new_model_or_none(
    writer: Callable[[int, Path], None], tmp_path: Path
) -> None:
    path = tmp_path / "here" / "m.onnx"
    embedded(tmp_path / "old.onnx")
    onnx.save(model(2), tmp_path / "new.onnx")
    old, new = outputs(tmp_path / "old.onnx"), outputs(tmp_path / "new.onnx")
    cases = 0
    number = WRITERS.index(writer)
    for before in (pair, OFTEN[number % 2], SELDOM[number % len(SELDOM)], same_again(writer)):
        known = {new, None, old if before is not nothing else None}
        prepared(tmp_path, before)()
        ran = outputs(path) is not None and before is not linked  # whose files lie in two folders
        for step in every_kill(prepared(tmp_path, before), lambda: writer(2, path), path.parent):
            assert outputs(path) in known, f"{before.__name__}: killed before step {step}"
            for each in (path.parent, *(entry for entry in path.parent.iterdir() if entry.is_dir())):
                sweep(each)  # as the next writer there does
            assert outputs(path) is not None or not ran, f"{before.__name__}: lost at step {step}"
            assert not [name for name in contents(path.parent) if ".tmp" in name], f"{before.__name__}: step {step}"
            cases += 1
        assert outputs(path) == new, before.__name__
        prepared(tmp_path, before)()
    assert cases >= 20 or writer in (save_embedded, save_by_the_api_inside)


@pytest.mark.parametrize("writer", WRITERS, ids=lambda writer: writer.__name__)
def test_a_failure_at_any_step_leaves_the_old_or_new_model(writer: Callable[[int, Path], None], tmp_path: Path) -> None:
    path = tmp_path / "here" / "m.onnx"
    onnx.save(model(2), tmp_path / "new.onnx")
    new, error = outputs(tmp_path / "new.onnx"), OSError(errno.EIO, os.strerror(errno.EIO))
    for before in ((nothing, linked)[WRITERS.index(writer) % 2], same_again(writer)):
        prepare = prepared(tmp_path, before)
        prepare()
        was = contents(path.parent)
        for step in every_failure(prepare, lambda: writer(2, path), path.parent, error):
            now = contents(path.parent)
            got_round = outputs(path) == new and not any(".tmp" in name for name in now)
            assert now == was or got_round, f"{before.__name__}: step {step}"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
