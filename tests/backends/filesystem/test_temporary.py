"""Leftovers of killed writers are removed by the next writer or with their job; the user's own files never are."""

import fcntl
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest
from support.forked import ForkedWorker
from support.jobs import jobs_home, run
from support.writers import (
    WAYS,
    kill_points,
    lines_of,
    lose_job,
    sweep_in_a_fork,
    write,
    write_swept,
)

from layerwise._tool.backends.jobs.journal.view import JobView
from layerwise._tool.backends.jobs.processes import supervise
from layerwise._tool.backends.jobs.workspace.prune import prune
from layerwise._tool.backends.jobs.workspace.store import Workspace

__all__ = ["jobs_home"]

LOOKALIKES = (
    ".out.txt.abcd1234.tmp", ".out.json.k3x9_z1a.tmp", "out.tmp", ".out.tmp", ".out..tmp", ".out.part",
    f".out.json.{'0' * 32}.tmp", f".out.json.{'0123456789abcdef' * 2}.tmp", f".out.{'f' * 32}.tmp",
)  # fmt: skip


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the user's own files in it, and his folder for temporary ones."""
    folder, aside = tmp_path / "place", tmp_path / "aside"
    for made in (folder, aside):
        made.mkdir()
        for name in LOOKALIKES:
            (made / name).write_text(f"{name} is the user's")
        (made / f".mine.{'0' * 32}.tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(aside))
    monkeypatch.setattr("tempfile.tempdir", None)
    return folder


def names(folder: Path) -> set[str]:
    return {f"{made.name}/{path.name}" for made in (folder, folder.parent / "aside") for path in made.iterdir()}


def remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


LESS = ("no unnamed files", "no links")
"""Systems that lack something: each way of writing meets all there is, and one of these."""


def on_systems(ways: Iterable[str]) -> list[tuple[str, str]]:
    return [(way, system) for number, way in enumerate(ways) for system in ("all", LESS[number % 2])]


@pytest.mark.parametrize(("way", "system"), on_systems(WAYS))
def test_the_next_writer_removes_leftovers_of_killed_ones(place: Path, way: str, system: str) -> None:
    target = place / WAYS[way][0]
    before = names(place)
    lines = lines_of(way, system, target)
    wanted = names(place)
    whole = contents(place)
    least, killed = 4 if system == "all" and not way.startswith("large") else 3, 0
    for number, last in enumerate(kill_points(lines, least, seed=len(way) + len(system))):
        replaced = number % 2 == 1 and target.is_file()
        if not replaced:
            remove(target)
        remove(place / "out.data")
        old = target.read_bytes() if replaced else None
        killed += write(way, system, target, last) == -9  # another way may be a few lines shorter
        if target.is_file():
            assert target.read_bytes() in (old, whole[target.name]), last
        assert names(place) >= before
        remove(target)
        assert write(way, system, target) == 0
        assert (names(place), contents(place)) == (wanted, whole), last
    assert killed > least // 2


@pytest.mark.parametrize("way", [way for way in WAYS if not way.startswith("large")])
def test_concurrent_sweeps_remove_nothing_of_a_live_writer(place: Path, way: str) -> None:
    target = place / WAYS[way][0]
    assert write(way, "all", target) == 0
    wanted, whole = names(place), contents(place)
    number = list(WAYS).index(way)  # each way meets three of the seven places to begin, all ways together each of them
    for first in ((number + more) % 7 for more in (0, 2, 5)):
        remove(target)
        remove(place / "out.data")
        assert write_swept(way, target, (place, place.parent / "aside"), 7, first) == 0
        assert (names(place), contents(place)) == (wanted, whole), first


def test_live_and_copied_temporary_files_stay(place: Path) -> None:
    """A live writer's file, a copy of a dead one's under another name, one that another user has."""
    from layerwise._tool.backends.filesystem.temporary import open_named

    fd, live = open_named(place / "out.txt")
    folder_fd, dead = open_named(place / "out.txt")
    os.close(folder_fd)
    shutil.copy(dead, dead.with_name(f"{dead.name}.kept"))
    shutil.copy(dead, dead.with_name(dead.name.replace("out", "mine")))
    kept = names(place) - {f"place/{dead.name}"}
    assert write("text", "all", place / "out.txt") == 0
    assert names(place) == kept | {"place/out.txt"}
    os.close(fd)
    assert write("text", "all", place / "out.txt") == 0
    assert not live.exists()


def test_a_surviving_fork_keeps_its_files(place: Path) -> None:
    assert sweep_in_a_fork(place / "out")


@pytest.mark.parametrize(
    ("way", "system"),
    on_systems(["text", "model and data", "results", "folder of results", "temporary folder", "feeds"]),
)
def test_a_jobs_temporary_files_are_removed_with_it(
    jobs_home: Workspace, place: Path, way: str, system: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker is killed at some line: nothing is left when the job has ended, though nobody writes there again."""
    monkeypatch.setattr(supervise, "start_worker", ForkedWorker)
    target = place / WAYS[way][0]
    target.write_text("what was there") if target.suffix else None
    before = names(place)
    lines = lines_of(way, system, target)
    killed = 0
    least = 4 if system == "all" else 2
    for last in kill_points(lines - lines // 10, least, seed=len(way)):
        if not target.suffix:
            remove(target)
        view = run(jobs_home, "write", {"way": way, "system": system, "path": str(target), "last": last})
        killed += view.state == "failed" and "SIGKILL" in (view.card or {})["summary"]
        assert names(place) - {f"place/{target.name}", "place/out.data"} == before - {f"place/{target.name}"}, last
        assert not [path for path in view.folder.rglob(".*") if path.suffix == ".tmp"]
    assert killed >= least // 2


@pytest.mark.parametrize("sweeper", ["list", "retry", "prune"])
def test_leftovers_of_a_lost_job_are_removed(jobs_home: Workspace, place: Path, sweeper: str) -> None:
    """Worker and supervisor die together."""
    before = names(place)
    lines = lines_of("results", "no unnamed files", place / "out.json")
    remove(place / "out.json")
    for last in kill_points(lines, 4, seed=1):
        params = {"way": "results", "system": "no unnamed files", "path": str(place / "out.json"), "last": last}
        assert lose_job(params) == -9
        (number,) = jobs_home.ids()
        if sweeper == "list":
            jobs_home.list_jobs()
        elif sweeper == "retry":
            _, lock = jobs_home.reopen(number)
            os.close(lock)
        assert sweeper == "prune" or names(place) - {"place/out.json"} == before
        jobs_home.view(number)
        prune(jobs_home)
        assert names(place) - {"place/out.json"} == before
        remove(place / "out.json")


def test_spilled_tensors_of_a_killed_comparison_are_removed(
    jobs_home: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervise, "start_worker", ForkedWorker)
    for files in (1, 2, 20):
        view: JobView = run(jobs_home, "spill", {"files": files})
        assert view.state == "failed"
        assert not list(view.folder.rglob("*.raw"))


def test_the_lock_of_a_temporary_file_is_seen_by_others(place: Path) -> None:
    from layerwise._tool.backends.filesystem.temporary import open_named

    fd, path = open_named(place / "out.txt")
    other = os.open(path, os.O_RDONLY)
    with pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    for opened in (fd, other):
        os.close(opened)
