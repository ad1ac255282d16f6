"""A damaged job is named and affects no other: lists, shows, retries and prunes continue without it."""

import asyncio
import json
import os
import random
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from itertools import count, product
from pathlib import Path

import pytest
from support import damage
from support.forked import ForkedWorker
from support.jobs import alive, jobs_home, pids_of, run, until, wait_for
from support.jobs import submit_forked as submit

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.jobs.client import JobClient
from layerwise._tool.backends.jobs.processes import supervise
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.prune import prune
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.tui.__main__ import main

__all__ = ["jobs_home"]

CASES = [
    (name, how)
    for name, how in product(damage.FILES, damage.REPLACED)
    if not (name == "" and how in ("folder", "missing"))
]
LINKS = ("link to a file", "link to zeros", "link to a folder", "dangling link", "loop")
NAMED = ("folder", *LINKS, "pipe", "socket", "device")


def named(name: str, how: str) -> bool:
    """Whether the job is to be called damaged, and not only without a file that it may be without."""
    if name == "artifacts":
        return how not in ("folder", "missing")
    return how in NAMED or name == "" or (how == "missing" and name in ("events.jsonl", "spec.json"))


@pytest.fixture(autouse=True)
def forked_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a job leaves is what matters here: its worker need not import anew; that of a submitted job does."""
    monkeypatch.setattr(supervise, "start_worker", ForkedWorker)


def damaged_jobs(home: Workspace) -> dict[int, tuple[str, str]]:
    """Two good jobs, and a copy of one for each case, every third one of them as if its processes had been killed.

    All copies are an hour old, as none that is still being made is.
    """
    good = run(home, "rows").folder
    run(home, "raise_error")
    made = {}
    for number, case in zip(count(3), CASES, strict=False):
        copy = home.jobs / str(number)
        shutil.copytree(good, copy)
        if number % 3 == 0:
            lines = (copy / "events.jsonl").read_bytes().splitlines(keepends=True)
            (copy / "events.jsonl").write_bytes(b"".join(lines[:3]))
        damage.replace(copy / case[0] if case[0] else copy, case[1])
        hour_ago = time.time() - 3600
        with suppress(FileNotFoundError):  # a link that leads nowhere is there
            os.utime(copy, (hour_ago, hour_ago), follow_symlinks=False)
        made[number] = case
    return made


def command(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str]:
    """Exit code and output of a command line."""
    capsys.readouterr()
    code = main([str(word) for word in words])
    said = capsys.readouterr()
    text = said.out + said.err
    assert "Traceback" not in text and "\x1b" not in text, (words, text)
    return code, text


def test_any_file_of_a_job_may_be_replaced_by_anything(
    jobs_home: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = damaged_jobs(jobs_home)
    views = {view.id: view for view in jobs_home.list_jobs()}
    assert set(views) == {1, 2, *cases}
    code, listed = command(capsys, "jobs", "list", "--all")
    lines = {int(line.split()[0]): line for line in listed.splitlines()[1:]}
    assert code == 0 and set(lines) == set(views)
    assert [views[job].state for job in (1, 2)] == ["done", "failed"]
    for number, (job, (name, how)) in enumerate(cases.items()):
        view = views[job]
        assert view.final, (job, name, how, view.state)
        assert bool(view.damage) == named(name, how), (job, name, how, view.damage)
        assert (name or "its folder") in view.damage or not view.damage
        if named(name, how):
            assert "damaged" in lines[job] and (name or "its folder") in lines[job]
        if number % 2 or name in ("events.jsonl", ""):
            assert command(capsys, "jobs", "show", job)[0] == 0
            assert command(capsys, "attach", job)[0] == (0 if view.state == "done" else 1)
        if not number % 2 or name in ("log.txt", ""):
            assert command(capsys, "jobs", "logs", job)[0] in ((0, 1) if name in ("log.txt", "") else (0,))
            assert command(capsys, "jobs", "cancel", job)[0] == 2
        if view.damage:
            code, text = command(capsys, "jobs", "retry", job)
            assert code == 1 and f"job {job} is damaged: {view.damage}" in text
    _pruned(jobs_home, cases, capsys)


def _pruned(home: Workspace, cases: dict[int, tuple[str, str]], capsys: pytest.CaptureFixture[str]) -> None:
    """Without a number the damaged ones stay, and are named; with it only their own files are removed."""
    damaged = [job for job, case in cases.items() if named(*case)]
    code, text = command(capsys, "jobs", "prune")
    assert code == 0 and f"{len(cases) + 2 - len(damaged)} jobs removed" in text
    assert all(f"layerwise jobs prune {job} removes it" in text for job in damaged)
    assert home.ids() == damaged
    code, text = command(capsys, "jobs", "prune", *damaged)
    assert code == 0 and f"{len(damaged)} jobs removed" in text
    assert home.ids() == [] and [path.name for path in home.jobs.iterdir() if path.name.startswith(".trash")] == []
    assert Path("/etc/passwd").exists() and Path("/usr/lib").exists()


def test_pruning_neither_follows_nor_removes_a_link_in_place_of_a_job(jobs_home: Workspace, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    link = jobs_home.jobs / "7"
    link.symlink_to(target)
    os.utime(link, (0, 0), follow_symlinks=False)
    assert prune(jobs_home) == ([], 0)
    assert link.is_symlink() and list(target.iterdir()) == []
    assert prune(jobs_home, [7])[0] == [7]
    assert not link.is_symlink() and list(target.iterdir()) == []


def test_folders_with_other_names_are_not_jobs(jobs_home: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    good = run(jobs_home, "rows").folder
    for number, name in enumerate(damage.STRANGE_NAMES):
        shutil.copytree(good, jobs_home.jobs / name)
        if number % 2:
            (jobs_home.jobs / name / "spec.json").unlink()
            os.utime(jobs_home.jobs / name, (0, 0))
    (jobs_home.jobs / ".last").write_text("٣" * 400)
    for name in damage.STRANGE_NAMES:
        for words in (["show"], ["show", "--json"], ["logs"], ["cancel"], ["retry"], ["prune"]):
            assert command(capsys, "jobs", *words, "--", name)[0] == 2, (words, name)
        assert command(capsys, "attach", "--", name)[0] == 2
    assert [view.id for view in jobs_home.list_jobs()] == [1]
    assert run(jobs_home, "rows").id == 2
    assert command(capsys, "jobs", "prune")[0] == 0
    assert {path.name for path in jobs_home.jobs.iterdir()} >= set(damage.STRANGE_NAMES)


@pytest.mark.parametrize("name", [".last", ".bell", "../index.sqlite", "../index.sqlite-journal"])
def test_workspace_files_outside_jobs_may_be_damaged(
    jobs_home: Workspace, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    good = run(jobs_home, "rows")
    assert good.state == "done", (good.card, good.last_event)
    for job, how in enumerate(damage.REPLACED, 2):
        shutil.copytree(good.folder, jobs_home.jobs / str(job))
        damage.replace(jobs_home.jobs / name, how)
        assert [view.state for view in jobs_home.list_jobs()] == ["done"] * len(jobs_home.ids()), how
        assert job in [view.id for view in jobs_home.list_jobs()]
        assert command(capsys, "jobs", "list")[0] == 0
        assert command(capsys, "jobs", "prune", job)[0] == 0
        damage.clear(jobs_home.jobs / name)


def test_wrong_types_in_any_field_are_tolerated(
    jobs_home: Workspace, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the fields of events contain, the job is listed, and the good one is unaffected."""
    monkeypatch.setattr("sys.stdin", Path(os.devnull).open())  # noqa: SIM115
    good = run(jobs_home, "rows")
    draw = random.Random(11)
    for _ in range(40):
        action = draw.choice(("compare", "locate", "debug_reduce", "bench", "lint"))
        folder, lock = jobs_home.create(JobSpec(action=action))
        os.close(lock)
        damage.write_story(folder / "events.jsonl", draw)
    for number in range(2, 42):
        assert command(capsys, "jobs", "show", number)[0] == 0
        assert command(capsys, "jobs", "show", number, "--json")[0] == 0
        assert command(capsys, "attach", number)[0] in (0, 1, 2, 130)
        assert command(capsys, "attach", number, "--json")[0] in (0, 1, 2, 130)
    assert command(capsys, "jobs", "list", "--all")[0] == 0
    views = jobs_home.list_jobs()
    assert len(views) == 41 and all(view.final for view in views)
    assert views[0].result == good.result
    assert len(Workspace().list_jobs()) == 41


class Beside:
    """A live job whose lock file is damaged in one way after the other, and what others do to it meanwhile."""

    def __init__(self, home: Workspace) -> None:
        self.home = home
        self.job = submit(home, "hang")
        wait_for(home, self.job, "running")
        self.pids = pids_of(home, self.job)
        self.folder = home.folder(self.job)

    def lives_on(self, what: object) -> None:
        """Lists, prunes and retries change nothing."""
        for look in (self.home.list_jobs, Workspace().list_jobs):
            assert [view.state for view in look() if view.id == self.job] == ["running"], what
        assert prune(self.home)[0] == [] and prune(self.home, [self.job])[0] == [], what
        with pytest.raises(LayerwiseError, match=r"is running|is damaged"):
            self.home.reopen(self.job)
        assert all(map(alive, self.pids)), what

    def cancelled(self) -> None:
        asyncio.run(JobClient(self.home).cancel(self.job))
        wait_for(self.home, self.job, "cancelled")
        until(lambda: not any(map(alive, self.pids)))


def _moved(path: Path) -> None:
    path.rename(path.with_name("lock.bak"))


def _copied_over(path: Path) -> None:
    other = path.with_name("lock.new")
    shutil.copy(path, other)
    other.rename(path)


@pytest.mark.parametrize("first", [Path.unlink, _moved, _copied_over])
def test_a_live_job_survives_the_loss_of_its_lock_file(jobs_home: Workspace, first: Callable[[Path], None]) -> None:
    """The file is deleted, moved or replaced; whatever takes its place, and whoever reads it, the job lives."""
    beside = Beside(jobs_home)
    first(beside.folder / "lock")
    beside.lives_on(first)
    for how in damage.REPLACED if first is Path.unlink else ("folder",):  # by then there is none, or not its own
        damage.replace(beside.folder / "lock", how)
        beside.lives_on(how)
    for name in ("spec.json", "log.txt", "reserve", "artifacts") if first is Path.unlink else ():
        (beside.folder / name).rename(jobs_home.root / name)
        os.utime(beside.folder, (0, 0))
        beside.lives_on(name)
        (jobs_home.root / name).rename(beside.folder / name)
    damage.clear(beside.folder / "lock")
    beside.cancelled()


def test_a_queued_job_survives_the_loss_of_its_lock_file(jobs_home: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no worker yet, and no process in its journal."""
    blocker = submit(jobs_home, "hang", cpus=1000)
    wait_for(jobs_home, blocker, "running")
    job = submit(jobs_home, "rows")
    until(lambda: jobs_home.view(job).reason)
    for how in damage.REPLACED:
        damage.replace(jobs_home.folder(job) / "lock", how)
        assert {view.id: view.state for view in jobs_home.list_jobs()} == {blocker: "running", job: "queued"}, how
        assert prune(jobs_home, [job])[0] == []
    damage.clear(jobs_home.folder(job) / "lock")
    asyncio.run(JobClient(jobs_home).cancel(blocker))
    wait_for(jobs_home, job, "done")


def test_a_copy_of_a_live_job_is_a_separate_job(jobs_home: Workspace) -> None:
    """A copied folder names the processes of the original job, not its own."""
    beside = Beside(jobs_home)
    shutil.copytree(beside.folder, jobs_home.jobs / "7")
    assert wait_for(jobs_home, 7, "lost").state == "lost"
    assert all(map(alive, beside.pids))
    assert jobs_home.view(beside.job).state == "running"
    beside.cancelled()


def _schema(*statements: str) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        path.unlink(missing_ok=True)
        with closing(sqlite3.connect(path)) as database:
            for statement in statements:
                database.execute(statement)
            database.commit()

    return make


_TABLE = "CREATE TABLE jobs (id INTEGER PRIMARY KEY, view TEXT NOT NULL)"
_ENDLESS = "WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) SELECT id, 'x' AS view FROM n"
FOREIGN = {
    "another table": _schema("CREATE TABLE jobs (number TEXT)"),
    "a table more": _schema(_TABLE, "CREATE TABLE other (x)"),
    "an endless view": _schema(f"CREATE VIEW jobs AS {_ENDLESS}"),
    "a trigger": _schema(_TABLE, "CREATE TRIGGER t AFTER INSERT ON jobs BEGIN DELETE FROM jobs; END"),
    "blobs": _schema(_TABLE, "INSERT INTO jobs VALUES (1, x'00ff')"),
    "no json": _schema(_TABLE, "INSERT INTO jobs VALUES (1, '{')"),
    "deep json": _schema(_TABLE, f"INSERT INTO jobs VALUES (1, '{'[' * 100_000}')"),
    "huge numbers": _schema(_TABLE, "INSERT INTO jobs VALUES (9223372036854775807, '{}')"),
}


@pytest.mark.parametrize("what", FOREIGN)
def test_a_foreign_index_does_not_affect_the_list(jobs_home: Workspace, what: str) -> None:
    run(jobs_home, "rows")
    FOREIGN[what](jobs_home.root / "index.sqlite")
    for _ in range(2):
        assert [(view.state, view.counts) for view in jobs_home.list_jobs()] == [("done", {"layers": 10})]


def test_wrong_types_in_the_index_are_tolerated(jobs_home: Workspace) -> None:
    """Each field of a view, in turn, with values that it cannot have."""
    draw = random.Random(5)
    run(jobs_home, "rows")
    (known,) = jobs_home.list_jobs()
    fields = [name for name in vars(known) if name != "folder"]
    for name, value in [(name, value) for name in fields for value in draw.sample(damage.VALUES, 4)]:
        row = json.dumps({**json.loads(known.to_json()), name: value})
        with closing(sqlite3.connect(jobs_home.root / "index.sqlite")) as database:
            database.execute("PRAGMA synchronous = OFF")
            database.execute("INSERT OR REPLACE INTO jobs VALUES (1, ?)", (row,))
            database.commit()
        (view,) = jobs_home.list_jobs()
        assert view.final and view.id == 1, (name, value)
        view.to_json()


def test_a_locked_index_is_bypassed(jobs_home: Workspace) -> None:
    run(jobs_home, "rows")
    jobs_home.list_jobs()
    with closing(sqlite3.connect(jobs_home.root / "index.sqlite", isolation_level=None)) as database:
        database.execute("BEGIN EXCLUSIVE")
        assert [view.state for view in jobs_home.list_jobs()] == ["done"]
        database.execute("ROLLBACK")
    assert [view.state for view in jobs_home.list_jobs()] == ["done"]
