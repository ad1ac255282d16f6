"""The workspace: ids, list and its index, disk usage, pruning."""

import json
import os
from pathlib import Path
from typing import NoReturn

import pytest
from support.clean_fork import fork
from support.cpu_time import cpu_seconds
from support.jobs import events_of, jobs_home, row_of, run, wait_for
from support.jobs import submit_forked as submit

from layerwise._tool.backends.errors import BadFile, UsageError
from layerwise._tool.backends.jobs.journal.events import EventWriter
from layerwise._tool.backends.jobs.processes.cards import Ending
from layerwise._tool.backends.jobs.processes.conclude import conclude
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.waiting.hub import FOLDER
from layerwise._tool.backends.jobs.waiting.watch import Watch
from layerwise._tool.backends.jobs.workspace.prune import prune
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.backends.trt.store import prune_engines

__all__ = ["jobs_home"]


def _finished(home: Workspace, count: int) -> list[int]:
    ids = []
    for _ in range(count):
        folder, lock = home.create(JobSpec(action="test_rows", title="t"))
        EventWriter(folder).write("result", data={})
        conclude(folder, 1, Ending(0, swept=True))
        os.close(lock)
        ids.append(home.view(int(folder.name)).id)
    return ids


def _create_and_leave(count: int) -> NoReturn:
    code = 1
    try:
        for _ in range(count):
            os.close(Workspace().create(JobSpec(action="test_rows"))[1])
        code = 0
    finally:
        os._exit(code)


def test_ids_are_unique_across_processes(jobs_home: Workspace) -> None:
    children = []
    for _ in range(4):
        if (child := fork()) == 0:
            _create_and_leave(20)
        children.append(child)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * 4
    assert jobs_home.ids() == list(range(1, 81))


def test_ids_are_not_reused(jobs_home: Workspace) -> None:
    ids = _finished(jobs_home, 3)
    assert prune(jobs_home, [3])[0] == [3]
    assert _finished(jobs_home, 1) == [4]
    assert ids == [1, 2, 3]


def test_the_list_agrees_with_the_journals(jobs_home: Workspace) -> None:
    run(jobs_home, "rows")
    run(jobs_home, "raise_error")
    live = submit(jobs_home, "hang")
    row_of(jobs_home, live, "layers")

    def told() -> list[tuple[object, ...]]:
        views = jobs_home.list_jobs()
        return [(view.id, view.state, view.counts, (view.card or {}).get("kind"), view.result) for view in views]

    first = told()
    assert [(row[0], row[1]) for row in first] == [(1, "done"), (2, "failed"), (3, "running")]
    index = jobs_home.root / "index.sqlite"
    assert told() == first
    for damage in (b"not a database", b"", index.read_bytes()[:2000]):
        index.write_bytes(damage)
        assert told() == first
        assert told() == first
    index.unlink()
    assert told() == first


def test_the_index_is_updated_by_a_retry(jobs_home: Workspace) -> None:
    job = run(jobs_home, "raise_error").id
    assert jobs_home.list_jobs()[0].attempt == 1
    _, lock = jobs_home.reopen(job)
    assert [(view.state, view.attempt) for view in jobs_home.list_jobs()] == [("queued", 2)]
    os.close(lock)
    assert [(view.state, view.attempt) for view in jobs_home.list_jobs()] == [("lost", 2)]
    assert [event["state"] for event in events_of(jobs_home, job) if event["type"] == "state"][-2:] == [
        "queued",
        "lost",
    ]


def test_a_list_of_many_jobs_is_quick(jobs_home: Workspace) -> None:
    _finished(jobs_home, 100)
    jobs_home.list_jobs()
    start = cpu_seconds()
    assert len(jobs_home.list_jobs()) == 100
    assert cpu_seconds() - start < 0.3


def test_prune_frees_the_reported_disk_usage(jobs_home: Workspace) -> None:
    for _ in range(3):
        run(jobs_home, "rows")
    live = submit(jobs_home, "hang")
    row_of(jobs_home, live, "layers")
    (jobs_home.folder(1) / "artifacts" / "large").write_bytes(b"\1" * 1_000_000)
    assert 1_000_000 <= jobs_home.view(1).bytes_on_disk < 1_100_000
    removed, freed = prune(jobs_home, keep=2)
    assert (removed, freed >= 1_000_000) == ([1], True)
    assert prune(jobs_home, older_than=3600.0) == ([], 0)
    assert prune(jobs_home, [live]) == ([], 0)
    assert prune(jobs_home)[0] == [2, 3]
    assert jobs_home.ids() == [live]
    assert [view.id for view in jobs_home.list_jobs()] == [live]


def test_prune_by_bytes_removes_the_oldest_until_the_rest_fits(jobs_home: Workspace) -> None:
    jobs = _finished(jobs_home, 4)
    for job in jobs:
        (jobs_home.folder(job) / "artifacts" / "large").write_bytes(b"\1" * 100_000)
    sizes = [jobs_home.view(job).bytes_on_disk for job in jobs]
    assert prune(jobs_home, most=sum(sizes)) == ([], 0)
    assert prune(jobs_home, most=sum(sizes[2:])) == (jobs[:2], sum(sizes[:2]))
    assert prune(jobs_home, most=0, keep=1)[0] == jobs[2:3]
    assert jobs_home.ids() == jobs[3:]


def test_engines_are_pruned_by_bytes_those_used_last_stay(tmp_path: Path) -> None:
    folder = tmp_path / "trt" / "engines"
    folder.mkdir(parents=True)
    for number in range(4):
        path = folder / f"{number}.engine"
        path.write_bytes(b"\1" * 1000)
        os.utime(path, (1000 + number, 1000 + number))
    assert prune_engines(tmp_path) == (0, 0)
    assert prune_engines(tmp_path, 2500) == (2, 2000)
    assert sorted(path.name for path in folder.iterdir()) == ["2.engine", "3.engine"]
    assert prune_engines(tmp_path / "none", 0) == (0, 0)


def test_prune_removes_incomplete_jobs(jobs_home: Workspace) -> None:
    for name in ("7", ".trash-3-1"):
        (jobs_home.jobs / name).mkdir()
    os.utime(jobs_home.jobs / "7", (0, 0))
    assert jobs_home.list_jobs() == []
    prune(jobs_home)
    assert not (jobs_home.jobs / "7").exists()
    assert not (jobs_home.jobs / ".trash-3-1").exists()


def test_a_live_job_cannot_be_retried(jobs_home: Workspace) -> None:
    job = submit(jobs_home, "hang")
    wait_for(jobs_home, job, "running")
    with pytest.raises(UsageError, match="is running"):
        jobs_home.reopen(job)


def test_invalid_job_names_are_rejected(jobs_home: Workspace) -> None:
    for name in ("99", "../..", "", "x", "-1"):
        with pytest.raises(UsageError, match="there is no job"):
            jobs_home.view(name)


def test_the_spec_is_plain_json(jobs_home: Workspace) -> None:
    spec = JobSpec(
        action="test_rows", params={"n": 1, "nested": {"a": [1, None]}}, title="\x1b[31m", cwd="/", env={"A": "b"}
    )
    folder, lock = jobs_home.create(spec)
    os.close(lock)
    assert json.loads((folder / "spec.json").read_text())["params"] == {"n": 1, "nested": {"a": [1, None]}}
    assert jobs_home.view(1).spec == spec
    for damage in ("{", '{"action": 3}', '{"action": "a", "other": 1}', "[" * 100_000):
        (folder / "spec.json").write_text(damage)
        with pytest.raises(BadFile, match=r"spec\.json"):
            _ = jobs_home.view(1).spec


def test_the_workspace_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LAYERWISE_HOME", str(tmp_path / "home"))
    assert Workspace().root == tmp_path / "home"
    assert Workspace(tmp_path / "other").jobs == tmp_path / "other" / "jobs"
    monkeypatch.delenv("LAYERWISE_HOME")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert Workspace().root == tmp_path / "state" / "layerwise"


def test_watchers_of_the_folder_are_notified_of_every_new_job(jobs_home: Workspace) -> None:
    _finished(jobs_home, 1)
    watch = Watch()
    number = watch.add(jobs_home.jobs, FOLDER)
    jobs_home.notify()
    assert watch.drain() == {number}
    watch.close()
