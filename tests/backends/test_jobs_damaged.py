"""One damaged job is named and takes no other along: lists, shows, retries and prunes go on without it."""

import asyncio
import os
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count, product
from pathlib import Path

import pytest
from support import damage
from support.jobs import alive, jobs_home, pids_of, run, submit, until, wait_for

from backends.errors import LayerwiseError
from backends.jobs.client import JobClient
from backends.jobs.spec import JobSpec
from backends.jobs.store import Workspace
from tui.__main__ import main

__all__ = ["jobs_home"]

CASES = [
    (name, how)
    for name, how in product(damage.FILES, damage.REPLACED)
    if not (name == "" and how in ("folder", "missing"))
]
NAMED = ("folder", "link to a file", "link to zeros", "link to a folder", "dangling link", "loop", "pipe", "socket", "device")


def named(name: str, how: str) -> bool:
    """Whether the job is to be called damaged, and not only without a file that it may be without."""
    if name == "artifacts":
        return how not in ("folder", "missing")
    return how in NAMED or name == "" or (how == "missing" and name in ("events.jsonl", "spec.json"))


def damaged_jobs(home: Workspace) -> dict[int, tuple[str, str]]:
    """Two good jobs, and a copy of one for each case, every other one of them as if its processes had been killed."""
    good = run(home, "rows").folder
    run(home, "raise_error")
    made = {}
    for number, case in zip(count(3), CASES, strict=False):
        copy = home.jobs / str(number)
        shutil.copytree(good, copy)
        if number % 2:
            lines = (copy / "events.jsonl").read_bytes().splitlines(keepends=True)
            (copy / "events.jsonl").write_bytes(b"".join(lines[:3]))
        damage.replace(copy / case[0] if case[0] else copy, case[1])
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


def test_every_file_replaced_by_everything(jobs_home: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    cases = damaged_jobs(jobs_home)
    views = {view.id: view for view in jobs_home.list_jobs()}
    assert set(views) == {1, 2, *cases}
    code, listed = command(capsys, "jobs", "list", "--all")
    lines = {int(line.split()[0]): line for line in listed.splitlines()[1:]}
    assert code == 0 and set(lines) == set(views)
    assert [views[job].state for job in (1, 2)] == ["done", "failed"]
    for job, (name, how) in cases.items():
        view = views[job]
        assert view.final, (job, name, how, view.state)
        assert bool(view.damage) == named(name, how), (job, name, how, view.damage)
        assert (name or "its folder") in view.damage or not view.damage
        if named(name, how):
            assert "damaged" in lines[job] and (name or "its folder") in lines[job]
        assert command(capsys, "jobs", "show", job)[0] == 0
        assert command(capsys, "attach", job)[0] == (0 if view.state == "done" else 1)
        assert command(capsys, "jobs", "logs", job)[0] in ((0, 1) if name in ("log.txt", "") else (0,))
        assert command(capsys, "jobs", "cancel", job)[0] == 2
        if view.damage:
            code, text = command(capsys, "jobs", "retry", job)
            assert code == 1 and f"job {job} is damaged: {view.damage}" in text
    _pruned(jobs_home, cases, capsys)


def _pruned(home: Workspace, cases: dict[int, tuple[str, str]], capsys: pytest.CaptureFixture[str]) -> None:
    """Without a number the damaged ones stay, and are named; with it what is theirs goes and nothing else."""
    damaged = [job for job, case in cases.items() if named(*case)]
    code, text = command(capsys, "jobs", "prune")
    assert code == 0 and f"{len(cases) + 2 - len(damaged)} jobs removed" in text
    assert all(f"layerwise jobs prune {job} removes it" in text for job in damaged)
    assert home.ids() == damaged
    code, text = command(capsys, "jobs", "prune", *damaged)
    assert code == 0 and f"{len(damaged)} jobs removed" in text
    assert home.ids() == [] and [path.name for path in home.jobs.iterdir() if path.name.startswith(".trash")] == []
    assert Path("/etc/passwd").exists() and Path("/usr/lib").exists()


def test_names_that_are_no_jobs(jobs_home: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
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
def test_what_belongs_to_no_job_may_be_damaged_too(
    jobs_home: Workspace, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    good = run(jobs_home, "rows").folder
    for job, how in enumerate(damage.REPLACED, 2):
        shutil.copytree(good, jobs_home.jobs / str(job))
        damage.replace(jobs_home.jobs / name, how)
        assert [view.state for view in jobs_home.list_jobs()] == ["done"] * len(jobs_home.ids()), how
        assert job in [view.id for view in jobs_home.list_jobs()]
        assert command(capsys, "jobs", "list")[0] == 0
        assert command(capsys, "jobs", "prune", job)[0] == 0
        damage.clear(jobs_home.jobs / name)


def test_wrong_types_in_every_field(
    jobs_home: Workspace, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the fields of events hold, the job is shown, and the good one beside it is as it was."""
    monkeypatch.setattr("sys.stdin", Path(os.devnull).open())
    good = run(jobs_home, "rows")
    draw = random.Random(11)
    for number in range(2, 202):
        folder, lock = jobs_home.create(JobSpec(action=draw.choice(("compare", "locate", "debug_reduce", "bench", "lint"))))
        os.close(lock)
        damage.write_story(folder / "events.jsonl", draw)
    for number in range(2, 202):
        assert command(capsys, "jobs", "show", number)[0] == 0
        assert command(capsys, "jobs", "show", number, "--json")[0] == 0
        assert command(capsys, "attach", number)[0] in (0, 1, 2, 130)
        assert command(capsys, "attach", number, "--json")[0] in (0, 1, 2, 130)
    assert command(capsys, "jobs", "list", "--all")[0] == 0
    views = jobs_home.list_jobs()
    assert len(views) == 201 and all(view.final for view in views)
    assert views[0].result == good.result
    assert len(Workspace().list_jobs()) == 201
