"""Unused indexes are removed by age and by size; those in use stay."""

import os
import time
from pathlib import Path

import pytest
from support.cli import layerwise
from support.models import mlp

from layerwise._tool.backends.jobs.folder import disk_use
from layerwise._tool.backends.jobs.inline import run_inline
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.debugtools import ACTIONS
from layerwise._tool.surgery.graph.cache import UNUSED, has_index, index_folder, prune_indexes
from layerwise._tool.surgery.graph.index import GraphIndex
from layerwise._tool.surgery.graph.kinds import INDEX_FILE


@pytest.fixture
def models(tmp_path: Path) -> list[Path]:
    """Three models with an index each, the first opened longest ago, all within the hour."""
    paths = []
    for number in range(3):
        path = tmp_path / f"m{number}.onnx"
        path.write_bytes(mlp(layers=number + 1).SerializeToString())
        run_inline(JobSpec(action="index", params={"path": str(path)}), lambda event: None, Workspace(), ACTIONS)
        paths.append(path)
        opened(path, 1000.0 * (3 - number))
    return paths


def folder_of(path: Path) -> Path:
    return index_folder(Workspace().cache, path)


def opened(path: Path, seconds_ago: float) -> None:
    """Set the time of the index's last use."""
    when = time.time() - seconds_ago
    for place in (folder_of(path) / INDEX_FILE, folder_of(path)):
        os.utime(place, (when, when))


def test_indexes_not_opened_for_long_are_removed(models: list[Path]) -> None:
    opened(models[0], UNUSED + 60)
    opened(models[1], UNUSED + 60)
    size = disk_use(folder_of(models[0]))
    mapped = GraphIndex.open(folder_of(models[0]))
    opened(models[0], UNUSED + 60)
    GraphIndex.open(folder_of(models[1]))
    assert prune_indexes(Workspace().cache) == (1, size)
    assert [has_index(folder_of(path)) for path in models] == [False, True, True]
    assert mapped.node_op(0), "who has it open reads on"
    assert prune_indexes(Workspace().cache) == (0, 0)
    assert len(list((Workspace().cache / "files").iterdir())) == 2


def test_the_least_recently_opened_are_removed_beyond_the_size_limit(models: list[Path]) -> None:
    GraphIndex.open(folder_of(models[0]))
    sizes = [disk_use(folder_of(path)) for path in models]
    assert prune_indexes(Workspace().cache, most=sizes[0] + sizes[2]) == (1, sizes[1])
    assert [has_index(folder_of(path)) for path in models] == [True, False, True]
    assert prune_indexes(Workspace().cache, most=0) == (2, sizes[0] + sizes[2])


def test_a_model_whose_index_is_gone_gets_a_new_one(models: list[Path]) -> None:
    prune_indexes(Workspace().cache, most=0)
    run_inline(JobSpec(action="index", params={"path": str(models[0])}), lambda event: None, Workspace(), ACTIONS)
    assert has_index(folder_of(models[0]))


def test_jobs_prune_reports_what_it_freed(models: list[Path], tmp_path: Path) -> None:
    opened(models[2], UNUSED + 60)
    named = layerwise("jobs", "prune", str(Workspace().ids()[0]), cwd=tmp_path).stdout
    assert "1 job removed" in named and "indexes" not in named
    found = layerwise("jobs", "prune", cwd=tmp_path).stdout
    assert "2 jobs removed" in found
    assert "1 indexes of models removed (not opened for 30 days, or beyond 1 GB)" in found and " freed" in found
    assert "indexes" not in layerwise("jobs", "prune", cwd=tmp_path).stdout


def test_an_empty_workspace_has_nothing_to_remove(tmp_path: Path) -> None:
    assert prune_indexes(tmp_path) == (0, 0)
