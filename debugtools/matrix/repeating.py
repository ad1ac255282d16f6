"""Whether a cell that fails near its bound is there to stay: its comparison repeated, each time with other rounding."""

import math
from collections.abc import Callable

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from layerwise._tool.backends.jobs.journal.earlier_attempts import typed
from layerwise._tool.backends.jobs.journal.events import read_events
from layerwise._tool.backends.jobs.journal.view import JobView
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.debugtools.baseline.repetition import Repeated, beyond, enough
from layerwise._tool.debugtools.compare.rows import LayerRow
from layerwise._tool.debugtools.compare.spec import CompareSpec, unsaved

NEAR = 2.0
"""Times its tolerance that a failing tensor may be off to count as near its bound."""


def repeated(job: JobSpec, first: JobView, run: Callable[[str, JobSpec], JobView | None]) -> Repeated | None:
    """Repeat a comparison that failed until it is sure what that means; None where it is far beyond its bound, or has
    none, or a repetition was stopped. run: a step's name and its job to how the job ended, None if it did not.
    """
    value = times_of(first)
    if not 1.0 < value <= NEAR:
        return None
    values = [value]
    while not enough(values, 1.0):
        view = run(f"repeat-{len(values)}", _again(job, len(values)))
        if view is None or view.state != "done":
            return None
        values.append(times_of(view))
    return beyond(values, 1.0)


def _again(job: JobSpec, number: int) -> JobSpec:
    from layerwise._tool.debugtools.baseline.repeating import varied

    spec = varied(unsaved(msgspec.convert(job.params, CompareSpec)), number)
    return replace(job, params=msgspec.to_builtins(spec), title=f"{job.title}: repetition {number}")


def times_of(view: JobView) -> float:
    """How many times its tolerance the worst tensor of a comparison is off; inf where that cannot be said."""
    events = (event for event in read_events(view.folder) if event["type"] == "row" and event["table"] == "layers")
    return max((_times(row) for row in typed([event["row"] for event in events], LayerRow)), default=math.inf)


def _times(row: LayerRow) -> float:
    """Of one tensor: the smaller part of the two tolerances, each taken alone, that it would need."""
    needs = row.required
    found = [] if needs is UNSET else [_part(needs.abs, row.atol), _part(needs.rel, row.rtol)]
    times = min(found, default=math.inf)
    if row.passed is False:
        return times if times > 1.0 else math.inf  # another rule than the tolerances fails it
    return 0.0 if math.isinf(times) else min(times, 1.0)


def _part(needed: float | None, allowed: float | None) -> float:
    if needed is None or math.isnan(needed):
        return math.inf
    return needed / allowed if allowed else (0.0 if needed == 0 else math.inf)
