"""A matrix as a report that other tools read: its cells, and below them the jobs of those that did not pass."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from layerwise._tool.backends.jobs.spec import load_spec
from layerwise._tool.backends.shell import shell_line
from layerwise._tool.backends.specs import read_spec
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.matrix.conclusion import conclusion
from layerwise._tool.debugtools.matrix.rows import CellRow, Change, MatrixResult
from layerwise._tool.debugtools.matrix.spec import CellSpec, MatrixSpec
from layerwise._tool.debugtools.report.collected import Collected
from layerwise._tool.debugtools.report.parts import folders_report, stopped
from layerwise._tool.debugtools.report.structure import Case, Outcome, Part, Report, Section, accounted

_OUTCOMES: dict[str, Outcome] = {"passed": "passed", "failed": "failed"}
_NOT_RUN = "not run: the matrix ended before its turn came"


def matrix_report(folder: Path, exit_code: int) -> Report:
    """The report of the job of a matrix, however it ended: cells that it did not come to are skipped.

    LayerwiseError where its description cannot be read, or is of another version.
    """
    job, collected = load_spec(folder), Collected().read(folder)
    spec = read_spec(job.params, MatrixSpec, "the matrix")
    rows = {row.number: row for row in collected.rows("cells", CellRow)}
    result = collected.result_as(MatrixResult) or MatrixResult(name=spec.name, file=spec.file)
    changed = {(each.model, each.side, each.feed, each.action): each for each in result.changes}
    ended = [rows[number] for number in sorted(rows)]
    cases = [
        _case(rows[number], changed.get(rows[number].id)) if number in rows else _not_run(cell)
        for number, cell in enumerate(spec.cells)
    ]
    part = Part(
        name=f"layerwise matrix {Path(spec.file).name}", action="matrix", key="matrix",
        command=shell_line(job.command), exit_code=exit_code, conclusion=result.conclusion or _so_far(spec, ended),
        started=collected.started, seconds=collected.seconds, facts=result.versions,
        sections=[Section("cells", cases), *stopped("matrix", collected)], messages=collected.messages,
    )  # fmt: skip
    return Report(part.name, [accounted(part), *folders_report(part.name, dict(_folders(ended))).parts])


def _so_far(spec: MatrixSpec, rows: Sequence[CellRow]) -> str:
    counts: dict[str, int] = {}
    for row in rows:
        counts[row.receipt.verdict] = counts.get(row.receipt.verdict, 0) + 1
    return f"{conclusion(rows, counts, [], '')} {len(spec.cells) - len(rows)} were not run."


def _folders(rows: Sequence[CellRow]) -> Iterator[tuple[str, Path]]:
    """The jobs of cells that did not pass, by what they are called in the report."""
    for row in rows:
        if row.receipt.verdict != "passed" and row.receipt.path:
            folder = Path(row.receipt.path)
            yield _name(row), folder
            if row.receipt.locate:
                yield f"{_name(row)}: located", folder.with_name(str(row.receipt.locate))


def _name(cell: CellRow | CellSpec) -> str:
    """A cell in words, whole: names that begin alike are to stay different."""
    return " × ".join(shown(part) for part in (cell.model, cell.side, cell.feed, cell.action) if part)


def _not_run(cell: CellSpec) -> Case:
    return Case(name=_name(cell), outcome="skipped", message=_NOT_RUN, rule="matrix/skipped")


def _case(row: CellRow, change: Change | None) -> Case:
    receipt = row.receipt
    outcome = _OUTCOMES.get(receipt.verdict, "error")
    kind = f" ({receipt.kind})" if receipt.kind not in ("", receipt.verdict) else ""
    why = f" ({', '.join(change.why)})" if change is not None and change.why else ""
    lines = [
        f"was {change.was or 'not there'}{why}" if change is not None else "",
        receipt.repeated.text if receipt.repeated is not None else "",
        receipt.suspect and f"suspect {receipt.suspect}",
        receipt.bundle and f"bundle {receipt.bundle}",
        receipt.pending and f"not carried out: {receipt.pending}",
    ]
    return Case(
        name=_name(row), outcome=outcome, rule=f"matrix/{receipt.verdict}", seconds=receipt.seconds,
        message="" if outcome == "passed" else receipt.text or f"{receipt.verdict}{kind}",
        detail="\n".join(filter(None, lines)),
        figures={"job": receipt.job, "not compared": receipt.gaps, "finished before": row.reused},
    )  # fmt: skip
