"""A triage as sections: its steps, and the suspects that it ends with."""

from layerwise._tool.debugtools.report.collected import Collected
from layerwise._tool.debugtools.report.figures import known
from layerwise._tool.debugtools.report.of_search import suspect_cases
from layerwise._tool.debugtools.report.structure import Case, Section
from layerwise._tool.debugtools.triage.conclusion import nothing_wrong
from layerwise._tool.debugtools.triage.rows import StepRow, TriageResult


def triage_sections(collected: Collected) -> list[Section]:
    """The fault, if there is one, the suspects and the steps."""
    steps = collected.rows("steps", StepRow)
    result = collected.result_as(TriageResult)
    found = []
    if result is not None and steps:
        good = nothing_wrong(steps)
        case = Case(name="the sides agree", outcome="passed" if good else "failed", rule="triage/differs",
                    message="" if good else result.conclusion)  # fmt: skip
        found.append(Section("verdict", [case]))
        found.append(Section("suspects", list(suspect_cases(result.suspects))))
    found.append(Section("steps", [_step(number, row) for number, row in enumerate(steps, 1)]))
    return [section for section in found if section.cases]


def _step(number: int, row: StepRow) -> Case:
    who = "answered by you" if row.by == "user" else ""
    return Case(name=f"{number}. {row.title}: {row.question}", outcome="passed", message=row.answer,
                detail="\n".join([*row.evidence, row.advice]).strip(), rule="triage/step", seconds=row.seconds,
                figures=known({"answer": row.answer, "by": who}))  # fmt: skip
