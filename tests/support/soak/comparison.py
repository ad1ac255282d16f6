"""One comparison of a soak, from its start to its end, with everything that is checked about it."""

import asyncio
import collections
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

import msgspec
from support.soak.left import GONE_WITHIN, rows_of
from support.soak.plan import Plan, Shot, told
from support.soak.processes import alive, descendants, kill, within
from support.soak.starters import start
from support.soak.watched import Watched

from layerwise._tool.backends.jobs.client import JobClient
from layerwise._tool.backends.jobs.journal.view import JobView
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.debugtools import ACTIONS

ENDED_WITHIN = 120.0


class Reference(NamedTuple):
    """An undisturbed run: how long it took, and its rows, each as text without what differs by nature."""

    seconds: float
    rows: frozenset[str]


class Comparison:
    """One comparison of the plan, and what was found wrong with it."""

    def __init__(self, home: Workspace, spec: JobSpec, plan: Plan, reference: Reference) -> None:
        self._home = home
        self._spec = msgspec.structs.replace(spec, title=f"soak-{plan.number}")
        self._job = Watched(home, f"soak-{plan.number}")
        self._plan = plan
        self._reference = reference
        self._wrong: list[str] = []

    def run(self) -> tuple[str, list[str]]:
        """See it through; returns a line for the report and what went wrong."""
        starter = start(self._plan.starter, self._spec)
        state = self._shoot(self._plan.shots[0], starter)
        story = [f"{self._plan.number:3d} {self._plan.starter:<12} {told(self._plan.shots[0])} after: {state}"]
        for shot in self._plan.shots[1:]:
            if state in ("failed", "lost"):
                self._retry()
                state = self._shoot(shot, None)
                story.append(f"retried, {told(shot)} then: {state}")
        if state in ("failed", "lost"):
            self._retry()
            state = self._ended()
            story.append(f"retried: {state}")
        if state not in ("done", "never made"):
            self._complain(f"ends as {state}: {self._job.view().card}")
        return ", ".join(story), self._wrong

    def _shoot(self, shot: Shot, starter: subprocess.Popen[bytes] | None) -> str:
        if shot.victim != "starter":
            within(20.0, lambda: self._job.processes() or self._job.over())
        time.sleep(shot.instant * self._reference.seconds)
        job = self._job.folder()
        before = rows_of(job) if job else []
        hit = self._kill(shot.victim, starter)
        job = job or (self._job.appears() if starter and not hit else self._job.folder())
        if job is None:
            return "never made"
        state = self._ended()
        if starter is not None:
            starter.wait()
        self._check_rows(job, before)
        return state

    def _kill(self, victim: str, starter: subprocess.Popen[bytes] | None) -> bool:
        """SIGKILL; returns whether the starter was killed, before it had made a job perhaps."""
        processes = self._job.processes()
        if starter is not None:
            processes["starter"] = starter.pid
            if self._plan.starter == "command line":
                processes["supervisor"] = starter.pid
        chosen = processes.values() if victim == "everybody" else [processes[v] for v in (victim,) if v in processes]
        children = descendants(processes.get("worker")) if "worker" in processes else []
        for pid in set(chosen):
            kill(pid)
        if {processes.get("worker"), processes.get("supervisor")} & set(chosen):
            self._check_gone([*children, processes.get("worker", 0)])
        return starter is not None and starter.pid in chosen

    def _check_gone(self, pids: list[int]) -> None:
        if not within(GONE_WITHIN, lambda: not any(map(alive, pids))):
            self._complain(f"processes outlive their supervisor: {[pid for pid in pids if alive(pid)]}")

    def _ended(self) -> str:
        """The state that a fresh client finds once the job has ended."""
        if not within(ENDED_WITHIN, lambda: self._job.view().final):
            self._complain(f"has not ended after {ENDED_WITHIN} s")
        view = self._job.view()
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
        asyncio.run(JobClient(self._home, ACTIONS).retry(self._job.view().id))

    def _complain(self, text: str) -> None:
        self._wrong.append(f"comparison {self._plan.number} {text}")
