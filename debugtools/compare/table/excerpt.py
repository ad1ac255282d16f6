"""Rows of a comparison around the first wrong one, as lines of plain text."""

from collections.abc import Iterable, Sequence

from msgspec import UNSET

from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.result import CompareResult
from layerwise._tool.debugtools.compare.rows import LayerRow
from layerwise._tool.debugtools.compare.table.report_lines import number

_HEAD = ("", "#", "op", "node", "tensor", "rel L2", "max abs", "verdict", "finding")
_WIDEST = 40


def first_wrong(rows: Sequence[LayerRow], result: CompareResult) -> LayerRow | None:
    """The row of the first bad tensor; else the first that failed; None where none did."""
    bad = result.first_bad
    if bad is not None:
        key = (bad.iteration, bad.pair, bad.tensor)
        found = next((row for row in rows if row.key == key), None)
        if found is not None:
            return found
    return next((row for row in _ordered(rows) if row.passed is False), None)


def rows_around(rows: Sequence[LayerRow], result: CompareResult, count: int = 3) -> list[str]:
    """The first wrong row with `count` rows before and behind it, and where its node comes from; else none."""
    wrong = first_wrong(rows, result)
    if wrong is None:
        return []
    near = _ordered(row for row in rows if (row.iteration, row.pair) == (wrong.iteration, wrong.pair))
    place = next(number for number, row in enumerate(near) if row.key == wrong.key)
    told = near[max(0, place - count) : place + count + 1]
    table = [_HEAD, *(_cells(row, row.key == wrong.key) for row in told)]
    widths = [max(len(cells[column]) for cells in table) for column in range(len(_HEAD))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip() for cells in table
    ]
    return [*lines, *_origin(wrong), *([f"note: {shown(wrong.note, 400)}"] if wrong.note else [])]


def _ordered(rows: Iterable[LayerRow]) -> list[LayerRow]:
    return sorted(rows, key=lambda row: (row.iteration, row.pair, row.i < 0, row.i))


def _cells(row: LayerRow, wrong: bool) -> tuple[str, ...]:
    verdict = {True: "passed", False: "FAILED", None: "none"}[row.passed]
    names = (shown(text, _WIDEST) for text in (row.op, row.node, row.tensor))
    largest = None if row.max_abs is UNSET else row.max_abs
    return (">" if wrong else "", str(row.i), *names, number(row.rel_l2), number(largest), verdict, row.finding)


def _origin(row: LayerRow) -> list[str]:
    found = []
    if row.module is not UNSET and row.module:
        found.append(f"module: {shown('.'.join(row.module), 200)}")
    if row.source is not UNSET:
        found.append(f"source: {shown(row.source.file, 200)}:{row.source.line}")
    return found
