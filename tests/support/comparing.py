"""Running a comparison as its job action does, in this process, with a real job folder."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from layerwise._tool.backends.jobs.context import JobContext
from layerwise._tool.backends.jobs.journal.events import read_events
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.debugtools.compare.action import compare
from layerwise._tool.debugtools.compare.spec import CompareSpec

ORT = RunnerSpec(kind="onnxrt", threads=1)
OFF = RunnerSpec(kind="onnxrt", threads=1, graph_optimization_level="disable")
REFERENCE = RunnerSpec(kind="reference")


@dataclass
class Compared:
    """What a comparison left in its journal."""

    result: dict[str, Any]
    events: list[dict[str, Any]]
    folder: Path

    def table(self, name: str = "layers") -> list[dict[str, Any]]:
        return [event["row"] for event in self.events if event["type"] == "row" and event["table"] == name]

    def row(self, tensor: str) -> dict[str, Any]:
        (row,) = [row for row in self.table() if row["tensor"] == tensor]
        return row

    def texts(self, kind: str) -> list[str]:
        return [event["text"] for event in self.events if event["type"] == kind]


def run_compare(spec: CompareSpec, folder: Path | None = None, attempt: int = 1) -> Compared:
    """Run a comparison; with `folder` as a later attempt of the same job."""
    if folder is None:
        job = JobSpec(action="compare", params=msgspec.to_builtins(spec))
        folder, lock = Workspace().create(job)
        os.close(lock)
    context = JobContext(folder, attempt)
    try:
        result = msgspec.to_builtins(compare(context))
    finally:
        context.writer.close()
    return Compared(result, list(read_events(folder)), folder)
