"""Start-up times of the job layer and what it costs when nothing happens.

    python -m benchmarks.jobs_startup [--repeat 20] [--idle 10] [--output docs/evidence/jobs_startup.txt]

All times are medians of fresh processes, in milliseconds: from the start of a command line's Python (or from the
call of `submit`) to the moment the worker's own first row is on file, as the row's time stamp has it.
"""

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
from support.jobactions import EXTRA_ACTIONS

from layerwise._tool.backends.jobs.client import JobClient
from layerwise._tool.backends.jobs.journal.events import read_events
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.debugtools import ACTIONS

ROOT = Path(__file__).resolve().parent.parent

INLINE = """
import json, sys
from layerwise._tool.backends.jobs.inline import run_inline
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.debugtools import ACTIONS
run_inline(JobSpec(action="test_rows", params={"n": 1}), lambda event: None, Workspace(), ACTIONS)
"""


def first_row(home: Workspace, job: int) -> float:
    """When the worker wrote its first row (unix seconds)."""
    return next(event["t"] for event in read_events(home.folder(job)) if event["type"] == "row")


def bare_python() -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    return time.perf_counter() - start


def inline_first_row(home: Workspace) -> float:
    """Start of the command line's process to the worker's first row."""
    start = time.time()
    subprocess.run([sys.executable, "-c", INLINE], check=True)
    return first_row(home, home.ids()[-1]) - start


def inline_whole() -> float:
    """Start of the command line's process to its end, for a job that does nothing."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", INLINE], check=True)
    return time.perf_counter() - start


async def detached_first_row(client: JobClient) -> float:
    """Call of `submit` to the worker's first row, through a supervisor of its own."""
    start = time.time()
    job = await client.submit(JobSpec(action="test_rows", params={"n": 1}))
    await client.wait(job)
    return first_row(client.workspace, job) - start


async def submit_alone(client: JobClient) -> float:
    start = time.perf_counter()
    job = await client.submit(JobSpec(action="test_rows", params={"n": 1}))
    taken = time.perf_counter() - start
    await client.wait(job)
    return taken


async def ask_time(client: JobClient, job: int) -> float:
    """A request to a warm worker and its answer."""
    start = time.perf_counter()
    await client.ask(job, "test_echo", {})
    return time.perf_counter() - start


async def idle_costs(client: JobClient, seconds: float) -> list[str]:
    """CPU and memory of supervisor, worker and a client that follows, while a job says nothing."""
    jobs = [await client.submit(JobSpec(action="interactive", params={"idle": 600}, cpus=0)) for _ in range(3)]
    followers = [asyncio.create_task(_follow(client, job)) for job in jobs]
    watcher = asyncio.create_task(_watch(client))
    while {client.workspace.view(job).state for job in jobs} != {"running"}:
        await asyncio.sleep(0.05)
    await asyncio.sleep(1.0)
    events = [next(e for e in read_events(client.workspace.folder(j)) if e.get("state") == "running") for j in jobs]
    watched = {"supervisor": events[0]["supervisor"], "worker": events[0]["pid"], "client, 3 jobs": os.getpid()}
    processes = {name: psutil.Process(pid) for name, pid in watched.items()}
    before = {name: _cpu(process) for name, process in processes.items()}
    await asyncio.sleep(seconds)
    lines = []
    for name, process in processes.items():
        used = _cpu(process) - before[name]
        memory = process.memory_full_info()
        figures = f"{used / seconds:7.3%} of a core, RSS {memory.rss / 1e6:5.1f} MB, its own {memory.uss / 1e6:5.1f} MB"
        lines.append(f"idle {name:<20} {figures}")
    for job in jobs:
        await client.cancel(job)
    await asyncio.gather(*followers)
    watcher.cancel()
    return lines


def _cpu(process: psutil.Process) -> float:
    """Seconds of CPU so far; exact for this process, in steps of 10 ms for others."""
    times = process.cpu_times()
    return time.process_time() if process.pid == os.getpid() else times.user + times.system


async def _follow(client: JobClient, job: int) -> None:
    async for _ in client.events(job):
        pass


async def _watch(client: JobClient) -> None:
    async for _ in client.watch():
        pass


async def _lags(client: JobClient) -> list[float]:
    job = await client.submit(JobSpec(action="test_rows", params={"n": 50, "pause": 0.02}))
    return [time.time() - event["t"] async for event in client.events(job) if event["type"] == "row"]


def _line(name: str, seconds: list[float]) -> str:
    ordered = [1000 * value for value in sorted(seconds)]
    return f"{name:<58} {statistics.median(ordered):7.1f} ms   ({ordered[0]:.1f} to {ordered[-1]:.1f})"


async def measure(repeat: int, idle: float) -> list[str]:
    home = Workspace()
    client = JobClient(home, ACTIONS)
    lines = [
        _line("bare Python", [bare_python() for _ in range(repeat)]),
        _line("command line -> worker's first row", [inline_first_row(home) for _ in range(repeat)]),
        _line("command line, whole, empty job", [inline_whole() for _ in range(repeat)]),
        _line("client: submit returns", [await submit_alone(client) for _ in range(repeat)]),
        _line("client -> supervisor -> worker's first row", [await detached_first_row(client) for _ in range(repeat)]),
        _line("event on file -> follower has it (rows 20 ms apart)", await _lags(client)),
    ]
    warm = await client.submit(JobSpec(action="interactive", cpus=0))
    lines.append(_line("warm worker: request -> answer", [await ask_time(client, warm) for _ in range(repeat)][1:]))
    await client.cancel(warm)
    await client.wait(warm)
    lines += await idle_costs(client, idle)
    client.close()
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--idle", type=float, default=10.0, help="seconds to watch idle processes")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(LAYERWISE_HOME=f"{folder}/home", LAYERWISE_LEASES=f"{folder}/leases")
        os.environ.update(LAYERWISE_EXTRA_ACTIONS=EXTRA_ACTIONS, PYTHONPATH=f"{ROOT}:{ROOT / 'tests'}")
        os.environ["LAYERWISE_EXTRA_REQUESTS"] = "test_echo=support.jobactions:echo"
        lines = asyncio.run(measure(options.repeat, options.idle))
    print("\n".join(lines))
    if options.output is not None:
        options.output.write_text("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
