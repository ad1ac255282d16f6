"""Reads onnxruntime's profile as layers.

The file is Chrome's trace format: an array of events with `ts` and `dur` in microseconds. A node's kernel is an event
of category Node whose name is the node's and `_kernel_time`; a run is the event `model_run`. Nodes of a body run inside
the event of the node that holds it (If, Loop, Scan), which counts only its own time, so that the layers add up to the
run.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median
from typing import Any

from layerwise._tool.backends.errors import BadFile

_KERNEL = "_kernel_time"
_RAW_NAME = re.compile(r'(?<="name" :)"(.*?)"(?=,"args" : \{)', re.DOTALL)
"""A name as onnxruntime writes it up to 1.30: quotes, backslashes and control characters in it are not escaped."""
Event = Mapping[str, Any]


@dataclass
class LayerTime:
    """One layer: its time in each profiled run, in milliseconds, excluding nodes of its bodies.

    calls: how often it ran in total (more than once per run inside a loop).
    """

    name: str
    op: str = ""
    provider: str = ""
    calls: int = 0
    runs_ms: list[float] = field(default_factory=list)

    @property
    def mean_ms(self) -> float:
        return fmean(self.runs_ms)

    @property
    def median_ms(self) -> float:
        return median(self.runs_ms)

    @property
    def typical_ms(self) -> float:
        """Return the mean of the middle half of the runs: unlike the mean it ignores interrupted runs, unlike the
        median it averages out the profiler's rounding to microseconds.
        """
        ordered, out = sorted(self.runs_ms), len(self.runs_ms) // 4
        return fmean(ordered[out : len(ordered) - out])


def read_profile(path: Path, skip: int) -> list[LayerTime]:
    """Return the layers of a profile in order of first execution, without its first `skip` runs.

    Raises BadFile if it is not an onnxruntime profile, or has no more than `skip` runs.
    """
    events = _events(path)
    starts = sorted(float(event["ts"]) for event in events if event.get("name") == "model_run")
    if len(starts) <= skip:
        raise BadFile(path, f"holds {len(starts)} runs, too few to leave {skip} out")
    layers: dict[tuple[str, str], LayerTime] = {}
    for event, own in _own_times([event for event in events if _is_kernel(event)]):
        run = bisect_right(starts, float(event["ts"])) - 1 - skip
        if run >= 0:
            _note(layers, event, own / 1000, run, len(starts) - skip)
    return list(layers.values())


def _events(path: Path) -> list[Event]:
    try:
        text = path.read_bytes().decode("utf-8", "surrogateescape")
    except OSError as error:
        raise BadFile(path, error.strerror or str(error)) from None
    try:
        events = _parsed(text)
    except ValueError as error:
        raise BadFile(path, f"is not JSON: {error}") from None
    fit = isinstance(events, list) and all(isinstance(event, dict) for event in events)
    if not fit or not any(_is_kernel(event) for event in events):
        raise BadFile(path, "is not a profile of onnxruntime: it has no kernel times of nodes")
    return [event for event in events if isinstance(event.get("ts"), int | float)]


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return json.loads(_RAW_NAME.sub(lambda found: json.dumps(found[1]), text))


def _is_kernel(event: Event) -> bool:
    return event.get("cat") == "Node" and str(event.get("name")).endswith(_KERNEL)


def _own_times(events: Iterable[Event]) -> list[tuple[Event, float]]:
    """Return events sorted by start, each with its duration less that of nested events on the same thread."""
    found: list[tuple[Event, float]] = []
    open_: dict[Any, list[tuple[float, int]]] = {}
    for event in sorted(events, key=lambda event: (float(event["ts"]), -float(event.get("dur") or 0))):
        start, duration = float(event["ts"]), float(event.get("dur") or 0)
        stack = open_.setdefault(event.get("tid"), [])
        while stack and stack[-1][0] <= start:
            stack.pop()
        if stack:
            holder, own = found[stack[-1][1]]
            found[stack[-1][1]] = holder, max(0.0, own - duration)
        stack.append((start + duration, len(found)))
        found.append((event, duration))
    return found


def _note(layers: dict[tuple[str, str], LayerTime], event: Event, own_ms: float, run: int, runs: int) -> None:
    args = event.get("args")
    args = args if isinstance(args, dict) else {}
    name, op = str(event["name"]).removesuffix(_KERNEL), str(args.get("op_name", ""))
    provider = str(args.get("provider", "")).removesuffix("ExecutionProvider")
    layer = layers.setdefault((name, op), LayerTime(name, op, provider, runs_ms=[0.0] * runs))
    layer.calls += 1
    layer.runs_ms[run] += own_ms
