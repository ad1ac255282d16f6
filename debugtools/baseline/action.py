"""The job action `baseline`: the errors of all layers, written to a file or held against one."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.specs import read_spec
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.baseline.cause import Since
from layerwise._tool.debugtools.baseline.conclusion import accepted, conclusion
from layerwise._tool.debugtools.baseline.file import load_baseline, save_baseline
from layerwise._tool.debugtools.baseline.growth import FAILING, OUTPUT, Growth
from layerwise._tool.debugtools.baseline.repeating import settle
from layerwise._tool.debugtools.baseline.request import (
    kept,
    layered,
    other_settings,
    read_request,
    without_paths,
)
from layerwise._tool.debugtools.baseline.rows import Baseline, BaselineResult, ChangeRow
from layerwise._tool.debugtools.baseline.run import Taken, take
from layerwise._tool.debugtools.baseline.spec import BaselineSpec

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


def baseline(context: "JobContext") -> BaselineResult:
    """Make or check a baseline, as `context.params` (a BaselineSpec) say.

    Emits the comparison's own tables and rows of table `baseline`; returns what they come to. UsageError for a file of
    other settings, LayerwiseError for what the user can mend.
    """
    spec = read_spec(context.params, BaselineSpec, "the baseline")
    return context.resumed(lambda: run_baseline(context, spec), [])


def run_baseline(context: "JobContext", spec: BaselineSpec) -> BaselineResult:
    """Make or check a baseline. Errors as `baseline`."""
    started = time.perf_counter()
    compare = layered(spec.compare)
    then = _read(spec) if spec.file else None
    folder = Path(spec.output or spec.file or ".").absolute().parent
    if not folder.is_dir():
        raise UsageError(f"{shown(str(folder), 200)} is no folder: make it, or choose another place for the baseline")
    taken = take(context, compare, kept(compare if spec.paths else without_paths(compare), folder))
    if not taken.layers:
        raise UsageError(f"nothing was compared: {taken.result.conclusion}")
    if then is None:
        result = _accepted(taken)
    else:
        result = _checked(context, spec, then, taken)
    if spec.output:
        save_baseline(Path(spec.output), taken.baseline)
    return replace(result, written=spec.output or "", seconds=time.perf_counter() - started)


def _read(spec: BaselineSpec) -> Baseline:
    path = Path(spec.file)
    then = load_baseline(path)
    differing = other_settings(read_request(then.request, path), layered(spec.compare))
    if differing:
        told = "; ".join(differing)
        raise UsageError(
            f"{shown(spec.file, 200)} was made with other settings ({told}): its errors are of another comparison. "
            "Make one for these with `baseline accept`"
        )
    return then


def _accepted(taken: Taken) -> BaselineResult:
    count = len(taken.layers)
    return BaselineResult(
        passed=True, layers=count, compared=count, outputs_pass=taken.result.passed,
        conclusion=accepted(count, taken.result),
    )  # fmt: skip


def _checked(context: "JobContext", spec: BaselineSpec, then: Baseline, taken: Taken) -> BaselineResult:
    since = Since(then, taken.baseline)
    growth = Growth(then, taken.layers, since)
    near = growth.near()
    repetitions = 0
    if near and spec.repeat != 0:
        found = settle(context, layered(spec.compare), taken.inputs, near, spec.repeat)
        growth.settle(found)
        repetitions = max((each.repetitions for each in found.values()), default=0)
    rows = growth.rows()
    for row in rows:
        context.row("baseline", row)
    counts = _counts(rows)
    lost = next((row for row in rows if row.change == "lost" and row.note == OUTPUT), None)
    passed = not any(counts.get(change) for change in FAILING) and lost is None and bool(growth.pairing.found)
    first = next((row for row in rows if row.change == "grown"), None)
    first = first or next((row for row in rows if row.change in FAILING), lost)
    result = BaselineResult(
        passed=passed or bool(spec.output), layers=len(taken.layers), compared=len(growth.pairing.found), counts=counts,
        first=first, changes=since.told(), versions_then=then.machine.versions,
        versions_now=taken.baseline.machine.versions, outputs_pass=taken.result.passed, repetitions=repetitions,
    )  # fmt: skip
    return replace(result, conclusion=conclusion(result, spec))


def _counts(rows: list[ChangeRow]) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in rows:
        found[row.change] = found.get(row.change, 0) + 1
    return found
