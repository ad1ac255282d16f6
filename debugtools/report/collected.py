"""What a job's events come to: the material of a part of a report."""

from pathlib import Path
from typing import Any, TypeVar

from msgspec import ValidationError, convert

from layerwise._tool.backends.jobs.journal.earlier_attempts import typed
from layerwise._tool.backends.jobs.journal.schema import Event
from layerwise._tool.debugtools.report.structure import Message

Row = TypeVar("Row")
_MOST_MESSAGES = 1000


class Collected:
    """Tables, result, card and messages of one job; `event` takes its events in turn, `read` those of a journal."""

    def __init__(self) -> None:
        self.tables: dict[str, list[Any]] = {}
        self.result: dict[str, Any] | None = None
        self.card: dict[str, Any] | None = None
        self.state = ""
        self.messages: list[Message] = []
        self.untold = 0
        self.started: float | None = None
        self.ended: float | None = None

    def event(self, event: Event) -> None:
        """Take one event."""
        kind = event.get("type")
        self.ended = event.get("t")
        if kind == "row":
            self.tables.setdefault(str(event.get("table")), []).append(event["row"])
        elif kind == "dropped":
            self.tables = {table: rows for table, rows in self.tables.items() if table in event["kept"]}
        elif kind == "result":
            self.result = event["data"]
        elif kind == "card":
            self.card = {key: value for key, value in event.items() if key not in ("v", "n", "t", "type")}
        elif kind == "state":
            self._state(event)
        elif kind in ("warning", "log"):
            self._message(Message(str(event.get("level", kind)), str(event.get("text"))))

    def read(self, folder: Path) -> "Collected":
        """Take all events of a job's folder; itself."""
        from layerwise._tool.backends.jobs.journal.events import read_events

        for event in read_events(folder):
            self.event(event)
        return self

    def rows(self, table: str, kind: type[Row]) -> list[Row]:
        """The rows of a table that are what they should be."""
        return typed(self.tables.get(table, []), kind)

    def result_as(self, kind: type[Row]) -> Row | None:
        """The result; None if there is none, or it is damaged."""
        try:
            return None if self.result is None else convert(self.result, kind)
        except ValidationError:
            return None

    def _state(self, event: Event) -> None:
        self.state = str(event.get("state"))
        if self.state == "running":
            self.card = self.result = None
            self.started = event.get("t")

    def _message(self, message: Message) -> None:
        if len(self.messages) < _MOST_MESSAGES:
            self.messages.append(message)
        else:
            self.untold += 1

    @property
    def seconds(self) -> float | None:
        """From the start of the last attempt to its last event."""
        return None if self.started is None or self.ended is None else max(0.0, self.ended - self.started)
