"""Models with planted faults, and searches run as their job actions do, in this process, with a real job folder."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
from onnx import numpy_helper

from layerwise._tool.backends.jobs.context import JobContext
from layerwise._tool.backends.jobs.journal.events import read_events
from layerwise._tool.backends.jobs.journal.json_lines import encode_line
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.debugtools.search.builds.run import debug_build
from layerwise._tool.debugtools.search.driver.action import debug_bisect, debug_reduce, debug_repeat
from layerwise._tool.debugtools.search.spec import BuildsSpec, DebugSpec

ORT = RunnerSpec(kind="onnxrt", threads=1)
ACTIONS: dict[str, Callable[[JobContext], object]] = {
    "reduce": debug_reduce, "bisect": debug_bisect, "repeat": debug_repeat, "build": debug_build,
}  # fmt: skip


@dataclass
class Searched:
    """What a search left in its journal."""

    result: dict[str, Any]
    events: list[dict[str, Any]]
    folder: Path

    def table(self, name: str) -> list[dict[str, Any]]:
        return [event["row"] for event in self.events if event["type"] == "row" and event["table"] == name]

    @property
    def found(self) -> list[list[str]]:
        """The names of the nodes of each set that was found."""
        return [[node["node"] for node in entry["nodes"]] for entry in self.result["found"]]

    def texts(self, kind: str) -> str:
        return "\n".join(event["text"] for event in self.events if event["type"] == kind)


def as_read(result: object) -> dict[str, Any]:
    """What an action returned, as its journal has it."""
    read: dict[str, Any] = json.loads(encode_line({"data": result}))["data"]
    return read


def job_folder(spec: DebugSpec | BuildsSpec, what: str) -> Path:
    folder, lock = Workspace().create(JobSpec(action=f"debug_{what}", params=msgspec.to_builtins(spec)))
    os.close(lock)
    return folder


def search(
    spec: DebugSpec | BuildsSpec, what: str = "reduce", folder: Path | None = None, attempt: int = 1
) -> Searched:
    """Run a search; with `folder` as a later attempt of the same job."""
    folder = folder or job_folder(spec, what)
    context = JobContext(folder, attempt)
    context.writer.write("state", state="running", attempt=attempt)
    try:
        result = as_read(ACTIONS[what](context))
    finally:
        context.writer.close()
    return Searched(result, list(read_events(folder)), folder)


def sides(bad: Path, good: Path, **more: Any) -> CompareSpec:
    """The suspect model against the good one, both on onnxruntime."""
    return CompareSpec(model=str(bad), runners=[ORT, msgspec.structs.replace(ORT, model=str(good))], **more)


def planted(model: onnx.ModelProto, *names: str, scale: float = 1.01) -> onnx.ModelProto:
    """A copy whose nodes of these names go wrong: a weight is scaled, or another operator takes their place."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    weights = {tensor.name: tensor for tensor in copy.graph.initializer}
    for node in copy.graph.node:
        if node.name not in names:
            continue
        swapped = {"Relu": "Softplus", "Add": "Sub", "Sub": "Add", "Tanh": "Sigmoid", "Sigmoid": "Tanh"}
        place = next((k for k, name in enumerate(node.input) if name in weights), None)
        if place is None or node.op_type not in ("Conv", "MatMul", "Gemm", "Mul"):
            node.op_type = swapped[node.op_type]
            continue
        wrong = numpy_helper.to_array(weights[node.input[place]]) * np.float32(scale)
        node.input[place] += f"_{node.name}_wrong"
        copy.graph.initializer.append(numpy_helper.from_array(wrong.astype(np.float32), node.input[place]))
    return copy


def saved(folder: Path, good: onnx.ModelProto, *faults: str) -> tuple[Path, Path]:
    """Write the model with faults and without: bad.onnx, good.onnx."""
    onnx.save(good, folder / "good.onnx")
    onnx.save(planted(good, *faults), folder / "bad.onnx")
    return folder / "bad.onnx", folder / "good.onnx"
