"""A soak of the job layer: comparisons while app, command line, workers and supervisors die by SIGKILL.

    python benchmarks/soak.py [--comparisons 100] [--seed 1] [--together 2] [--output docs/evidence/soak.txt]

Each comparison is started by an app (which submits it to a supervisor of its own) or by a command line (which
supervises it itself), in a process of its own. At a random instant one of those who take part is killed, or all of
them. Then the job is looked at by a fresh client, retried if it did not end well, and perhaps shot at again. Checked:

- no job reads done unless its result is there and its rows are those of an undisturbed run;
- no row that was on file before a kill is missing after it;
- after a kill the worker and its children are gone within a second, and the job reads as ended;
- at the end no lease is taken and no process is left.

The plan follows from the seed; the instants are real time, so what they hit varies.
"""

import argparse
import asyncio
import collections
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import msgspec
import psutil

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from backends.jobs import leases  # noqa: E402
from backends.jobs.client import JobClient  # noqa: E402
from backends.jobs.events import read_events  # noqa: E402
from backends.jobs.inline import run_inline  # noqa: E402
from backends.jobs.spec import JobSpec  # noqa: E402
from backends.jobs.store import Workspace  # noqa: E402
from backends.jobs.view import JobView  # noqa: E402

APP = """
import asyncio, sys, msgspec
from backends.jobs.client import JobClient
from backends.jobs.spec import JobSpec
async def main():
    client = JobClient()
    job = await client.submit(msgspec.json.decode(sys.argv[1], type=JobSpec))
    async for event in client.events(job):
        pass
asyncio.run(main())
"""
COMMAND_LINE = """
import sys, msgspec
from backends.jobs.inline import run_inline
from backends.jobs.spec import JobSpec
from backends.jobs.store import Workspace
run_inline(msgspec.json.decode(sys.argv[1], type=JobSpec), lambda event: None, Workspace())
"""
GONE_WITHIN = 1.0
ENDED_WITHIN = 120.0
VICTIMS = ("starter", "worker", "supervisor", "everybody")


class Shot(NamedTuple):
    """Who is killed, and when, as a part of the time that an undisturbed run takes.

    The time of a starter's death counts from its start, that of the others from the moment the worker runs.
    """

    victim: str
    instant: float


class Plan(NamedTuple):
    """One comparison: who starts it, and the shots, the second one at its retry."""

    number: int
    starter: str
    shots: tuple[Shot, ...]


class Reference(NamedTuple):
    """An undisturbed run: how long it took, and its rows, each as text without what differs by nature."""

    seconds: float
    rows: frozenset[str]


def plans(count: int, seed: int) -> list[Plan]:
    """The comparisons of a seed."""
    chance = random.Random(seed)

    def shot() -> Shot:
        return Shot(chance.choice(VICTIMS), round(chance.uniform(0.0, 1.1), 3))

    return [
        Plan(k + 1, chance.choice(("app", "command line")), tuple(shot() for _ in range(chance.choice((1, 1, 2)))))
        for k in range(count)
    ]


def soak(spec: JobSpec, planned: list[Plan], together: int, say: Callable[[str], None]) -> list[str]:
    """Run the comparisons of a plan in the workspace that LAYERWISE_HOME names; returns what went wrong."""
    home = Workspace()
    start = time.monotonic()
    first = run_inline(spec, lambda event: None, home)
    if first.state != "done":
        return [f"the undisturbed run is {first.state}: {first.card}"]
    reference = Reference(time.monotonic() - start, frozenset(rows_of(first.folder)))
    say(f"undisturbed run: {reference.seconds:.2f} s, {len(reference.rows)} rows")
    with ThreadPoolExecutor(together) as pool:
        results = list(pool.map(lambda plan: Comparison(home, spec, plan, reference).run(), planned))
    for line, _ in results:
        say(line)
    summary = collections.Counter(line.split("after: ")[1].split(",")[0] for line, _ in results)
    say(f"state after the first shot: {dict(sorted(summary.items()))}")
    return [wrong for _, wrongs in results for wrong in wrongs] + left_behind(home)


class Comparison:
    """One comparison of the plan, and what was found wrong with it."""

    def __init__(self, home: Workspace, spec: JobSpec, plan: Plan, reference: Reference) -> None:
        self._home = home
        self._spec = msgspec.structs.replace(spec, title=f"soak-{plan.number}")
        self._plan = plan
        self._reference = reference
        self._wrong: list[str] = []

    def run(self) -> tuple[str, list[str]]:
        """See it through; returns a line for the report and what went wrong."""
        starter = self._start()
        state = self._shoot(self._plan.shots[0], starter)
        story = [f"{self._plan.number:3d} {self._plan.starter:<12} {_told(self._plan.shots[0])} after: {state}"]
        for shot in self._plan.shots[1:]:
            if state in ("failed", "lost"):
                self._retry()
                state = self._shoot(shot, None)
                story.append(f"retried, {_told(shot)} then: {state}")
        if state in ("failed", "lost"):
            self._retry()
            state = self._ended()
            story.append(f"retried: {state}")
        if state not in ("done", "never made"):
            self._complain(f"ends as {state}: {self._view().card}")
        return ", ".join(story), self._wrong

    def _start(self) -> subprocess.Popen[bytes]:
        code = APP if self._plan.starter == "app" else COMMAND_LINE
        command = [sys.executable, "-c", code, msgspec.json.encode(self._spec).decode()]
        return subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL)

    def _shoot(self, shot: Shot, starter: subprocess.Popen[bytes] | None) -> str:
        if shot.victim != "starter":
            _within(20.0, lambda: self._processes(self._job()) or self._over())
        time.sleep(shot.instant * self._reference.seconds)
        job = self._job()
        before = rows_of(job) if job else []
        hit = self._kill(shot.victim, starter, job)
        job = job or (self._appears() if starter and not hit else self._job())
        if job is None:
            return "never made"
        state = self._ended()
        if starter is not None:
            starter.wait()
        self._check_rows(job, before)
        return state

    def _kill(self, victim: str, starter: subprocess.Popen[bytes] | None, job: Path | None) -> bool:
        """SIGKILL; returns whether the starter was killed, before it had made a job perhaps."""
        processes = self._processes(job)
        if starter is not None:
            processes["starter"] = starter.pid
            if self._plan.starter == "command line":
                processes["supervisor"] = starter.pid
        chosen = processes.values() if victim == "everybody" else [processes[v] for v in (victim,) if v in processes]
        children = _descendants(processes.get("worker")) if "worker" in processes else []
        for pid in set(chosen):
            _kill(pid)
        if {processes.get("worker"), processes.get("supervisor")} & set(chosen):
            self._check_gone([*children, processes.get("worker", 0)])
        return starter is not None and starter.pid in chosen

    def _check_gone(self, pids: list[int]) -> None:
        if not _within(GONE_WITHIN, lambda: not any(map(_alive, pids))):
            self._complain(f"processes outlive their supervisor: {[pid for pid in pids if _alive(pid)]}")

    def _processes(self, job: Path | None) -> dict[str, int]:
        """The processes of the job's last attempt, if it has come so far and has not ended."""
        states = [event for event in read_events(job) if event["type"] == "state"] if job else []
        if not states or states[-1]["state"] != "running":
            return {}
        return {"worker": states[-1]["pid"], "supervisor": states[-1]["supervisor"]}

    def _ended(self) -> str:
        """The state that a fresh client finds once the job has ended."""
        if not _within(ENDED_WITHIN, lambda: self._view().final):
            self._complain(f"has not ended after {ENDED_WITHIN} s")
        view = self._view()
        self._check_done(view)
        return view.state

    def _check_done(self, view: JobView) -> None:
        if view.state == "done" and view.result is None:
            self._complain("reads done without a result")
        differing = set(rows_of(view.folder)) ^ self._reference.rows
        if view.state == "done" and differing:
            self._complain(f"reads done with other rows than an undisturbed run: {sorted(differing)[:4]}")
        if view.state in ("failed", "lost") and view.card is None:
            self._complain("has no card")

    def _check_rows(self, job: Path, before: list[str]) -> None:
        missing = collections.Counter(before) - collections.Counter(rows_of(job))
        if missing:
            self._complain(f"{sum(missing.values())} finished rows are gone")

    def _retry(self) -> None:
        asyncio.run(JobClient(self._home).retry(self._view().id))

    def _view(self) -> JobView:
        job = self._job()
        assert job is not None
        return self._home.view(int(job.name))

    def _appears(self) -> Path | None:
        _within(20.0, lambda: self._job() is not None)
        return self._job()

    def _over(self) -> bool:
        return self._job() is not None and self._view().final

    def _job(self) -> Path | None:
        for number in self._home.ids():
            folder = self._home.jobs / str(number)
            if json.loads((folder / "spec.json").read_bytes()).get("title") == self._spec.title:
                return folder
        return None

    def _complain(self, text: str) -> None:
        self._wrong.append(f"comparison {self._plan.number} {text}")


def rows_of(folder: Path) -> list[str]:
    """The rows of a job's layer table that are on file, without the times they took."""
    rows = [event["row"] for event in read_events(folder) if event["type"] == "row" and event["table"] == "layers"]
    return [json.dumps(row, sort_keys=True) for row in rows]


def left_behind(home: Workspace) -> list[str]:
    """Leases and processes that are still there; they get a second to go."""
    _within(GONE_WITHIN, lambda: not list(_left(home)))
    return list(_left(home))


def _left(home: Workspace) -> Iterator[str]:
    for folder in home.leases.iterdir():
        yield from (f"the lease {name} is still taken" for name in leases.taken(folder))
    for process in psutil.process_iter():
        try:
            words = [*process.cmdline(), process.environ().get("LAYERWISE_JOB", "")]
        except psutil.Error:
            continue
        if process.pid != os.getpid() and any(str(home.jobs) in word for word in words):
            yield f"a process is left: {process.pid} {' '.join(words)}"


def _within(seconds: float, check: Callable[[], object]) -> bool:
    """Whether the check holds before so many seconds are over."""
    deadline = time.monotonic() + seconds
    while not check():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def _descendants(pid: int | None) -> list[int]:
    try:
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    except psutil.Error:
        return []


def _alive(pid: int) -> bool:
    try:
        return pid > 0 and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _told(shot: Shot) -> str:
    return f"kill {shot.victim:<10} at {shot.instant:5.3f}"


def comparison(folder: Path) -> JobSpec:
    """The demo pair, every tensor: what the soak compares."""
    from backends.specs import FeedSpec, RunnerSpec
    from debugtools.compare.spec import CompareSpec, MarkSpec
    from surgery.demo import make_demo

    paths = make_demo(folder)
    sides = [RunnerSpec(kind="onnxrt", model=str(path), threads=1) for path in (paths.fp16, paths.fp32)]
    feeds = FeedSpec(files=[str(paths.inputs)])
    spec = CompareSpec(model=str(paths.fp32), runners=sides, feeds=feeds, marks=MarkSpec(everything=True))
    return JobSpec(action="compare", params=msgspec.to_builtins(spec))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--comparisons", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--together", type=int, default=2, help="comparisons at the same time")
    parser.add_argument("--output", type=Path, help="also write the report to this file")
    options = parser.parse_args()
    lines: list[str] = []

    def say(text: str) -> None:
        print(text, flush=True)
        lines.append(text)

    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(LAYERWISE_HOME=f"{folder}/home", LAYERWISE_LEASES=f"{folder}/leases", PYTHONPATH=str(ROOT))
        say(f"soak: {options.comparisons} comparisons, seed {options.seed}, {options.together} at a time")
        start = time.monotonic()
        wrong = soak(comparison(Path(folder, "demo")), plans(options.comparisons, options.seed), options.together, say)
        say(f"{time.monotonic() - start:.0f} s; wrong: {len(wrong)}")
        for text in wrong:
            say(f"WRONG {text}")
    if options.output is not None:
        options.output.write_text("\n".join(lines) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
