"""What a step of the triage found, and what steps share."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec import UNSET

from layerwise._tool.backends.filesystem.folders import whole_folder
from layerwise._tool.backends.filesystem.permissions import make_folder
from layerwise._tool.backends.jobs.journal.earlier_attempts import typed
from layerwise._tool.debugtools.compare.pairing.left_out import unasked
from layerwise._tool.debugtools.compare.rows import CompareResult
from layerwise._tool.debugtools.locate.rows import SuspectRow
from layerwise._tool.debugtools.triage.spec import TriageSpec
from layerwise._tool.debugtools.triage.subjobs import Done, SubJobs


class Place:
    """work: the folder in the job, which later attempts go on with. output: the user's, None: there is none."""

    def __init__(self, work: Path, output: Path | None) -> None:
        self.work, self.output = work, output

    def check(self) -> None:
        """OSError where nothing can be put at the user's folder."""
        if self.output is None:
            return
        make_folder(self.output.parent)
        if self.output.exists() and not self.output.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(self.output))
        if not os.access(self.output.parent, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self.output))

    @contextmanager
    def published(self) -> Iterator[Path]:
        """Yield the folder that reports are written to; in the end all is at its place, whole. OSError."""
        if self.output is None:
            yield self.work
            return
        make_folder(self.output.parent)
        with whole_folder(self.output, merge=True) as new:
            shutil.copytree(self.work, new, dirs_exist_ok=True)
            yield new

    def bundles(self) -> int:
        """How many bundles there are already; a new one gets the next number."""
        folders = [self.work] if self.output is None else [self.work, self.output]
        return len({path.name for folder in folders for path in folder.glob("bundle*") if path.is_dir()})

    def told(self, value: Any) -> Any:
        """A JSON value with the paths that its files have in the end."""
        return value if self.output is None else _replaced(value, str(self.work), str(self.output))

    def known(self, value: Any) -> Any:
        """The value that `told` was given."""
        return value if self.output is None else _replaced(value, str(self.output), str(self.work))


def _replaced(value: Any, old: str, new: str) -> Any:
    if isinstance(value, str):
        return value.replace(old + os.sep, new + os.sep)
    if isinstance(value, dict):
        return {key: _replaced(each, old, new) for key, each in value.items()}
    return [_replaced(each, old, new) for each in value] if isinstance(value, list) else value


@dataclass
class Finding:
    """An answer with its evidence: lines of text, the jobs that gave it, and what later steps need of it."""

    answer: str
    evidence: list[str] = field(default_factory=list)
    jobs: list[int] = field(default_factory=list)
    data: dict[str, Any] = field(default_factory=dict)


@dataclass
class Case:
    """The triage so far."""

    spec: TriageSpec
    jobs: SubJobs
    place: Place
    findings: dict[str, Finding] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """Where its files go."""
        return self.place.work

    @property
    def suspects(self) -> list[SuspectRow]:
        """What was located, worst first."""
        return typed(self.data("extract", "suspects") or [], SuspectRow)

    def data(self, step: str, key: str) -> Any:
        """What a step left, None if it was not taken or answered by the user."""
        found = self.findings.get(step)
        return found.data.get(key) if found else None


def outputs_told(done: Done[CompareResult]) -> list[str]:
    """A line of evidence about a comparison's verdict."""
    if done.problem:
        return [f"job {done.job} did not end well: {done.problem}"]
    result, worst = done.result, done.result.worst
    line = f"job {done.job}: {result.n_failed} of {result.n_rows} rows fail"
    if worst is not None and worst.max_abs is not UNSET:
        line += f"; worst {worst.tensor}: max abs {worst.max_abs:.3g}, max rel {worst.max_rel:.3g}"
    missing = sum(map(unasked, result.not_compared))
    return [line, *([f"{missing} tensors or iterations were not compared"] if missing else [])]


def failed(done: Done[CompareResult]) -> bool:
    """Whether a comparison shows the fault: rows fail, or it does not run at all."""
    return bool(done.problem) or not done.result.passed
