"""Running the linter as its job action does, in this process, with a real job folder."""

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import onnx

from layerwise._tool.backends.jobs.context import JobContext
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.debugtools.checks.lint.linter import lint
from layerwise._tool.debugtools.checks.lint.spec import LintSpec

Report = dict[str, Any]


def lint_file(path: Path, **fields: Any) -> tuple[dict[str, Any], Report]:
    """Lint a model file: the job's result, and its report."""
    spec = LintSpec(model=str(path), **fields)
    folder, lock = Workspace().create(JobSpec(action="lint", params=msgspec.to_builtins(spec)))
    os.close(lock)
    result = msgspec.to_builtins(lint(JobContext(folder, 1)))
    return result, json.loads(Path(result["report"]).read_bytes())


def lint_model(model: onnx.ModelProto, folder: Path, **fields: Any) -> tuple[dict[str, Any], Report]:
    """Lint a model that is not on file yet."""
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return lint_file(path, **fields)


def messages(report: Report, level: str = "exception", source: str | None = None) -> list[str]:
    """Messages of one level, of one source if it is given."""
    entries = [entry for entry in report["lint_entries"] if entry["level"] == level]
    return [entry["message"] for entry in entries if source is None or entry["source"] == source]
