"""Jobs run by prestarted processes: the same guarantees, and no unused process is left behind."""

import asyncio
import os
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.jobs import (
    alive,
    events_of,
    jobs_home,
    kill,
    leases_taken,
    pids_of,
    processes_of,
    ready_pair,
    row_of,
    start_script,
    submit_warm,
    until,
    wait_for,
    waiting_pair,
)

from layerwise._tool.backends.jobs.client import JobClient
from layerwise._tool.backends.jobs.processes import warm_pair
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.store import Workspace

__all__ = ["jobs_home"]

_APP = (
    "import asyncio, sys; from layerwise._tool.backends.jobs.client import JobClient\n"
    "from layerwise._tool.backends.jobs.spec import JobSpec\n"
    "from layerwise._tool.backends.jobs.workspace.store import Workspace; from support.jobs import ready_pair\n"
    "async def main():\n"
    "    client = JobClient()\n"
    "    await ready_pair(Workspace(), client)\n"
    "    if sys.argv[1] != 'nothing':\n"
    "        await client.submit(JobSpec(action='test_rows', params={'n': 40, 'pause': 0.05}))\n"
    "    await asyncio.sleep(3600)\n"
    "asyncio.run(main())"
)


def test_each_job_gets_its_own_prestarted_pair(jobs_home: Workspace) -> None:
    async def main() -> list[tuple[int, int]]:
        client = JobClient(jobs_home)
        pairs = []
        try:
            for _ in range(2):
                pairs.append(await ready_pair(jobs_home, client))
                job = await client.submit(JobSpec(action="test_noisy"))
                assert (await client.wait(job)).state == "done"
                assert await asyncio.to_thread(pids_of, jobs_home, job) == pairs[-1]
                log = (jobs_home.jobs / str(job) / "log.txt").read_text()
                assert log.splitlines() == ["native \x1b[31mprint", "python print"]
        finally:
            client.close()
        return pairs

    first, second = asyncio.run(main())
    assert not set(first) & set(second)
    until(lambda: not any(map(alive, [*first, *second])))


@pytest.mark.parametrize("victim", ["app", "supervisor", "worker"])
def test_an_idle_pair_ends_with_the_app(jobs_home: Workspace, victim: str) -> None:
    app = start_script(_APP, "nothing")
    worker, supervisor = until(lambda: waiting_pair(jobs_home))
    kill({"app": app.pid, "supervisor": supervisor, "worker": worker}[victim])
    if victim == "worker":
        kill(app.pid)
    until(lambda: not processes_of(jobs_home))
    app.kill()
    app.wait()


def test_a_job_in_a_prestarted_pair_survives_the_app(jobs_home: Workspace) -> None:
    app = start_script(_APP, "rows")
    row_of(jobs_home, 1, "layers")
    app.kill()
    app.wait()
    assert wait_for(jobs_home, 1, "done").counts["layers"] == 40
    supervisor = pids_of(jobs_home, 1)[1]
    until(lambda: not alive(supervisor))


def test_a_pair_whose_worker_died_starts_another_worker(jobs_home: Workspace) -> None:
    async def main() -> tuple[int, tuple[int, int]]:
        client = JobClient(jobs_home)
        worker, supervisor = await ready_pair(jobs_home, client)
        kill(worker)
        await asyncio.to_thread(until, lambda: not alive(worker))
        job = await client.submit(JobSpec(action="test_rows", params={"n": 3}))
        assert (await client.wait(job)).state == "done"
        client.close()
        return supervisor, pids_of(jobs_home, job)

    supervisor, (_, own) = asyncio.run(main())
    assert own == supervisor


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that takes the place of site-packages, which other tests use meanwhile."""
    monkeypatch.setattr(warm_pair, "sysconfig", SimpleNamespace(get_path=lambda _: str(tmp_path)))
    (tmp_path / "module.py").touch()
    return tmp_path


def test_a_dead_or_outdated_pair_is_not_used(jobs_home: Workspace, packages: Path) -> None:
    async def main() -> None:
        client = JobClient(jobs_home)
        for spoil in ("kill", "upgrade"):
            pair = await ready_pair(jobs_home, client)
            if spoil == "kill":
                kill(pair[1])
            else:
                (packages / "module.py").unlink()
                (packages / "module.py").touch()
            job = await client.submit(JobSpec(action="test_rows", params={"n": 3}))
            assert (await client.wait(job)).state == "done"
            assert not set(await asyncio.to_thread(pids_of, jobs_home, job)) & set(pair)
            await asyncio.to_thread(until, lambda pair=pair: not any(map(alive, pair)), 5.0)
        client.close()

    asyncio.run(main())


def test_modules_that_are_compiled_meanwhile_cost_no_pair(jobs_home: Workspace, packages: Path) -> None:
    async def main() -> None:
        client = JobClient(jobs_home)
        try:
            pair = await ready_pair(jobs_home, client)
            (packages / "__pycache__").mkdir()
            job = await client.submit(JobSpec(action="test_rows", params={"n": 3}))
            assert (await client.wait(job)).state == "done"
            assert await asyncio.to_thread(pids_of, jobs_home, job) == pair
        finally:
            client.close()

    asyncio.run(main())


def test_environment_and_folder_are_those_of_the_job(jobs_home: Workspace) -> None:
    names = {"names": ["CUDA_VISIBLE_DEVICES", "MINE", "LAYERWISE_HOME"]}
    expected = {"CUDA_VISIBLE_DEVICES": "", "MINE": None, "LAYERWISE_HOME": str(jobs_home.root), "cwd": "/"}
    view = wait_for(jobs_home, submit_warm(jobs_home, "environment", names, cwd="/"), "done")
    assert view.result == expected
    job = submit_warm(jobs_home, "environment", names, cwd="/", env={"MINE": "1"})
    assert wait_for(jobs_home, job, "done").result == {**expected, "MINE": "1"}


def test_a_crash_has_its_card_with_the_stack(jobs_home: Workspace) -> None:
    card = wait_for(jobs_home, submit_warm(jobs_home, "segfault"), "failed").card or {}
    assert (card["kind"], card["summary"]) == ("signal", "the worker crashed: SIGSEGV")
    assert "in segfault" in card["detail"]


def test_cancel_while_it_waits_for_a_slot_and_while_it_runs(jobs_home: Workspace) -> None:
    slots = len(os.sched_getaffinity(0))
    first = submit_warm(jobs_home, "hang", cpus=slots)
    row_of(jobs_home, first, "layers")
    second = submit_warm(jobs_home, "hang", cpus=slots)
    until(lambda: "CPU slot" in jobs_home.view(second).reason)
    asyncio.run(JobClient(jobs_home).cancel(second))
    wait_for(jobs_home, second, "cancelled")
    until(lambda: waiting_pair(jobs_home) is None)
    asyncio.run(JobClient(jobs_home).cancel(first))
    wait_for(jobs_home, first, "cancelled")


@pytest.mark.parametrize("victim", ["worker", "supervisor"])
@pytest.mark.parametrize("daemon", [True, False])
def test_children_are_killed_in_any_session(jobs_home: Workspace, victim: str, daemon: bool) -> None:
    job = submit_warm(jobs_home, "children", {"daemon": daemon})
    children = row_of(jobs_home, job, "children")["pids"]
    worker, supervisor = pids_of(jobs_home, job)
    kill(worker if victim == "worker" else supervisor)
    wait_for(jobs_home, job, "failed", "lost")
    until(lambda: not any(map(alive, [worker, *children])))
    until(lambda: leases_taken(jobs_home) == [])


def test_a_forked_child_keeps_neither_lock_nor_lease(jobs_home: Workspace) -> None:
    job = submit_warm(jobs_home, "fork_lock")
    child = row_of(jobs_home, job, "children")["pids"][0]
    worker, supervisor = pids_of(jobs_home, job)
    kill(supervisor, signal.SIGKILL)
    until(lambda: not alive(worker))
    until(lambda: leases_taken(jobs_home) == [])
    wait_for(jobs_home, job, "lost")
    until(lambda: not alive(child))


def test_worker_and_supervisor_hold_only_the_lock(jobs_home: Workspace) -> None:
    job = submit_warm(jobs_home, "hang")
    row_of(jobs_home, job, "layers")
    folder = jobs_home.jobs / str(job)
    for pid in pids_of(jobs_home, job):
        held = [str(path.readlink()) for path in Path(f"/proc/{pid}/fd").iterdir() if path.is_symlink()]
        assert held.count(str(folder / "lock")) == 1
    worker, supervisor = pids_of(jobs_home, job)
    assert os.getpgid(worker) not in (os.getpgid(0), os.getpgid(supervisor))
    assert os.getsid(supervisor) not in (os.getsid(0), 0)
    assert [event["state"] for event in events_of(jobs_home, job) if event["type"] == "state"] == ["queued", "running"]
    asyncio.run(JobClient(jobs_home).cancel(job))
    wait_for(jobs_home, job, "cancelled")
