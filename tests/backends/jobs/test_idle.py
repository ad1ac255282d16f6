"""Idle supervisors, workers and following clients use no CPU."""

import asyncio
import time

import psutil
from support.jobs import jobs_home, pids_of, submit, wait_for

from layerwise._tool.backends.jobs.client import JobClient
from layerwise._tool.backends.jobs.workspace.store import Workspace

__all__ = ["jobs_home"]

_SECONDS = 2.0


def test_idle_jobs_use_no_cpu(jobs_home: Workspace) -> None:
    jobs = [submit(jobs_home, "ask", {"questions": ["?"]}, cpus=0, timeout=0.5) for _ in range(3)]
    for job in jobs:
        wait_for(jobs_home, job, "waiting")
    processes = [psutil.Process(pid) for job in jobs for pid in pids_of(jobs_home, job)]

    async def follow(client: JobClient, job: int) -> None:
        async for _ in client.events(job):
            pass

    async def watch(client: JobClient) -> None:
        async for _ in client.watch():
            pass

    async def main() -> float:
        client = JobClient(jobs_home)
        tasks = [asyncio.create_task(follow(client, job)) for job in jobs] + [asyncio.create_task(watch(client))]
        await asyncio.sleep(1.0)
        start = time.process_time()
        before = [process.num_ctx_switches().voluntary for process in processes]
        await asyncio.sleep(_SECONDS)
        used = time.process_time() - start
        woken = [p.num_ctx_switches().voluntary - b for p, b in zip(processes, before, strict=True)]
        assert max(woken) <= 2
        for task in tasks:
            task.cancel()
        client.close()
        return used

    assert asyncio.run(main()) / _SECONDS < 0.005


def test_the_supervisor_uses_little_memory(jobs_home: Workspace) -> None:
    job = submit(jobs_home, "hang")
    supervisor = psutil.Process(pids_of(jobs_home, job)[1])
    assert supervisor.memory_full_info().uss < 12e6
    loaded = {path.path.rsplit("/", 1)[-1].split(".")[0] for path in supervisor.memory_maps()}
    assert not loaded & {"_core", "_psutil_linux", "_multiarray_umath"}
