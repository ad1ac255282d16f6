"""What `layerwise matrix` prints: a line for each cell that has ended, the grid, and what has changed."""

import os
import shutil
from typing import TYPE_CHECKING, Any

import msgspec

from layerwise._tool.backends.jobs.journal.schema import Event
from layerwise._tool.backends.log import ERROR, FINISH, INFO, WARNING, Log
from layerwise._tool.backends.text import counted, shown
from layerwise._tool.debugtools.matrix.conclusion import cell_name
from layerwise._tool.debugtools.matrix.rows import CellRow, MatrixResult
from layerwise._tool.debugtools.matrix.spec import MatrixSpec
from layerwise._tool.tui.cli.submit import say_message
from layerwise._tool.tui.state.matrix import MatrixGrid, table_lines

if TYPE_CHECKING:
    from layerwise._tool.tui.cli.json_output import Collector

_LEVELS = {"passed": FINISH, "failed": ERROR, "error": ERROR, "lost": ERROR}
_WIDEST = 160


class MatrixReport:
    """Prints cells as they end."""

    def __init__(self, log: Log, spec: MatrixSpec) -> None:
        self.log, self.grid = log, MatrixGrid(spec.cells)

    def event(self, event: Event) -> None:
        self.grid.take(event)
        kind = event.get("type")
        if kind == "row" and event.get("table") == "cells":
            self._cell(msgspec.convert(event["row"], CellRow))
        elif kind == "result":
            self._result(msgspec.convert(event["data"], MatrixResult))
        else:
            say_message(event, self.log, "tools")

    def _cell(self, row: CellRow) -> None:
        receipt = row.receipt
        how = "finished before" if row.reused else f"{receipt.seconds:.1f} s"
        kind = f" ({receipt.kind})" if receipt.kind not in ("", receipt.verdict) else ""
        gaps = f", {counted(receipt.gaps, 'tensor')} not compared" if receipt.gaps else ""
        head = f"{receipt.verdict}{kind:<1}  {cell_name(row)}  job {receipt.job}, {how}{gaps}"
        self.log.say(_LEVELS.get(receipt.verdict, WARNING), head)
        if receipt.verdict == "passed":
            return
        for text in (
            receipt.repeated and receipt.repeated.text,
            receipt.text,
            receipt.suspect and f"suspect {receipt.suspect}",
            receipt.bundle and f"bundle {receipt.bundle}",
            receipt.pending and f"not carried out, tried again the next time: {receipt.pending}",
        ):
            if text:
                self.log.continued(f"    {shown(text, 400)}")

    def _result(self, result: MatrixResult) -> None:
        width = min(_WIDEST, shutil.get_terminal_size((100, 24)).columns) if os.isatty(1) else 100
        for line in table_lines(self.grid, width):
            self.log.continued(line)
        for change in result.changes:
            why = f": {', '.join(change.why)}" if change.why else ": the same was asked of the same files and versions"
            moved = f"{change.was or 'not there'} → {change.now or 'not there'}"
            moved = f"{change.now}, other rows" if change.was == change.now else moved
            self.log.say(INFO, f"changed  {cell_name(change)}  {moved}{why if change.was and change.now else ''}")
        self.log.say(
            INFO, f"{result.run} cells run, {result.reused} finished before; result: {shown(result.path, 1000)}"
        )


def document(collector: "Collector", command: str, code: int) -> dict[str, Any]:
    """What --json prints: the result file, and what was said on the way."""
    head = {"command": command, "exit_code": code, "passed": code == 0}
    cells = collector.tables.get("cells", [])
    return {"cells": cells, **(collector.result or {}), **head, "messages": collector.messages, "error": collector.card}
