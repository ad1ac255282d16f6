"""The rows of a triage's table and its result, as the job's journal (schema version 1) holds them, and its report."""

from typing import Any

from msgspec import Struct

from layerwise._tool.debugtools.locate.rows import SuspectRow


class StepRow(Struct, frozen=True, kw_only=True):
    """A row of table `steps`: a step that was answered, by "user" or "machine", with its evidence and the jobs it ran.

    data: what later steps need of it, as JSON. seconds: it took. next: the step that the answer leads to.
    """

    step: str
    title: str
    question: str
    answer: str
    by: str
    evidence: list[str] = []
    jobs: list[int] = []
    data: dict[str, Any] = {}
    seconds: float = 0.0
    next: str = ""
    advice: str = ""


class TriageReport(Struct, frozen=True):
    """The report in JSON. bundle: the folder of the repro bundle, None if there is none."""

    command: str
    steps: list[StepRow]
    suspects: list[SuspectRow]
    bundle: str | None


class TriageResult(Struct, frozen=True, kw_only=True):
    """The result of a triage. passed: it ends with a bundle, or nothing differs.

    way: the steps taken and their answers; end: the last one.
    files: the reports and the bundle, by kind. seconds: it took. suspects: worst first. conclusion: what was found, in
    a sentence.
    """

    passed: bool = False
    way: list[tuple[str, str]] = []
    end: str = ""
    advice: str = ""
    files: dict[str, str] = {}
    seconds: float = 0.0
    suspects: list[SuspectRow] = []
    conclusion: str = ""
