"""Running a command and measuring it: wall time, CPU time, peak memory of the process tree; start included.

The peak is sampled: what the kernel keeps (ru_maxrss) has the parent's memory in it from before exec.
"""

import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OURS = [sys.executable, "-m", "layerwise"]
THEIRS = [str(Path(sys.executable).parent / "polygraphy")]
_EVERY = 0.01
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Measured:
    """Seconds on the wall, seconds of CPU in all threads and processes, megabytes at the peak."""

    wall: float
    cpu: float
    peak: float


def measure(
    command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None, *, memory: bool = True
) -> Measured:
    """Run a command in `folder`, its output thrown away. SystemExit with its last words if it fails.

    memory: sample it, which takes some 4 % of a processor: where all are busy, times are for runs without. 0 if not.
    """
    env = {**os.environ, "PYTHONPATH": str(ROOT), "LAYERWISE_HOME": str(folder / "home"), **(environment or {})}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # what pip has installed is compiled, and so is ours once it has run
    with (folder / "output.txt").open("wb") as output:
        started = time.perf_counter()
        child = subprocess.Popen(command, cwd=folder, env=env, stdout=output, stderr=output)
        peak, over = [0.0], threading.Event()
        watcher = threading.Thread(target=_watch, args=(child.pid, peak, over))
        if memory:
            watcher.start()
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - started
    over.set()
    if memory:
        watcher.join()
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)}: exit {child.returncode}\n{(folder / 'output.txt').read_text()[-2000:]}")
    return Measured(wall, usage.ru_utime + usage.ru_stime, peak[0])


def median(runs: Sequence[Measured]) -> Measured:
    """The median of each figure."""
    return Measured(*(statistics.median(getattr(run, name) for run in runs) for name in ("wall", "cpu", "peak")))


def _watch(pid: int, peak: list[float], over: threading.Event) -> None:
    while not over.wait(_EVERY):
        peak[0] = max(peak[0], sum(map(_resident, _tree(pid))) / 2**20)


def _tree(pid: int) -> list[int]:
    found = [pid]
    for process in found:
        try:
            for task in Path(f"/proc/{process}/task").iterdir():
                found += map(int, (task / "children").read_text().split())
        except OSError:
            continue
    return found


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0
