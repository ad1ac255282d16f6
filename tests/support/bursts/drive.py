"""Keys typed into the real app: after a look at each, or all at once, over a line with a delay."""

import json
import random
import re
import time
from collections.abc import Sequence
from pathlib import Path

from support.bursts.place import Place
from support.cpu_time import RUNS, ticks
from support.forked_jobs import as_forks
from support.terminal import LOOK, app
from support.told import unfinished

from layerwise._tool.tui.controllers.jobs import WATCH_EVERY

QUIET, RESTS = 0.12, WATCH_EVERY + 0.2
"""Seconds without output or work after which the app is idle, and after which it is so at the end: it sleeps between
two looks at its jobs."""
OF_USERS = ("compare", "locate", "bench", "bundle", "triage", "inspect_trt")
RESTING = ("done", "failed", "cancelled", "lost", "waiting")
"""States of a job that goes on no further by itself: the last one is of a question."""
SIZES = ((80, 24), (120, 40))


class Typist:
    """The app on a copy of a place; a context manager."""

    def __init__(self, place: Place, size: tuple[int, int]) -> None:
        self.place = place
        before = as_forks(place.process_name)
        self.terminal = app(
            place.model, columns=size[0], rows=size[1], env=place.env, cwd=place.folder / "work", before=before
        )

    def __enter__(self) -> "Typist":
        self.terminal.__enter__()
        self.terminal.wait_for(lambda text: "1 Graph" in text and " nodes " in text)
        self.idle(RESTS)  # and so the job that has read the nodes is among the jobs
        return self

    def __exit__(self, *error: object) -> None:
        self.terminal.__exit__(None, None, None)

    # ── typing ──

    def slowly(self, keys: Sequence[str]) -> None:
        """Each key once the app has done what the one before it asks."""
        for key in keys:
            self.terminal.press(key)
            self.idle()

    def at_once(self, keys: Sequence[str], delay: float, chance: random.Random) -> None:
        """All keys without a look; with a delay in packets as a line over SSH delivers them."""
        if not delay:
            self.terminal.press(*keys)
            return
        rest = list(keys)
        while rest:
            count = chance.randint(1, max(1, len(rest)))
            self._wait(delay)
            self.terminal.press(*rest[:count])
            del rest[:count]

    def _wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self.terminal.pump(left)

    # ── waiting ──

    def idle(self, quiet: float = QUIET, limit: float = 60.0) -> None:
        """Until neither the app nor anything of its workspace has worked or written for so many seconds."""
        until, since, worked = time.monotonic() + limit, time.monotonic(), self._work()
        while time.monotonic() < until:
            if self.terminal.pump(LOOK):
                since = time.monotonic()
                continue
            now = self._work()
            if abs(now - worked) > 1 or now >= RUNS:
                since = time.monotonic()
            elif time.monotonic() - since > quiet or self.terminal.process.poll() is not None:
                return
            worked = now
        raise AssertionError(f"still at work after {limit:.0f} s:\n{self.terminal.text}")

    def _work(self) -> int:
        """Ticks of processor time of all processes of the workspace; one that waits for a processor counts as more."""
        return sum(map(ticks, {self.terminal.process.pid, *self.place.processes()}))

    def at_rest(self) -> str:
        """Wait for the end of all jobs, and for the app; what is on the screen then."""
        self.idle(RESTS)
        until = time.monotonic() + 120
        while self._jobs_run():
            self.terminal.meanwhile(lambda: not self._jobs_run() or time.monotonic() > until, 150)
            if time.monotonic() > until:
                raise AssertionError(f"a job does not end:\n{unfinished(self.place.home)}\n{self.terminal.text}")
            self.idle(RESTS)
        return self.terminal.text

    def _jobs_run(self) -> bool:
        return any(state not in RESTING for _, state in jobs_of(self.place.home))


def jobs_of(home: Path) -> list[tuple[str, str]]:
    """Action and last state of each job that a user starts, in their order; the app's own worker is not one."""
    found = []
    for folder in sorted((home / "jobs").iterdir(), key=lambda folder: folder.name.zfill(9)):
        spec = folder / "spec.json"
        action = json.loads(spec.read_text()).get("action", "?") if spec.is_file() else "?"
        if action in OF_USERS or action.startswith("debug_"):
            found.append((action, _last_state(folder / "events.jsonl")))
    return found


def _last_state(journal: Path) -> str:
    events = map(json.loads, filter(None, journal.read_text().splitlines())) if journal.is_file() else []
    return next((e["state"] for e in reversed([*events]) if e.get("type") == "state"), "none")


_TIMES = re.compile(
    r"\d+(\.\d+)? ?(ns|µs|us|ms|s|min|m|h|MB/s|GB/s|%|kB|MB)(?![\w])|\bnow\b|\d\d:\d\d(:\d\d)?"
    r"|[▁▂▃▄▅▆▇█]+|\d+ rows in answers"
)


def same_text(text: str, folder: Path) -> str:
    """A screen without what differs from run to run: times, the memory of GPUs, and where the workspace is."""
    text = re.sub(r"(?m)^( *gpu\d+ ).*", r"\1#", text.replace(str(folder), "PLACE"))
    if "[6 Perf]" in text:  # measured anew
        text = re.sub(r"[\d.]+(e[+-]\d+)?", "#", text)
    return "\n".join(re.sub(r" +", " ", _TIMES.sub("#", line)).rstrip() for line in text.splitlines())
