"""SIGKILL of any process of a job leaves nothing behind, loses no finished work and completes nothing unfinished."""

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest
from support.jobs import (
    alive,
    events_of,
    jobs_home,
    kill,
    leases_taken,
    pids_of,
    row_of,
    start_script,
    submit,
    until,
    wait_for,
)

from layerwise._tool.backends.jobs.client import JobClient
from layerwise._tool.backends.jobs.workspace.store import Workspace

__all__ = ["jobs_home"]

_INLINE = (
    "import sys; from support.jobs import run; from layerwise._tool.backends.jobs.workspace.store import Workspace\n"
    "run(Workspace(), sys.argv[1], {'n': 40, 'pause': 0.05})"
)
_APP = (
    "import asyncio, sys; from layerwise._tool.backends.jobs.client import JobClient\n"
    "from layerwise._tool.backends.jobs.spec import JobSpec\n"
    "async def main():\n"
    "    client = JobClient()\n"
    "    job = await client.submit(JobSpec(action='test_' + sys.argv[1], params={'n': 40, 'pause': 0.05}))\n"
    "    async for event in client.events(job): pass\n"
    "asyncio.run(main())"
)


def _rows(home: Workspace, job: int) -> list[int]:
    return [event["row"]["i"] for event in events_of(home, job) if event["type"] == "row"]


def _retry(home: Workspace, job: int) -> None:
    asyncio.run(JobClient(home).retry(job))


def test_a_job_survives_the_app(jobs_home: Workspace) -> None:
    app = start_script(_APP, "rows")
    row_of(jobs_home, 1, "layers")
    app.kill()
    app.wait()
    view = wait_for(jobs_home, 1, "done")
    assert (view.attempt, _rows(jobs_home, 1)) == (1, list(range(40)))


@pytest.mark.parametrize("victim", ["worker", "supervisor"])
def test_a_killed_job_is_resumed_by_retry(jobs_home: Workspace, victim: str) -> None:
    job = submit(jobs_home, "rows", {"n": 30, "stay": 5})
    row_of(jobs_home, job, "layers")
    worker, supervisor = pids_of(jobs_home, job)
    kill(worker if victim == "worker" else supervisor)
    view = wait_for(jobs_home, job, "failed" if victim == "worker" else "lost")
    assert view.card is not None
    assert view.card["kind"] == ("signal" if victim == "worker" else "lost")
    until(lambda: not alive(worker) and not alive(supervisor))
    before = _rows(jobs_home, job)
    assert before == list(range(len(before))) and before
    _retry(jobs_home, job)
    view = wait_for(jobs_home, job, "done")
    assert (view.attempt, view.card) == (2, None)
    assert view.result == {"n_rows": 30, "resumed": len(before)}
    assert _rows(jobs_home, job) == list(range(30))


def test_a_job_lost_with_its_command_line_is_resumed_by_retry(jobs_home: Workspace) -> None:
    command = start_script(_INLINE, "rows")
    row_of(jobs_home, 1, "layers")
    worker, supervisor = pids_of(jobs_home, 1)
    assert supervisor == command.pid
    command.kill()
    command.wait()
    until(lambda: not alive(worker))
    assert jobs_home.view(1).state == "lost"
    until(lambda: leases_taken(jobs_home) == [])
    _retry(jobs_home, 1)
    wait_for(jobs_home, 1, "done")
    assert _rows(jobs_home, 1) == list(range(40))


@pytest.mark.parametrize("victim", ["worker", "supervisor"])
def test_children_are_gone_within_a_second(jobs_home: Workspace, victim: str) -> None:
    job = submit(jobs_home, "children")
    children = row_of(jobs_home, job, "children")["pids"]
    worker, supervisor = pids_of(jobs_home, job)
    kill(worker if victim == "worker" else supervisor)
    until(lambda: not any(map(alive, [worker, *children])))
    wait_for(jobs_home, job, "failed", "lost")


@pytest.mark.parametrize("victim", ["worker", "supervisor", "nobody"])
def test_children_in_sessions_of_their_own_are_swept(jobs_home: Workspace, victim: str) -> None:
    job = submit(jobs_home, "children", {"daemon": True, "seconds": 0.0 if victim == "nobody" else 3600})
    children = row_of(jobs_home, job, "children")["pids"]
    worker, supervisor = pids_of(jobs_home, job)
    if victim != "nobody":
        kill(worker if victim == "worker" else supervisor)
    wait_for(jobs_home, job, "failed", "lost", "done")
    until(lambda: not any(map(alive, children)))


def test_a_forked_child_keeps_neither_lock_nor_lease(jobs_home: Workspace) -> None:
    """The child is made by fork alone and has left the group: it has all descriptors of the worker that were open."""
    job = submit(jobs_home, "fork_lock")
    row_of(jobs_home, job, "children")
    worker, supervisor = pids_of(jobs_home, job)
    os.kill(supervisor, signal.SIGKILL)
    until(lambda: not alive(worker))
    until(lambda: leases_taken(jobs_home) == [])
    wait_for(jobs_home, job, "lost")


def test_a_job_killed_after_its_result_is_done(jobs_home: Workspace) -> None:
    """The supervisor is stopped, so that it cannot write the final state, and then killed."""
    job = submit(jobs_home, "rows", {"n": 3, "pause": 0.1})
    _, supervisor = pids_of(jobs_home, job)
    os.kill(supervisor, signal.SIGSTOP)
    until(lambda: any(event["type"] == "result" for event in events_of(jobs_home, job)))
    assert jobs_home.view(job).state == "running"
    os.kill(supervisor, signal.SIGKILL)
    assert wait_for(jobs_home, job, "done").card is None


def test_a_supervisor_that_never_starts_is_lost(jobs_home: Workspace) -> None:
    from layerwise._tool.backends.jobs.spec import JobSpec

    _, lock = jobs_home.create(JobSpec(action="test_rows"))
    assert jobs_home.view(1).state == "queued"
    os.close(lock)
    assert jobs_home.view(1).state == "lost"


def test_jobs_survive_a_hangup_of_the_terminal(jobs_home: Workspace) -> None:
    """The command line, its supervisor and worker all get SIGHUP, as when the connection drops."""
    command = start_script(_INLINE, "rows")
    detached = submit(jobs_home, "rows", {"n": 40, "pause": 0.02}) if row_of(jobs_home, 1, "layers") else 0
    for job in (1, detached):
        for pid in pids_of(jobs_home, job):
            os.kill(pid, signal.SIGHUP)
    assert command.wait(20) == 0
    for job in (1, detached):
        wait_for(jobs_home, job, "done")
        assert _rows(jobs_home, job) == list(range(40))


def test_the_supervisor_has_left_terminal_and_parent(jobs_home: Workspace) -> None:
    import psutil

    job = submit(jobs_home, "hang")
    worker, supervisor = pids_of(jobs_home, job)
    process = psutil.Process(supervisor)
    assert process.ppid() != os.getpid()
    assert process.terminal() is None
    assert os.getsid(supervisor) != os.getsid(0)
    assert os.getpgid(worker) not in (os.getpgid(0), os.getpgid(supervisor))


def test_an_interrupt_cancels_the_job(jobs_home: Workspace) -> None:
    command = start_script(_INLINE, "stubborn")
    until(lambda: any(event["type"] == "log" for event in events_of(jobs_home, 1)))
    start = time.monotonic()
    command.send_signal(signal.SIGINT)
    command.send_signal(signal.SIGINT)
    command.wait(10)
    assert jobs_home.view(1).state == "cancelled"
    assert time.monotonic() - start < 10


def test_children_inherit_neither_lock_nor_journal(jobs_home: Workspace) -> None:
    job = submit(jobs_home, "children")
    child = row_of(jobs_home, job, "children")["pids"][0]
    held = [str(path.readlink()) for path in Path(f"/proc/{child}/fd").iterdir() if path.is_symlink()]
    assert any("log.txt" in name for name in held)
    assert not [name for name in held if "lock" in name or "events.jsonl" in name]
