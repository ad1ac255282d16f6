"""A matrix as a report: a part for each cell, read from its job's folder."""

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.debugtools.matrix.conclusion import cell_name
from layerwise._tool.debugtools.matrix.rows import CellRow
from layerwise._tool.debugtools.report.parts import failed_part, folder_part
from layerwise._tool.debugtools.report.structure import Part, Report


def matrix_report(title: str, rows: Sequence[CellRow]) -> Report:
    """Return the report of all cells that have ended. A cell whose job did not end well is a part with an error."""
    return Report(title, [_part(row) for row in sorted(rows, key=lambda row: row.number)])


def _part(row: CellRow) -> Part:
    receipt, name = row.receipt, cell_name(row)
    key = "/".join(part for part in row.id if part)
    known = {"verdict": receipt.verdict, "suspect": receipt.suspect, "bundle": receipt.bundle,
             "machine": receipt.machine, "finished": "before this run" if row.reused else ""}  # fmt: skip
    try:
        part = folder_part(Path(receipt.path), key=key, name=name) if receipt.verdict in ("passed", "failed") else None
    except LayerwiseError as error:
        part = replace(failed_part(name, f"its rows cannot be read: {error}", exit_code=1), key=key)
    if part is None:
        part = replace(failed_part(name, receipt.text or receipt.verdict, exit_code=1), key=key)
    return replace(part, facts={**part.facts, **{fact: value for fact, value in known.items() if value}})
