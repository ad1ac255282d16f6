"""A matrix as a report that other tools read: its cells, and below them the jobs of those that did not pass."""

from pathlib import Path

from layerwise._tool.debugtools.matrix.conclusion import cell_name
from layerwise._tool.debugtools.matrix.rows import CellRow, MatrixResult
from layerwise._tool.debugtools.report.parts import folders_report
from layerwise._tool.debugtools.report.structure import Case, Outcome, Part, Report, Section, accounted

_OUTCOMES: dict[str, Outcome] = {"passed": "passed", "failed": "failed"}


def matrix_report(result: MatrixResult, command: str, exit_code: int) -> Report:
    """The report of a matrix that has ended. command: that repeats it."""
    changed = {(each.model, each.side, each.feed, each.action): each for each in result.changes}
    cases = []
    for row in result.cells:
        change = changed.get(row.id)
        why = ", ".join(change.why) if change is not None else ""
        moved = f"was {change.was or 'not there'}" + (f" ({why})" if why else "") if change is not None else ""
        cases.append(_case(row, moved))
    part = Part(
        name=f"layerwise matrix {Path(result.file).name}", action="matrix", key="matrix", command=command,
        exit_code=exit_code, conclusion=result.conclusion, started=result.started, seconds=result.seconds,
        facts=result.versions, sections=[Section("cells", cases)],
    )  # fmt: skip
    folders = {}
    for row in result.cells:
        if row.receipt.verdict != "passed" and row.receipt.path:
            folder = Path(row.receipt.path)
            folders[cell_name(row)] = folder
            if row.receipt.locate:
                folders[f"{cell_name(row)}: located"] = folder.with_name(str(row.receipt.locate))
    return Report(part.name, [accounted(part), *folders_report(part.name, folders).parts])


def _case(row: CellRow, moved: str) -> Case:
    receipt = row.receipt
    outcome = _OUTCOMES.get(receipt.verdict, "error")
    kind = f" ({receipt.kind})" if receipt.kind else ""
    lines = [
        moved,
        receipt.repeated.text if receipt.repeated is not None else "",
        receipt.suspect and f"suspect {receipt.suspect}",
        receipt.bundle and f"bundle {receipt.bundle}",
    ]
    return Case(
        name=cell_name(row), outcome=outcome, rule=f"matrix/{receipt.verdict}", seconds=receipt.seconds,
        message="" if outcome == "passed" else receipt.text or f"{receipt.verdict}{kind}",
        detail="\n".join(filter(None, lines)),
        figures={"job": receipt.job, "not compared": receipt.gaps, "finished before": row.reused},
    )  # fmt: skip
