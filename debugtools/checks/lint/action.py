"""The job action `lint`: is a model valid, and if not, which of its nodes are at fault?"""

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.filesystem.files import atomic_write
from layerwise._tool.backends.specs import read_spec
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.checks.lint.linter import Linter
from layerwise._tool.debugtools.checks.lint.report import LintResult, Report
from layerwise._tool.debugtools.checks.lint.spec import LintSpec

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


def lint(context: "JobContext") -> LintResult:
    """Lint the model that `context.params` describes (a LintSpec).

    Each finding is a row of the table lint. The report goes to artifacts/lint.json, and to `output`.
    """
    started = time.perf_counter()
    spec = read_spec(context.params, LintSpec, "what to lint")
    report = Report(lambda entry: context.row("lint", entry))
    linter = Linter(spec, report, context.warn, lambda done, total, name: context.progress(done, total, "nodes", name))
    linter.run()
    path = context.artifacts / "lint.json"
    path.parent.mkdir(exist_ok=True)
    for target in (path, *([Path(spec.output)] if spec.output else [])):
        _write(target, json.dumps(report.to_json(), indent=4))
    passing, failing = report.passing, report.failing
    unjudged, seconds = len(linter.names.difference(passing, failing)), time.perf_counter() - started
    return LintResult(
        report.passed, len(passing), len(failing), unjudged, len(report.entries), report=str(path), seconds=seconds
    )


def _write(path: Path, text: str) -> None:
    try:
        atomic_write(path, text)
    except OSError as error:
        raise LayerwiseError(f"{shown(str(path))}: the report cannot be written: {error.strerror}") from None
