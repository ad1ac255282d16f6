"""Keeping a worker from taking all memory, and whether the kernel killed something because it ran out."""

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from layerwise._tool.backends.limits.memory import control_group_files, limit, own_memory

_COUNTER = "oom_kill"
_FASTEST = 16 << 30  # bytes a second that a process can take
_SOONEST, _LATEST = 0.02, 1.0  # seconds
_SLOWER, _IDLE_LATEST = 4.0, 30.0  # times; seconds


class MemoryWatch:
    """Looks how much memory of its own a process holds, the more often the nearer it is to its limit.

    One that uses no processor time is looked at ever less often, until something happens.

    Not a limit of the kernel's: those count what is reserved and never used (CUDA), and files mapped for writing, as
    onnxruntime maps weights. most: bytes, None where there is no limit. due: when to look again, time.monotonic().
    """

    def __init__(self, spec: Mapping[str, Any]) -> None:
        self.most: int | None = spec.get("memory") or limit({**os.environ, **spec.get("env", {})})
        self.held = 0
        self.due = 0.0 if self.most else float("inf")
        self._pause, self._ticks = _SOONEST, -1

    def is_over(self, pid: int) -> bool:
        """Look if it is time, and tell whether the process holds more than it may. Called when something happens."""
        now = time.monotonic()
        if self.most is None or now < self.due - self._pause + _SOONEST:
            return False
        before, self._ticks, self.held = self._ticks, _ticks(pid), own_memory(pid)
        soon = min(max((self.most - self.held) / _FASTEST, _SOONEST), _LATEST)
        idle = self._ticks == before and now >= self.due
        self._pause = min(_IDLE_LATEST, self._pause * _SLOWER) if idle else soon
        self.due = now + self._pause
        return self.held > self.most


def _ticks(pid: int) -> int:
    """Processor time that a process has used (proc(5)); 0 if it is gone."""
    try:
        fields = Path("/proc", str(pid), "stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return 0
    return int(fields[11]) + int(fields[12])


def oom_kills() -> int:
    """A number that grows when the kernel kills a process of this control group for memory; of this machine, where
    there is no group. A kill in another group says nothing of a worker of ours.
    """
    groups = control_group_files("memory.events", "memory.oom_control")
    innermost_first = sorted(groups, key=lambda path: len(path.parts), reverse=True)
    counts = map(_counter, [*innermost_first, Path("/proc/vmstat")])
    return next((count for count in counts if count is not None), 0)


def _counter(path: Path) -> int | None:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        key, _, value = line.partition(" ")
        if key == _COUNTER and value.strip().isdecimal():
            return int(value)
    return None
