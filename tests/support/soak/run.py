"""All comparisons of a plan, a few at a time, and what went wrong with them."""

import collections
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
from support.soak.comparison import Comparison, Reference
from support.soak.left import left_behind, rows_of
from support.soak.plan import Plan

from layerwise._tool.backends.jobs.inline import run_inline
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.backends.specs import FeedSpec, RunnerSpec
from layerwise._tool.debugtools import ACTIONS
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec
from layerwise._tool.surgery.demo import make_demo


def soak(spec: JobSpec, planned: list[Plan], together: int, say: Callable[[str], None]) -> list[str]:
    """Run the comparisons of a plan in the workspace that LAYERWISE_HOME names; returns what went wrong."""
    home = Workspace()
    start = time.monotonic()
    first = run_inline(spec, lambda event: None, home, ACTIONS)
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


def comparison(folder: Path) -> JobSpec:
    """The demo pair, every tensor: what the soak compares."""
    paths = make_demo(folder)
    sides = [RunnerSpec(kind="onnxrt", model=str(path), threads=1) for path in (paths.fp16, paths.fp32)]
    feeds = FeedSpec(files=[str(paths.inputs)])
    spec = CompareSpec(model=str(paths.fp32), runners=sides, feeds=feeds, marks=MarkSpec(everything=True))
    return JobSpec(action="compare", params=msgspec.to_builtins(spec))
