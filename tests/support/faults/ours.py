"""The product's own actions, run in this process with a real job folder, as a worker with all imports done has them."""

import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from support.faults.files import Files

from layerwise._tool.backends.jobs.actions import find_action
from layerwise._tool.backends.jobs.context import JobContext
from layerwise._tool.backends.jobs.journal.events import read_events
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.backends.specs import FeedSpec, OptimizationLevel, RunnerSpec
from layerwise._tool.debugtools import ACTIONS
from layerwise._tool.debugtools.compare.spec import CompareSpec


@dataclass(frozen=True)
class Done:
    """What an action returned, the rows it wrote, how long it took on the wall, and in all threads of this process."""

    result: dict[str, Any]
    rows: list[dict[str, Any]]
    seconds: float
    cpu: float


def two_models(files: Files) -> CompareSpec:
    """Suspect against good model, on onnxruntime as a user has it."""
    runners = [RunnerSpec(kind="onnxrt", model=str(files.suspect)), RunnerSpec(kind="onnxrt", model=str(files.good))]
    return CompareSpec(model=str(files.suspect), runners=runners, feeds=FeedSpec(files=[str(files.inputs)]))


def two_levels(model: Path, inputs: Path, level: OptimizationLevel = "disable", **more: Any) -> CompareSpec:
    """One model, optimised against `level`."""
    runners = [RunnerSpec(kind="onnxrt"), RunnerSpec(kind="onnxrt", graph_optimization_level=level)]
    return CompareSpec(model=str(model), runners=runners, feeds=FeedSpec(files=[str(inputs)]), **more)


def run_action(action: str, spec: Any, table: str) -> Done:
    """Run an action in a workspace of its own, and give the rows of one table."""
    before = os.environ.get("LAYERWISE_HOME")
    with tempfile.TemporaryDirectory() as home:
        os.environ["LAYERWISE_HOME"] = home
        try:
            job = JobSpec(action=action, params=msgspec.to_builtins(spec))
            folder, lock = Workspace().create(job)
            os.close(lock)
            function = find_action(action, ACTIONS)
            started, before_cpu = time.perf_counter(), time.process_time()
            result = function(JobContext(folder, 1))
            seconds, cpu = time.perf_counter() - started, time.process_time() - before_cpu
            events = read_events(folder)
            rows = [event["row"] for event in events if event["type"] == "row" and event.get("table") == table]
        finally:
            os.environ.pop("LAYERWISE_HOME")
            if before is not None:
                os.environ["LAYERWISE_HOME"] = before
    return Done(msgspec.to_builtins(result), rows, seconds, cpu)
