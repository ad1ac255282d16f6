"""Children in their own sessions die with a job whose supervisor is killed, immediately and without a client."""

import json
import os
import signal
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest
from support import forkserver
from support.debugging import saved
from support.jobs import alive, jobs_home, kill, pids_of, submit, submit_warm, until
from support.models import mlp
from support.writers import forked

from layerwise._tool.backends.jobs.processes import control
from layerwise._tool.backends.jobs.processes.control import python, tagged
from layerwise._tool.backends.jobs.workspace.store import Workspace

__all__ = ["jobs_home"]

_CHECK = """
import json, os, subprocess, sys, time
def session(): os.setsid()
def group(): os.setpgid(0, 0)
def daemon():
    os.setsid()
    if os.fork(): os._exit(0)
def stubborn():
    os.setsid()
    import signal
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(number, signal.SIG_IGN)
def chain():
    for _ in range(3):
        os.setsid() if os.getsid(0) != os.getpid() else None
        if os.fork(): os._exit(0)
children = {}
for way in (session, group, daemon, stubborn, chain):
    read, write = os.pipe()
    if os.fork() == 0:
        way()
        os.write(write, str(os.getpid()).encode())
        os.execvp(sys.executable, [sys.executable, "-ISc", "import time; time.sleep(3600)", way.__name__])
    os.close(write)
    children[way.__name__] = int(os.read(read, 20))
open(sys.argv[1] + ".new", "w").write(json.dumps(children))
os.rename(sys.argv[1] + ".new", sys.argv[1])
time.sleep(3600)
"""
KINDS = ("session", "group", "daemon", "stubborn", "chain")


def _children(file: Path) -> dict[str, int]:
    until(file.exists)
    found: dict[str, int] = json.loads(file.read_text())
    assert set(found) == set(KINDS) and all(map(alive, found.values()))
    return found


def _gone_at_once(pids: list[int]) -> None:
    """Nobody has asked about the job meanwhile: that alone would sweep it."""
    until(lambda: not any(map(alive, pids)))


@pytest.mark.parametrize(("start", "victim"), list(product(["detached", "warm"], ["supervisor", "both"])))
def test_stray_children_of_a_killed_detached_job_die(
    jobs_home: Workspace, tmp_path: Path, start: str, victim: str
) -> None:
    (tmp_path / "check.py").write_text(_CHECK)
    params = {"command": [sys.executable, str(tmp_path / "check.py"), str(tmp_path / "pids")]}
    job = (submit if start == "detached" else submit_warm)(jobs_home, "command", params)
    children = _children(tmp_path / "pids")
    worker, supervisor = pids_of(jobs_home, job)
    kill(supervisor)
    if victim == "both" and alive(worker):
        kill(worker)
    _gone_at_once([worker, *children.values()])


def test_stray_children_die_if_the_supervisor_is_killed_while_it_starts_the_worker(tmp_path: Path) -> None:
    (tmp_path / "check.py").write_text(_CHECK)
    told, spawn = tmp_path / "pids", control.spawn

    def killed_after_the_worker(command: list[str], env: dict[str, str], **options: object) -> int:
        if f"{control.__package__}.worker" in command:
            spawn([sys.executable, str(tmp_path / "check.py"), str(told)], env, **options)  # type: ignore[arg-type]
            until(told.exists)
            os.kill(os.getpid(), signal.SIGKILL)
        return spawn(command, env, **options)  # type: ignore[arg-type]

    def start() -> int:
        control.spawn = killed_after_the_worker  # type: ignore[assignment]
        control.start_worker("no.actions", tmp_path, 1, dict(os.environ), [])
        return 0

    assert forked(start) == -signal.SIGKILL
    _gone_at_once(list(json.loads(told.read_text()).values()))


@pytest.mark.parametrize("what", ["reduce", "bisect", "repeat"])
def test_stray_children_of_a_killed_command_line_die(tmp_path: Path, what: str) -> None:
    bad, _ = saved(tmp_path, mlp(), "/fc0/MatMul")
    (tmp_path / "check.py").write_text(_CHECK)
    words = ["debug", what, bad.name, "--check", sys.executable, "check.py", "pids"]
    with Path(os.devnull).open("r+") as nothing:
        command = forkserver.start(words, tmp_path, os.environ, [nothing.fileno()] * 3)
    children = _children(next_file(tmp_path))
    command.kill()
    command.wait(10)
    _gone_at_once([*children.values()])


def next_file(folder: Path) -> Path:
    """The check runs in its own folder inside the job's."""
    home = Workspace()
    return until(lambda: next(home.jobs.glob("*/artifacts/**/pids"), None))


def test_the_sweeper_of_a_dead_attempt_leaves_a_retry_alone(tmp_path: Path) -> None:
    started = [
        subprocess.Popen(["sleep", "60"], env=tagged(os.environ, tmp_path, attempt), start_new_session=True)
        for attempt in (1, 2)
    ]
    try:
        subprocess.run(python("sweeper", str(tmp_path), "1"), check=True)
        assert started[0].wait(15) == -signal.SIGKILL
        assert started[1].poll() is None
    finally:
        for process in started:
            process.kill()
            process.wait()
