"""Reads and writes the files that trtexec exports: times, layer profile, layer information.

Formats as in TensorRT's samples/common/sampleReporting.cpp: milliseconds; older versions write `inMs` and `outMs`
instead of `h2dMs` and `d2hMs`.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from layerwise._tool.backends.bench.timed import Timing
from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.formats.json_text import read_json
from layerwise._tool.backends.text import shown

_OLD = {"h2dMs": "inMs", "d2hMs": "outMs"}
_PHASES = {"h2d": "h2dMs", "compute": "computeMs", "d2h": "d2hMs"}


@dataclass
class Times:
    """Latencies in milliseconds, one per run, and the phases of each run if measured."""

    latency: list[float] = field(default_factory=list)
    phases: dict[str, list[float]] = field(default_factory=dict)
    seconds: float = 0.0


@dataclass(frozen=True)
class ProfileLayer:
    """One layer of a profile; percent is its share of the time of all layers."""

    name: str
    mean_ms: float
    median_ms: float
    percent: float
    total_ms: float = 0.0


def write_times(timings: Sequence[Timing], phases: Sequence[str]) -> str:
    """Return the text of `--exportTimes`. A phase that was not measured has length zero."""
    origin = timings[0][0] if timings else 0.0
    lines = []
    for start, end, *lengths in timings:
        taken = dict(zip(phases, lengths, strict=True))
        h2d, compute, d2h, enqueue = (taken.get(name, 0.0) for name in ("h2d", "compute", "d2h", "enqueue"))
        copied, computed = start + h2d, start + h2d + compute
        begun = {
            "Enq": (copied, copied + enqueue), "H2d": (start, copied), "Compute": (copied, computed),
            "D2h": (computed, computed + d2h),
        }  # fmt: skip
        row = {f"{edge}{name}Ms": (time - origin) * 1000 for name, times in begun.items()
               for edge, time in zip(("start", "end"), times, strict=True)}  # fmt: skip
        row |= {key: taken.get(name, 0.0) * 1000 for name, key in _PHASES.items()}
        lines.append(json.dumps({**row, "latencyMs": (end - start) * 1000}))
    return "[\n  " + "\n, ".join(lines) + "\n]\n"


def write_profile(layers: Sequence[ProfileLayer], count: int) -> str:
    """Return the text of `--exportProfile`; `count`: number of profiled runs."""
    rows: list[dict[str, Any]] = [{"count": count}]
    rows += [
        {"name": layer.name, "timeMs": layer.total_ms, "averageMs": layer.mean_ms, "medianMs": layer.median_ms,
         "percentage": layer.percent} for layer in layers
    ]  # fmt: skip
    return "[\n  " + "\n, ".join(json.dumps(row) for row in rows) + "\n]\n"


def read_times(path: Path) -> Times:
    """Read a file of `--exportTimes`, from trtexec or from us. Raises BadFile for anything else."""
    rows = _rows(path)
    if not rows or not all("latencyMs" in row for row in rows):
        raise BadFile(path, "is not a file of trtexec's --exportTimes: its rows have no latencyMs")
    times = Times([_number(path, row, "latencyMs") for row in rows])
    for name, key in _PHASES.items():
        used = key if key in rows[0] else _OLD.get(key, key)
        values = [_number(path, row, used) for row in rows if used in row]
        if len(values) == len(rows) and any(values):
            times.phases[name] = values
    ends = [_number(path, row, key) for row in rows for key in ("endD2hMs", "endOutMs") if key in row]
    starts = [_number(path, row, key) for row in rows for key in ("startEnqMs",) if key in row]
    times.seconds = (max(ends) - min(starts)) / 1000 if ends and starts else sum(times.latency) / 1000
    return times


def is_profile(path: Path) -> bool:
    """Return whether the file is one of `--exportProfile`. Raises BadFile if it is not an array of objects."""
    return any("averageMs" in row or "percentage" in row for row in _rows(path))


def read_profile(path: Path) -> list[ProfileLayer]:
    """Read a file of `--exportProfile`, from trtexec or from us. Raises BadFile for anything else."""
    rows = [row for row in _rows(path) if "name" in row]
    if not rows:
        raise BadFile(path, "is not a file of trtexec's --exportProfile: it has no layers")
    found = []
    for row in rows:
        mean = _number(path, row, "averageMs")
        middle = _number(path, row, "medianMs") if "medianMs" in row else mean
        total = _number(path, row, "timeMs") if "timeMs" in row else 0.0
        found.append(ProfileLayer(str(row["name"]), mean, middle, _number(path, row, "percentage"), total))
    return found


def _rows(path: Path) -> list[dict[str, Any]]:
    rows = read_json(path)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise BadFile(path, "is no file of trtexec: it should be a JSON array of objects")
    return rows


def _number(path: Path, row: dict[str, Any], key: str) -> float:
    value = row.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadFile(path, f"{key} of a row is not a number, but {shown(str(value), 60)}")
    return float(value)
