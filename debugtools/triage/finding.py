"""What a step of the triage found, and what steps share."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec import UNSET

from layerwise._tool.backends.jobs.journal.earlier_attempts import typed
from layerwise._tool.debugtools.compare.pairing.left_out import unasked
from layerwise._tool.debugtools.compare.rows import CompareResult
from layerwise._tool.debugtools.locate.rows import SuspectRow
from layerwise._tool.debugtools.triage.place import Place
from layerwise._tool.debugtools.triage.spec import TriageSpec
from layerwise._tool.debugtools.triage.subjobs import Done, SubJobs


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
