"""A full disk gives a clear card, and no incomplete file is taken for a complete one."""

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.jobs import events_of, jobs_home, row_of, run, until, wait_for
from support.jobs import submit_forked as submit

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.jobs.client import JobClient
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.prune import prune
from layerwise._tool.backends.jobs.workspace.store import Workspace

__all__ = ["jobs_home", "small_disk"]


@pytest.fixture
def small_disk(workspace: Path) -> Iterator[Path]:
    """The workspace on a separate disk of 1 MB."""
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "none", workspace], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("a disk of our own cannot be mounted here")
    yield workspace
    subprocess.run(["umount", "-l", workspace], check=True)


@pytest.fixture
def full_home(
    small_disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Workspace:
    monkeypatch.setenv("LAYERWISE_LEASES", str(tmp_path / "leases"))
    home: Workspace = request.getfixturevalue("jobs_home")
    return home


def _fill(folder: Path) -> None:
    with (folder / "ballast").open("wb", buffering=0) as file:
        for size in (65536, 4096, 1):
            while True:
                try:
                    if file.write(b"\1" * size) < size:
                        break
                except OSError:
                    break


@pytest.mark.parametrize("action", ["fill_disk", "fill_journal", "fill_spill"])
@pytest.mark.parametrize("detached", [False, True])
def test_a_job_that_fills_the_disk_fails_with_a_card(full_home: Workspace, action: str, detached: bool) -> None:
    view = wait_for(full_home, submit(full_home, action), "failed") if detached else run(full_home, action)
    assert view.state == "failed"
    assert view.card is not None
    assert view.card["kind"] == "disk"
    assert "no space left" in view.card["summary"]
    rows = [event["row"]["i"] for event in events_of(full_home, view.id) if event["type"] == "row"]
    assert rows == list(range(len(rows))) and rows
    assert all(
        len(event["row"].get("text", "x" * 1000)) >= 1000
        for event in events_of(full_home, view.id)
        if event["type"] == "row"
    )
    assert not list(view.folder.glob("artifacts/.*.tmp"))


def test_a_disk_filled_by_another_process_fails_the_job_with_a_card(full_home: Workspace) -> None:
    removable = run(full_home, "rows").id
    job = submit(full_home, "rows", {"n": 100000, "pause": 0.001})
    row_of(full_home, job, "layers")
    _fill(full_home.root)
    view = wait_for(full_home, job, "failed", seconds=60)
    assert (view.card or {})["kind"] == "disk"
    with pytest.raises(LayerwiseError, match="no space left"):
        full_home.create(JobSpec(action="test_rows"))
    with pytest.raises(LayerwiseError, match="no space left"):
        full_home.reopen(job)
    before = [event["row"]["i"] for event in events_of(full_home, job) if event["type"] == "row"]
    assert prune(full_home, [removable])[0] == [removable]
    (full_home.root / "ballast").unlink()
    asyncio.run(JobClient(full_home).retry(job))
    until(lambda: full_home.view(job).counts["layers"] > len(before))
    asyncio.run(JobClient(full_home).cancel(job))
    wait_for(full_home, job, "cancelled")
    rows = [event["row"]["i"] for event in events_of(full_home, job) if event["type"] == "row"]
    assert rows == list(range(len(rows)))


def test_a_disk_too_full_for_a_job_leaves_no_folder(full_home: Workspace) -> None:
    _fill(full_home.root)
    with pytest.raises(LayerwiseError, match="no space left"):
        full_home.create(JobSpec(action="test_rows"))
    assert full_home.ids() == []
    assert [path for path in full_home.jobs.iterdir() if path.name.isdecimal()] == []


def test_a_file_size_limit_fails_the_job_with_a_card(jobs_home: Workspace) -> None:
    """The same without a disk of our own: files may not grow beyond 200 KB."""
    card = run(jobs_home, "limited", {"bytes": 200_000}).card or {}
    assert card["kind"] == "disk"
    rows = [event["row"]["i"] for event in events_of(jobs_home, 1) if event["type"] == "row"]
    assert rows == list(range(len(rows))) and len(rows) > 100
