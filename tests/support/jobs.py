"""What tests of the job layer share: waiting with a deadline, processes, a workspace that must be left clean."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import psutil
import pytest
from support.jobactions import EXTRA_ACTIONS

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.jobs.client import JobClient
from layerwise._tool.backends.jobs.inline import run_inline
from layerwise._tool.backends.jobs.journal.view import JobView
from layerwise._tool.backends.jobs.processes.conclude import journal
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace import leases
from layerwise._tool.backends.jobs.workspace.store import Workspace

T = TypeVar("T")
TESTS = Path(__file__).parents[1]
_TAG = b"LAYERWISE_JOB="
_PROCESSES = "layerwise._tool.backends.jobs.processes."


def until(check: Callable[[], T], seconds: float = 60.0) -> T:
    """The first true value of `check`; fails after so many seconds."""
    deadline = time.monotonic() + seconds
    asked = time.monotonic()
    while not (value := check()):
        assert time.monotonic() < deadline, f"still not so after {seconds} s: {check}"
        time.sleep(max(0.01, time.monotonic() - asked))  # what is waited for needs the processor more
        asked = time.monotonic()
    return value


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def processes_of(workspace: Workspace) -> list[str]:
    """Command lines of the processes that belong to jobs of a workspace."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words = (place / "cmdline").read_bytes().split(b"\0")[:-1]
            words += [word for word in (place / "environ").read_bytes().split(b"\0") if word.startswith(_TAG)]
        except OSError:
            continue
        if place.name != str(os.getpid()) and any(os.fsencode(workspace.jobs) in word for word in words):
            found.append(os.fsdecode(b" ".join([place.name.encode(), *words])))
    return found


def leases_taken(workspace: Workspace) -> list[str]:
    """CPU slots and GPUs that somebody holds."""
    return [name for folder in workspace.leases.iterdir() for name in leases.taken(folder)]


@pytest.fixture
def jobs_home(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    """A workspace whose workers know the test actions; at the end no process and no lease may be left."""
    monkeypatch.setenv("LAYERWISE_EXTRA_ACTIONS", EXTRA_ACTIONS)
    monkeypatch.setenv("PYTHONPATH", f"{os.environ['PYTHONPATH']}{os.pathsep}{TESTS}")
    home = Workspace()
    yield home
    for view in home.list_jobs():
        if not view.final:
            with suppress(UsageError):  # it may end by itself between the look and the call
                asyncio.run(JobClient(home).cancel(view.id))
    until(lambda: all(view.final for view in home.list_jobs()))
    until(lambda: not processes_of(home))
    until(lambda: not any(map(alive, _forked_for(home))))
    until(lambda: leases_taken(home) == [])


def run(home: Workspace, action: str, params: dict[str, Any] | None = None, **spec: Any) -> JobView:
    """Run a test action inline to its end."""
    return run_inline(JobSpec(action=f"test_{action}", params=params or {}, **spec), lambda event: None, home)


def submit(home: Workspace, action: str, params: dict[str, Any] | None = None, **spec: Any) -> int:
    """Start a test action under a supervisor of its own."""
    return asyncio.run(JobClient(home).submit(JobSpec(action=f"test_{action}", params=params or {}, **spec)))


def submit_forked(home: Workspace, action: str, params: dict[str, Any] | None = None, **spec: Any) -> int:
    """Like `submit`, where what the job does matters and not how its processes start: they are forks."""
    from support.forked_jobs import forked_jobs

    with forked_jobs():
        job = submit(home, action, params, **spec)
    _forked.append((home.jobs, job))
    return job


_forked: list[tuple[Path, int]] = []


def _forked_for(home: Workspace) -> list[int]:
    """The processes that forked jobs of a workspace have told of."""
    jobs = [job for place, job in _forked if place == home.jobs]
    told = [event for job in jobs for event in events_of(home, job) if event.get("state") == "running"]
    return [event[name] for event in told for name in ("pid", "supervisor") if name in event]


def waiting_pair(home: Workspace) -> tuple[int, int] | None:
    """Ids of the spare worker and the warm supervisor that wait for a job of the workspace, once both do."""
    modules = {}
    for line in processes_of(home):
        pid, *words = line.split()
        modules |= {int(pid): word for word in words if word.startswith(_PROCESSES) and not _has_a_job(int(pid))}
    # a child of the supervisor bears its command line until it is what it will be: only the spare's parent counts
    spares = [pid for pid, module in modules.items() if module == f"{_PROCESSES}spare_worker"]
    pairs = [(spare, _parent(spare)) for spare in spares]
    return next((pair for pair in pairs if modules.get(pair[1]) == f"{_PROCESSES}warm_supervisor"), None)


def _parent(pid: int) -> int:
    try:
        return psutil.Process(pid).ppid()
    except psutil.NoSuchProcess:
        return 0


def _has_a_job(pid: int) -> bool:
    try:
        return any(file.path.endswith("/lock") for file in psutil.Process(pid).open_files())
    except psutil.NoSuchProcess:
        return True


async def ready_pair(home: Workspace, client: JobClient) -> tuple[int, int]:
    """Have the client start a pair; its ids."""
    client.keep_warm(0.0)
    deadline = time.monotonic() + 15.0
    while (pair := waiting_pair(home)) is None:
        assert time.monotonic() < deadline, processes_of(home)
        await asyncio.sleep(0.02)
    return pair


def submit_warm(home: Workspace, action: str, params: dict[str, Any] | None = None, **spec: Any) -> int:
    """Like `submit`, but the job is given to a pair that waits for it."""

    async def main() -> int:
        client = JobClient(home)
        pair = await ready_pair(home, client)
        job = await client.submit(JobSpec(action=f"test_{action}", params=params or {}, **spec))
        client.close()
        if not spec.get("env") and home.view(job).state != "queued":
            assert pids_of(home, job) == pair
        return job

    return asyncio.run(main())


def wait_for(home: Workspace, job: int, *states: str, seconds: float = 60.0) -> JobView:
    """The job once it is in one of the states."""

    def check() -> JobView | None:
        view = home.view(job)
        assert view.state in states or not view.final, (view.state, view.card)
        return view if view.state in states else None

    return until(check, seconds)


def events_of(home: Workspace, job: int) -> list[dict[str, Any]]:
    from layerwise._tool.backends.jobs.journal.events import read_events

    return list(read_events(home.jobs / str(job)))


def pids_of(home: Workspace, job: int) -> tuple[int, int]:
    """Worker and supervisor of a job, once it runs."""

    def check() -> list[dict[str, Any]]:
        return [event for event in events_of(home, job) if event.get("state") == "running" and "pid" in event]

    running = until(check)[-1]
    return running["pid"], running["supervisor"]


def row_of(home: Workspace, job: int, table: str) -> dict[str, Any]:
    """The first row of a table, once it is there."""

    def check() -> list[dict[str, Any]]:
        return [event["row"] for event in events_of(home, job) if event.get("table") == table]

    return until(check)[0]


def start_script(code: str, *arguments: str) -> subprocess.Popen[bytes]:
    """A Python process of its own, in a session of its own, as a terminal would start it."""
    return subprocess.Popen([sys.executable, "-c", code, *arguments], start_new_session=True)


def kill(pid: int, number: int = signal.SIGKILL) -> None:
    os.kill(pid, number)


def ended_job(workspace: Workspace, spec: JobSpec, *events: tuple[str, dict[str, Any]]) -> int:
    """A job that has said this, and ended; its number."""
    folder, lock = workspace.create(spec)
    with journal(folder) as writer:
        writer.write("state", state="running", attempt=1)
        for kind, fields in events:
            writer.write(kind, **fields)
        writer.write("state", state="done", attempt=1)
    os.close(lock)
    return int(folder.name)
