"""Locating as its job action does, in this process, with a real job folder."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import onnx

from layerwise._tool.backends.feeds.writer import save_feeds
from layerwise._tool.backends.jobs.context import JobContext
from layerwise._tool.backends.jobs.journal.events import read_events
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.backends.specs import FeedSpec, RunnerSpec
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.debugtools.locate.action import locate
from layerwise._tool.debugtools.locate.spec import LocateSpec

ORT = RunnerSpec(kind="onnxrt", threads=1)
REFERENCE = RunnerSpec(kind="reference")


@dataclass
class Located:
    """What a job left in its journal."""

    result: dict[str, Any]
    events: list[dict[str, Any]]
    folder: Path

    @property
    def suspects(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.result["suspects"]
        return found

    @property
    def nodes(self) -> list[str]:
        return [suspect["node"] for suspect in self.suspects]

    def table(self, name: str = "layers") -> list[dict[str, Any]]:
        return [event["row"] for event in self.events if event["type"] == "row" and event["table"] == name]

    def row(self, tensor: str) -> dict[str, Any]:
        (row,) = [row for row in self.table() if row["tensor"] == tensor]
        return row

    def texts(self, kind: str) -> list[str]:
        return [event["text"] for event in self.events if event["type"] == kind]


def run_locate(spec: LocateSpec, folder: Path | None = None, attempt: int = 1) -> Located:
    """Run the job; with `folder` as a later attempt of it."""
    if folder is None:
        folder, lock = Workspace().create(JobSpec(action="locate", params=msgspec.to_builtins(spec)))
        os.close(lock)
    result = msgspec.to_builtins(locate(JobContext(folder, attempt)))
    return Located(result, list(read_events(folder)), folder)


def between(
    suspect: onnx.ModelProto, good: onnx.ModelProto, folder: Path, *feeds: dict[str, Any], **more: Any
) -> Located:
    """Locate with two models on onnxruntime; `more`: fields of LocateSpec and CompareSpec."""
    return run_locate(spec_for(suspect, good, folder, *feeds, **more))


def spec_for(
    suspect: onnx.ModelProto, good: onnx.ModelProto, folder: Path, *feeds: dict[str, Any], **more: Any
) -> LocateSpec:
    """The spec of two models on onnxruntime, or on `runners`, saved to `folder`."""
    paths = [folder / "suspect.onnx", folder / "good.onnx"]
    for path, model in zip(paths, (suspect, good), strict=True):
        path.write_bytes(model.SerializeToString())
    if feeds:
        save_feeds(folder / "feeds.safetensors", feeds)
        more["feeds"] = FeedSpec(files=[str(folder / "feeds.safetensors")])
    own = {name: more.pop(name) for name in ("bodies", "top") if name in more}
    first, second = more.pop("runners", (ORT, ORT))
    runners = [first, msgspec.structs.replace(second, model=str(paths[1]))]
    return LocateSpec(compare=CompareSpec(model=str(paths[0]), runners=runners, **more), **own)
