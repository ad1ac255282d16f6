"""What a `baseline` job found, as plain text and as one JSON document."""

from typing import Any

import msgspec

from layerwise._tool.backends.jobs.journal.schema import Event
from layerwise._tool.backends.log import ERROR, FINISH, INFO, WARNING, Log
from layerwise._tool.backends.text import counted, shown
from layerwise._tool.debugtools.baseline.report import MOST, QUIET, change_line, versions_line
from layerwise._tool.debugtools.baseline.rows import BaselineResult, ChangeRow
from layerwise._tool.tui.cli.json_output import Collector
from layerwise._tool.tui.cli.submit import say_message

_LEVELS = {"grown": ERROR, "follows": ERROR, "fails": ERROR, "unsure": WARNING}


class BaselineReport:
    """Prints a line for each layer that is not as it was, and what changed since; of layers that follow, how many."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self._told: dict[str, int] = {}

    def event(self, event: Event) -> None:
        kind = event.get("type")
        if kind == "row" and event.get("table") == "baseline":
            self._row(msgspec.convert(event["row"], ChangeRow))
        elif kind == "result":
            self._result(msgspec.convert(event["data"], BaselineResult))
        else:
            say_message(event, self.log, "tools")

    def _row(self, row: ChangeRow) -> None:
        self._told[row.change] = self._told.get(row.change, 0) + 1
        if row.change not in QUIET and self._told[row.change] <= MOST:
            self.log.say(_LEVELS.get(row.change, INFO), change_line(row))

    def _result(self, result: BaselineResult) -> None:
        for change, count in self._told.items():
            hidden = count if change in QUIET else count - MOST
            if hidden > 0:
                self.log.say(INFO, f"{change.upper()} | {counted(hidden, 'more layer')}")
        if result.changes:
            self.log.say(INFO, f"since then    {shown('; '.join(result.changes), 2000)}")
        if not result.passed:
            self.log.say(INFO, f"versions      then {versions_line(result)}")
        if result.written:
            self.log.say(FINISH, f"written       {shown(result.written, 1000)}")


def document(collector: Collector, command: str, code: int) -> dict[str, Any]:
    """The one document of `--json`."""
    return collector.document(command, code) | {"changes": collector.tables.get("baseline", [])}
