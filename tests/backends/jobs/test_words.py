"""How a job's end is described, for every way a worker can end and every time it can be cancelled."""

import asyncio
import os
import signal
import time
from itertools import product
from pathlib import Path

import pytest
from support.cli import layerwise
from support.jobs import events_of, jobs_home, kill, pids_of, until, wait_for
from support.jobs import submit_forked as submit

from layerwise._tool.backends.jobs.client import JobClient
from layerwise._tool.backends.jobs.journal.view import JobView
from layerwise._tool.backends.jobs.processes.cards import Ending, outcome
from layerwise._tool.backends.jobs.processes.conclude import conclude, journal
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.store import Workspace

__all__ = ["jobs_home"]

STATUSES = (0, 1, 3, 74, 128 + signal.SIGTERM, *(-number for number in (signal.SIGTERM, signal.SIGKILL,
            signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGINT)), None)  # fmt: skip
WROTE = ("nothing", "card", "result")


@pytest.mark.parametrize("stopped", ["", "cancel", "timeout"])
def test_every_end_has_its_description(stopped: str) -> None:
    home = Workspace()
    for status, wrote, killed in product(STATUSES, WROTE, [False, True]):
        folder, lock = home.create(JobSpec(action="test_rows"))
        os.close(lock)
        with journal(folder) as writer:
            writer.write("state", state="running", attempt=1)
            if wrote == "card":
                writer.write("card", kind="error", summary="it said why")
            if wrote == "result":
                writer.write("result", data={})
        state, card = outcome(folder, 1, Ending(status, stopped, killed))
        ours = status in (None, -signal.SIGTERM, 128 + signal.SIGTERM) or (status == -signal.SIGKILL and killed)
        case = (status, wrote, stopped, killed)
        if wrote == "result":
            assert (state, card) == ("done", None), case
        elif stopped == "cancel" and ours:
            assert (state, card) == ("cancelled", None), case
        elif wrote == "card" and not (stopped and ours):
            assert (state, card) == ("failed", None), case
        else:
            assert card is not None and state == ("lost" if status is None and not stopped else "failed"), case
            assert (card["kind"] == "timeout") == (stopped == "timeout" and ours), case


ENDS = {"hang": "cancelled", "stubborn": "cancelled", "error_when_asked": "cancelled", "crash_when_asked": "failed"}


@pytest.mark.parametrize(("action", "state"), ENDS.items())
def test_only_jobs_that_end_on_request_are_cancelled(jobs_home: Workspace, action: str, state: str) -> None:
    job = submit(jobs_home, action)
    until(lambda: any(event["type"] in ("log", "row") for event in events_of(jobs_home, job)))
    asyncio.run(JobClient(jobs_home).cancel(job))
    view = wait_for(jobs_home, job, "failed", "cancelled")
    assert view.state == state
    assert (view.card or {}).get("kind") == (None if state == "cancelled" else "signal")


@pytest.mark.parametrize("end", ["hang", "stubborn", "crash_when_asked"])
def test_cancel_says_how_it_ended(jobs_home: Workspace, tmp_path: Path, end: str) -> None:
    job = submit(jobs_home, end)
    until(lambda: any(event["type"] in ("log", "row") for event in events_of(jobs_home, job)))
    done = layerwise("jobs", "cancel", str(job), cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout == f"[I] Job {job}: {'failed' if end == 'crash_when_asked' else 'cancelled'}\n"


@pytest.mark.parametrize("ago", [60.0, 86_400.0])
@pytest.mark.parametrize("events", [1, 2, 10])
def test_a_lost_jobs_end_time_is_its_last_sign_of_life(
    jobs_home: Workspace, ago: float, events: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    then = time.time() - ago
    with monkeypatch.context() as patch:
        patch.setattr(time, "time", lambda: then)
        folder, lock = jobs_home.create(JobSpec(action="test_rows"))
        with journal(folder) as writer:
            writer.write("state", state="running", attempt=1)
            for number in range(events):
                writer.write("row", table="layers", row={"i": number})
    os.close(lock)
    view = jobs_home.view(1)
    assert view.state == "lost" and view.ended == view.started == pytest.approx(then, abs=0.001)


def test_a_killed_job_without_readers_is_lost(jobs_home: Workspace) -> None:
    job = submit(jobs_home, "hang")
    worker, supervisor = pids_of(jobs_home, job)
    last = max(event["t"] for event in events_of(jobs_home, job))
    kill(supervisor)
    kill(worker)
    until(lambda: JobView(jobs_home.jobs / str(job)).final or jobs_home.view(job).final)
    assert jobs_home.view(job).ended == pytest.approx(last, abs=1.0)


def test_conclude_and_reading_find_the_same_state(jobs_home: Workspace) -> None:
    folder, lock = jobs_home.create(JobSpec(action="test_rows"))
    assert conclude(folder, 1, Ending()) == "lost"
    os.close(lock)
    assert jobs_home.view(1).state == "lost"
