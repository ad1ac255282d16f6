"""The clock where the fault `milliseconds` says how long layers take: it stands still but for executions."""

import time
from typing import Any

from . import _faults

_moved = {"ms": 0.0}


def told(header: dict[str, Any]) -> float | None:
    """How many milliseconds the layers of an engine take, as the fault says; None without it."""
    globs = _faults.faults().get("milliseconds")
    if globs is None:
        return None
    return sum(_first(layer["name"], globs) for layer in header["layers"])


def _first(name: str, globs: dict[str, float]) -> float:
    return next((ms for glob, ms in globs.items() if _faults.matches(name, glob)), 0.0)


def move(ms: float) -> None:
    """Move the clock, `time.perf_counter` of the process, on. The first call makes it stand still otherwise."""
    if not _moved.get("stopped"):
        begun = time.perf_counter()
        _moved["stopped"] = 1.0
        time.perf_counter = lambda: begun + _moved["ms"] / 1000
    _moved["ms"] += ms
