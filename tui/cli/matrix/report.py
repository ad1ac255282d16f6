"""What `layerwise matrix` prints: a line for each cell that has ended, the grid, and what has changed."""

import os
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec
from rich.cells import cell_len, set_cell_size

from layerwise._tool.backends.jobs.journal.schema import Event
from layerwise._tool.backends.log import ERROR, FINISH, INFO, WARNING, Log
from layerwise._tool.backends.text import counted, shown
from layerwise._tool.debugtools.matrix.conclusion import cell_name
from layerwise._tool.debugtools.matrix.rows import CellRow, MatrixResult
from layerwise._tool.debugtools.matrix.spec import MatrixSpec
from layerwise._tool.tui.cli.submit import say_message
from layerwise._tool.tui.presenters.names import shorten
from layerwise._tool.tui.state.matrix import MatrixGrid

if TYPE_CHECKING:
    from layerwise._tool.tui.cli.json_output import Collector

_LEVELS = {"passed": FINISH, "failed": ERROR, "error": ERROR, "lost": ERROR}
_WIDEST, _NAME, _WORD = 160, 28, 20


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
        for line in _table_lines(self.grid, width):
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


def _table_lines(grid: MatrixGrid, most: int) -> Iterator[str]:
    """The grid as plain text of at most `most` cells a line; columns that do not fit are told below by number."""
    models = shorten({name: name for name in grid.models}, _NAME)
    parts = shorten({word: word for column in grid.columns for word in column.words}, _WORD)
    names = [models[name] for name in grid.models]
    left = max([cell_len(name) for name in names] + [5])
    heads = [" × ".join(parts[word] for word in column.words) or "all" for column in grid.columns]
    words = [[grid.verdict(grid.number(row, at)) or "waiting" if grid.number(row, at) >= 0 else "-"
              for at in range(len(heads))] for row in range(len(names))]  # fmt: skip
    widths = [max([len(heads[at]), *(len(row[at]) for row in words)]) for at in range(len(heads))]
    legend = left + sum(width + 2 for width in widths) > most
    if legend:
        yield from (f"  {at + 1:>2}  {head}" for at, head in enumerate(heads))
        heads = [str(at + 1) for at in range(len(heads))]
        widths = [max(len(heads[at]), *(len(row[at]) for row in words)) for at in range(len(heads))]
    yield f"{'':{left}}  " + "  ".join(f"{head:<{width}}" for head, width in zip(heads, widths, strict=True)).rstrip()
    for name, row in zip(names, words, strict=True):
        yield (
            f"{set_cell_size(name, left)}  "
            + "  ".join(f"{word:<{width}}" for word, width in zip(row, widths, strict=True)).rstrip()
        )
