"""Cancellation, timeouts, questions, and several clients at the same time."""

import asyncio
import time
from typing import Any

import pytest
from support.jobs import (
    alive,
    events_of,
    jobs_home,
    leases_taken,
    pids_of,
    row_of,
    until,
    wait_for,
)
from support.jobs import (
    submit_forked as submit,
)

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.jobs.client import JobClient
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.leases import cpu_slots
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.backends.older_python import timeout

__all__ = ["jobs_home"]


def _cancel(home: Workspace, job: int) -> None:
    asyncio.run(JobClient(home).cancel(job))


def test_cancel_ends_a_running_job(jobs_home: Workspace) -> None:
    job = submit(jobs_home, "hang")
    row_of(jobs_home, job, "layers")
    _cancel(jobs_home, job)
    view = wait_for(jobs_home, job, "cancelled", seconds=1.5)
    assert (view.card, view.counts) == (None, {"layers": 1})
    with pytest.raises(UsageError, match="has ended"):
        _cancel(jobs_home, job)


def test_cancel_ends_a_job_that_ignores_sigterm(jobs_home: Workspace) -> None:
    job = submit(jobs_home, "stubborn")
    until(lambda: any(event["type"] == "log" for event in events_of(jobs_home, job)))
    worker, _ = pids_of(jobs_home, job)
    _cancel(jobs_home, job)
    wait_for(jobs_home, job, "cancelled", seconds=5)
    assert not alive(worker)


def test_cancel_ends_a_queued_job(jobs_home: Workspace) -> None:
    jobs = [submit(jobs_home, "hang") for _ in cpu_slots()]
    for job in jobs:
        wait_for(jobs_home, job, "running")
    queued = submit(jobs_home, "hang")
    until(lambda: "waiting for 1 CPU slot" in jobs_home.view(queued).reason)
    _cancel(jobs_home, queued)
    wait_for(jobs_home, queued, "cancelled", seconds=1.5)
    assert len(leases_taken(jobs_home)) == len(jobs)


def test_a_queued_job_starts_when_a_slot_is_free(jobs_home: Workspace) -> None:
    jobs = [submit(jobs_home, "hang") for _ in cpu_slots()]
    for job in jobs:
        wait_for(jobs_home, job, "running")
    first = submit(jobs_home, "rows")
    until(lambda: jobs_home.view(first).reason)
    second = submit(jobs_home, "rows")
    until(lambda: jobs_home.view(second).reason)
    start = time.time()
    _cancel(jobs_home, jobs[0])
    ended = [wait_for(jobs_home, job, "done") for job in (first, second)]
    assert ended[0].started is not None and ended[1].started is not None
    assert ended[0].started < ended[1].started
    assert ended[1].started - start < 3.0


def test_a_question_waits_for_its_answer(jobs_home: Workspace) -> None:
    """Each client is a new one, as after a restart; time spent waiting does not count against the timeout."""
    job = submit(jobs_home, "ask", {"questions": ["first?", "second?"]}, timeout=1.0)
    view = wait_for(jobs_home, job, "waiting")
    assert view.question == {"id": "1.1", "question": {"text": "first?"}}
    time.sleep(1.2)
    asyncio.run(JobClient(jobs_home).reply(job, "1.1", {"verdict": "good"}))
    until(lambda: (jobs_home.view(job).question or {}).get("id") == "1.2")
    asyncio.run(JobClient(jobs_home).reply(job, "1.2", {"verdict": "x" * 9000}))
    asyncio.run(_quietly_reply(jobs_home, job, "1.2"))
    view = wait_for(jobs_home, job, "done")
    assert view.result == {"answers": [{"verdict": "good"}, {"verdict": "x" * 9000}]}


async def _quietly_reply(home: Workspace, job: int, question: str) -> None:
    """A second client's answer to the same question, which comes too late."""
    try:
        await JobClient(home).reply(job, question, {"verdict": "bad"})
    except UsageError:
        assert home.view(job).final


def test_cancel_ends_a_waiting_job(jobs_home: Workspace) -> None:
    job = submit(jobs_home, "ask", {"questions": ["?"]})
    wait_for(jobs_home, job, "waiting")
    _cancel(jobs_home, job)
    assert wait_for(jobs_home, job, "cancelled").question is None


def test_a_retried_job_asks_again(jobs_home: Workspace) -> None:
    job = submit(jobs_home, "ask", {"questions": ["?"]})
    wait_for(jobs_home, job, "waiting")
    _cancel(jobs_home, job)
    wait_for(jobs_home, job, "cancelled")
    asyncio.run(JobClient(jobs_home).retry(job))
    assert (wait_for(jobs_home, job, "waiting").question or {})["id"] == "2.1"
    asyncio.run(JobClient(jobs_home).reply(job, "2.1", {"ok": 1}))
    assert wait_for(jobs_home, job, "done").result == {"answers": [{"ok": 1}]}


def test_two_clients_see_the_same_events(jobs_home: Workspace) -> None:
    async def follow(client: JobClient, job: int) -> list[dict[str, Any]]:
        return [event async for event in client.events(job)]

    async def main() -> None:
        one, two = JobClient(Workspace()), JobClient(Workspace())
        ids = await asyncio.gather(
            *(client.submit(JobSpec(action="test_rows")) for client in (one, two) for _ in range(4))
        )
        assert sorted(ids) == list(range(1, 9))
        seen = await asyncio.gather(*(follow(client, job) for job in ids for client in (one, two)))
        for first, second in zip(seen[::2], seen[1::2], strict=True):
            assert first == second
            assert first[-1]["state"] == "done"
            assert [event["n"] for event in first] == list(range(1, len(first) + 1))
        one.close()
        two.close()

    asyncio.run(main())


def test_only_one_of_two_retries_wins(jobs_home: Workspace) -> None:
    job = submit(jobs_home, "raise_error")
    wait_for(jobs_home, job, "failed")

    async def main() -> list[object]:
        clients = [JobClient(Workspace()), JobClient(Workspace())]
        return await asyncio.gather(*(client.retry(job) for client in clients), return_exceptions=True)

    results = asyncio.run(main())
    view = wait_for(jobs_home, job, "failed")
    lost = [result for result in results if isinstance(result, UsageError)]
    assert view.attempt == 3 - len(lost)
    assert all(result is None or isinstance(result, UsageError) for result in results)


def test_events_arrive_quickly(jobs_home: Workspace) -> None:
    """The median from the event being written to the client having it."""

    async def main() -> list[float]:
        client = JobClient(jobs_home)
        job = await client.submit(JobSpec(action="test_rows", params={"n": 20, "pause": 0.05}))
        lags = [time.time() - event["t"] async for event in client.events(job)]
        client.close()
        return lags

    lags = sorted(asyncio.run(main()))
    assert lags[len(lags) // 2] < 0.06


def test_watch_reports_new_and_ended_jobs(jobs_home: Workspace) -> None:
    async def main() -> list[list[str]]:
        client = JobClient(jobs_home)
        seen = []
        submitted = False
        async with timeout(20):
            async for views in client.watch(0.01):
                seen.append([view.state for view in views])
                if not submitted:
                    submitted = True
                    await client.submit(JobSpec(action="test_rows"))
                if seen[-1] == ["done"]:
                    break
        client.close()
        return seen

    seen = asyncio.run(main())
    assert seen[0] == []
    assert seen[-1] == ["done"]


def test_a_late_follower_gets_the_remaining_events(jobs_home: Workspace) -> None:
    job = submit(jobs_home, "rows")
    wait_for(jobs_home, job, "done")

    async def main() -> None:
        client = JobClient(jobs_home)
        everything = [event async for event in client.events(job)]
        assert [event async for event in client.events(job, after=5)] == everything[5:]
        assert (await client.wait(job)).state == "done"
        with pytest.raises(UsageError, match="no job 99"):
            await client.view(99)
        client.close()

    asyncio.run(main())


@pytest.mark.parametrize("after", [0, 1, 2])
def test_an_interrupted_submission_leaves_no_unstarted_job(jobs_home: Workspace, after: int) -> None:
    async def main() -> None:
        client = JobClient(jobs_home)
        submitting = asyncio.create_task(client.submit(JobSpec(action="test_rows", params={"n": 1})))
        while len(jobs_home.ids()) < min(after, 1):
            await asyncio.sleep(0)
        for _ in range(after):
            await asyncio.sleep(0)
        submitting.cancel()
        await asyncio.gather(submitting, return_exceptions=True)
        for job in jobs_home.ids():
            await asyncio.wait_for(client.wait(job), 10)

    asyncio.run(main())
    assert {view.state for view in jobs_home.list_jobs()} <= {"done"}
