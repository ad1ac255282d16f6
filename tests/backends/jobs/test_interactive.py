"""The warm worker: requests and answers, isolation, and its end."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from support.jobactions import EXTRA_REQUESTS
from support.jobs import alive, jobs_home, leases_taken, pids_of, until, wait_for

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.jobs.client import JobClient
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.backends.older_python import timeout

__all__ = ["jobs_home"]


@pytest.fixture(autouse=True)
def requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAYERWISE_EXTRA_REQUESTS", EXTRA_REQUESTS)


def _spec(idle: float = 60.0) -> JobSpec:
    return JobSpec(action="interactive", params={"idle": idle}, cpus=0)


async def _with(home: Workspace, client: JobClient, work: Coroutine[Any, Any, None]) -> None:
    try:
        async with timeout(30):
            await work
    finally:
        client.close()


def test_requests_are_answered(jobs_home: Workspace) -> None:
    client = JobClient(jobs_home)

    async def main() -> None:
        job = await client.submit(_spec())
        assert await client.ask(job, "test_add", {"a": 1, "b": 2}) == {"sum": 3, "calls": 1}
        many = await asyncio.gather(*(client.ask(job, "test_add", {"a": i, "b": i}) for i in range(5)))
        assert [answer["sum"] for answer in many] == [0, 2, 4, 6, 8]
        assert sorted(answer["calls"] for answer in many) == [2, 3, 4, 5, 6]
        large = await client.ask(job, "test_echo", {"text": "x" * 50_000})
        assert large == {"text": "x" * 50_000}
        with pytest.raises(LayerwiseError, match="say --other"):
            await client.ask(job, "test_refuse", {})
        with pytest.raises(LayerwiseError, match="ZeroDivisionError"):
            await client.ask(job, "test_broken", {})
        with pytest.raises(LayerwiseError, match="there is no request"):
            await client.ask(job, "no_such", {})
        with pytest.raises(TimeoutError):
            await client.ask(job, "test_hang", {}, timeout=0.2)
        assert leases_taken(jobs_home) == []
        await client.cancel(job)
        assert (await client.wait(job)).state == "cancelled"

    asyncio.run(_with(jobs_home, client, main()))


def test_a_crash_ends_only_the_worker_and_retry_restarts_it(jobs_home: Workspace) -> None:
    client = JobClient(jobs_home)

    async def main() -> None:
        job = await client.submit(_spec())
        with pytest.raises(LayerwiseError, match="SIGSEGV"):
            await client.ask(job, "test_segfault", {})
        with pytest.raises(UsageError, match="retry"):
            await client.ask(job, "test_add", {"a": 1, "b": 2})
        await client.retry(job)
        assert await client.ask(job, "test_add", {"a": 1, "b": 2}) == {"sum": 3, "calls": 1}
        await client.cancel(job)
        await client.wait(job)

    asyncio.run(_with(jobs_home, client, main()))


def test_an_idle_worker_exits(jobs_home: Workspace) -> None:
    client = JobClient(jobs_home)

    async def main() -> None:
        job = await client.submit(_spec(idle=0.3))
        assert (await client.ask(job, "test_add", {"a": 1, "b": 1}))["sum"] == 2
        view = await client.wait(job)
        assert (view.state, view.result) == ("done", {"answered": 1})

    asyncio.run(_with(jobs_home, client, main()))
    until(lambda: not any(map(alive, pids_of(jobs_home, 1))))
    wait_for(jobs_home, 1, "done")
