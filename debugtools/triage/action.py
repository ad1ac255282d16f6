"""The job action `triage`: walks the flowchart, one step after the other, and writes the report."""

import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.jobs.journal.earlier_attempts import typed
from layerwise._tool.debugtools.triage.finding import Case, Finding
from layerwise._tool.debugtools.triage.flow import END, FIRST, STEPS, check_answers, follow
from layerwise._tool.debugtools.triage.place import Place
from layerwise._tool.debugtools.triage.report import write_reports
from layerwise._tool.debugtools.triage.rows import StepRow, TriageResult
from layerwise._tool.debugtools.triage.spec import TriageSpec
from layerwise._tool.debugtools.triage.steps import MEASURES
from layerwise._tool.debugtools.triage.subjobs import SubJobs

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


def triage(context: "JobContext") -> TriageResult:
    """Find out what kind of fault `context.params` (a TriageSpec) describes.

    Emits a row of table steps for each step taken; returns the way, the verdict and the files written. Steps that an
    earlier attempt of the job took are not taken again. LayerwiseError for what the user can mend.
    """
    try:
        spec = msgspec.convert(context.params, TriageSpec)
    except msgspec.ValidationError as error:
        raise UsageError(f"the description of the triage does not fit: {error}") from None
    if len(spec.compare.runners) < 2:
        raise UsageError("a triage needs two sides: --onnxrt with --reference-model GOOD.onnx, for example")
    check_answers(spec.answers)
    return context.resumed(lambda: Triage(context, spec).run())


class Triage:
    """One walk through the flowchart."""

    def __init__(self, context: "JobContext", spec: TriageSpec) -> None:
        self.context, self.spec = context, spec
        self.earlier = typed(context.previous_rows("steps"), StepRow)
        self.case = Case(spec, SubJobs(context, spec.compare), self._place())
        self.rows: list[StepRow] = []
        self._asks = spec.ask

    def _place(self) -> Place:
        work = self.context.artifacts / "triage"
        try:
            if not self.earlier:
                shutil.rmtree(work, ignore_errors=True)
            work.mkdir(parents=True, exist_ok=True)
            place = Place(work, Path(self.spec.output) if self.spec.output else None)
            place.check()
        except OSError as error:
            raise LayerwiseError(f"{self.spec.output or work} cannot be made: {error.strerror}") from error
        return place

    def run(self) -> TriageResult:
        """Take steps until the way ends."""
        started = time.monotonic()
        name = self._taken()
        while name != END:
            name = self._step(name)
        paths = write_reports(self.case, self.rows, self.context.raw)
        last = self.rows[-1]
        return TriageResult(
            passed=bool(self.case.data("report", "bundle")), way=[(row.step, row.answer) for row in self.rows],
            end=last.step, advice=last.advice, files=paths, seconds=time.monotonic() - started,
            suspects=self.case.suspects,
        )  # fmt: skip

    def _taken(self) -> str:
        """Take in the steps of earlier attempts; the step to go on with."""
        name = FIRST
        for row in self.earlier:
            if row.step != name:
                break
            self.rows.append(row)
            data = self.case.place.known(row.data)
            self.case.findings[name] = Finding(row.answer, row.evidence, row.jobs, data)
            name = follow(name, row.answer)
        return name

    def _step(self, name: str) -> str:
        started = time.monotonic()
        self.context.log(f"{STEPS[name].title}: {STEPS[name].question}")
        given = self.spec.answers.get(name)
        found = Finding(given, ["answered by you"]) if given else MEASURES[name](self.case)
        by = "user" if given else "machine"
        if self._asks and not given:
            chosen = self._ask(name, found)
            by = "user" if chosen != found.answer else by
            found.answer = chosen
        self.case.findings[name] = found
        self._tell(name, found, by, time.monotonic() - started)
        return follow(name, found.answer)

    def _ask(self, name: str, found: Finding) -> str:
        """Put the machine's answer to the user, who may overrule it."""
        step = STEPS[name]
        question = {
            "kind": "triage", "step": name, "text": f"{step.title}: {step.question}",
            "choices": [*step.answers, "auto"], "suggestion": found.answer, "evidence": found.evidence,
        }  # fmt: skip
        reply = self.context.ask(question)
        answer = str(reply.get("answer", ""))
        self._asks = answer != "auto"
        return answer if answer in step.answers else found.answer

    def _tell(self, name: str, found: Finding, by: str, seconds: float) -> None:
        step = STEPS[name]
        row = StepRow(
            step=name, title=step.title, question=step.question, answer=found.answer, by=by,
            evidence=self.case.place.told(found.evidence), jobs=found.jobs, data=self.case.place.told(found.data),
            seconds=seconds, next=step.answers[found.answer], advice=step.advice.get(found.answer, ""),
        )  # fmt: skip
        self.rows.append(row)
        self.context.row("steps", row)
