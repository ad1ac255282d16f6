"""Folders of results, bundles and reports: atomic if their writers are killed at any step, and can be made again."""

import errno
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.killpoints import every_failure, every_kill

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.feeds.writer import FeedsWriter
from layerwise._tool.backends.filesystem import folders
from layerwise._tool.backends.filesystem.folders import note_folders_in, whole_folder
from layerwise._tool.backends.results.writer import open_results_writer
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.debugtools.bundle.write import Fault, write_bundle
from layerwise._tool.debugtools.compare.arithmetic.tolerance import Rule
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.debugtools.compare.table.saving import Savers
from layerwise._tool.debugtools.triage.finding import JobFolders
from layerwise.comparator.running import save_blobs

Content = dict[str, bytes]
FEED = {"x": np.arange(4, dtype=np.float32), "y": np.ones((2, 2), np.int64)}


def results(target: Path) -> None:
    with open_results_writer(target, ["one", "two"]) as writer:
        for iteration in range(3):
            for runner in range(2):
                writer.add(iteration, runner, "x", FEED["x"])
                writer.finish(iteration, runner, 0.0)


def feeds(target: Path) -> None:
    with FeedsWriter(target) as writer:
        for _ in range(3):
            writer.add(FEED)


def bundle(target: Path) -> None:
    write_bundle(
        Fault(
            model=target.parent / "m.onnx", runner=RunnerSpec(kind="onnxrt"), feed=FEED, golden={"x": FEED["x"]},
            rules={"x": Rule(atol=1e-5, rtol=1e-5, stat="elemwise", quantile=0.99)}, title="a fault",
        ),
        target,
    )  # fmt: skip


def blobs(target: Path) -> None:
    with Savers(CompareSpec(save_input_blob=str(target)), []) as savers:
        for number in range(3):
            savers.feed(number, FEED)


def blobs_of_the_api(target: Path) -> None:
    save_blobs(str(target), [FEED] * 3)


def plots(target: Path) -> None:
    with whole_folder(target, merge=True) as new:
        for number in range(3):
            (new / f"t{number}.png").write_bytes(b"new")


def parts(target: Path) -> None:
    with whole_folder(target, ours=lambda name: name.startswith("part"), merge=True) as new:
        for number in range(3):
            (new / f"part{number}.onnx").write_bytes(b"new")


def triage(target: Path) -> None:
    work = target.parent / "work"
    (work / "bundle").mkdir(parents=True, exist_ok=True)
    (work / "bundle" / "model.onnx").write_bytes(b"model")
    with JobFolders(work, target).published() as new:
        for suffix in ("txt", "json", "html"):
            (new / f"report.{suffix}").write_text("new")


WRITERS: dict[Callable[[Path], None], bool] = {
    results: False, feeds: False, bundle: False, blobs: True, blobs_of_the_api: True, plots: True, parts: True,
    triage: True,
}  # fmt: skip
"""Who writes into a folder, and whether that may hold something already."""
EVERY_PLACE = (results, plots, parts)  # what the others have under them too


def prepared(folder: Path, before: Callable[[Path], None]) -> Callable[[], None]:
    def prepare() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy"]
        graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "g", ends[:1], ends[1:])
        onnx.save(helper.make_model(graph, ir_version=9), folder / "m.onnx")
        before(folder / "out")

    return prepare


def nothing(target: Path) -> None:
    """It is not there."""


def empty(target: Path) -> None:
    target.mkdir()


def foreign(target: Path) -> None:
    (target / "mine").mkdir(parents=True)
    (target / "mine" / "notes.txt").write_text("mine")
    (target / "t1.png").write_bytes(b"old")


def older(target: Path) -> None:
    """The folder from before, with more content."""
    target.mkdir()
    for number in range(5):
        (target / f"part{number}.onnx").write_bytes(b"old")


def linked(target: Path) -> None:
    (target.parent / "elsewhere").mkdir()
    target.symlink_to(target.parent / "elsewhere")


def contents(folder: Path) -> Content | None:
    if not folder.exists():
        return None
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def names(content: Content | None) -> set[str] | None:
    return None if content is None else set(content)


@pytest.mark.parametrize("writer", WRITERS, ids=lambda writer: writer.__name__)
def test_a_kill_at_any_step_leaves_the_new_or_old_folder_and_a_rerun_works(
    writer: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "_record", None)
    monkeypatch.setattr(folders, "_earlier", [])
    target, record = tmp_path / "here" / "out", tmp_path / "here" / "record"
    cases = 0
    every = writer in EVERY_PLACE
    for before in (nothing, *((empty, linked) if every else ()), *((foreign, older) if WRITERS[writer] else ())):
        prepare = prepared(tmp_path / "here", before)
        prepare()
        was = contents(target)
        writer(target)
        whole = names(contents(target))
        for step in every_kill(prepare, lambda: (note_folders_in(record), writer(target)), target.parent):
            label = f"{before.__name__}: killed before step {step}"
            found = contents(target)
            if before is foreign:
                assert found is not None and found["mine/notes.txt"] == b"mine", label
            elif (before is older and writer is parts) or before is not older:
                assert found in (was, None) or names(found) == whole, label
            note_folders_in(record)  # as another attempt of the same job
            writer(target)
            assert names(contents(target)) == whole, label
            monkeypatch.setattr(folders, "_record", None)
            monkeypatch.setattr(folders, "_earlier", [])
            record.unlink(missing_ok=True)
            cases += 1
    assert cases >= 8


@pytest.mark.parametrize("writer", WRITERS, ids=lambda writer: writer.__name__)
def test_a_failure_at_any_step_leaves_nothing_incomplete(writer: Callable[[Path], None], tmp_path: Path) -> None:
    target = tmp_path / "here" / "out"
    error = OSError(errno.EIO, "the disk")
    for before in (nothing, *((older,) if writer is parts else ())):
        prepare = prepared(tmp_path / "here", before)
        prepare()
        was = contents(target)
        writer(target)
        whole = names(contents(target))
        for step in every_failure(prepare, lambda: writer(target), target.parent, error):
            found = contents(target)  # whole where there is another way than the one that failed
            assert found == was or names(found) == whole, f"{before.__name__}: step {step}"
            assert not [path for path in target.parent.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("writer", [writer for writer, fills in WRITERS.items() if not fills])
def test_foreign_files_are_never_replaced(writer: Callable[[Path], None], tmp_path: Path) -> None:
    target = tmp_path / "here" / "out"
    prepared(tmp_path / "here", foreign)()
    was = contents(target)
    with pytest.raises(UsageError):
        writer(target)
    assert contents(target) == was


def test_an_earlier_attempts_folder_with_a_foreign_file_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "_record", None)
    monkeypatch.setattr(folders, "_earlier", [])
    prepared(tmp_path / "here", nothing)()
    target, record = tmp_path / "here" / "out", tmp_path / "here" / "record"
    note_folders_in(record)
    bundle(target)
    note_folders_in(record)
    bundle(target)
    note_folders_in(record)
    (target / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="exists already"):
        bundle(target)
    assert (target / "notes.txt").read_text() == "mine"
