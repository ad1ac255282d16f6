"""What earlier attempts of a job left: rows that a later one may take up, and what they depend on."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

from layerwise._tool.backends.jobs.journal.events import read_events
from layerwise._tool.backends.jobs.journal.schema import Event

Kind = TypeVar("Kind")


class Stale(Exception):
    """Rows of an earlier attempt turn out to be of something else; the text says why."""


class Earlier:
    """identity: what the rows that count depend on, as `backends.jobs.identity` has it, and the attempt that said so;
    None where none did. mixed: it was another one when that attempt ended. done: it came to its end. card: the last one
    that was written.
    """

    def __init__(self, folder: Path, attempt: int) -> None:
        self._rows: dict[str, list[dict[str, Any]]] = {}
        self.identity: dict[str, object] | None = None
        self.attempt = max(1, attempt - 1)
        self.mixed = self.done = False
        self.card: Event | None = None
        for event in read_events(folder):
            if event["type"] == "state" and event.get("attempt") == attempt:
                return
            handler = getattr(self, f"_on_{event['type']}", None)
            if handler is not None:
                handler(event)

    @property
    def count(self) -> int:
        """How many rows there are."""
        return sum(map(len, self._rows.values()))

    @property
    def tables(self) -> list[str]:
        """The tables that have rows."""
        return list(self._rows)

    @property
    def crash(self) -> str:
        """How native code ended the last one that failed, "" if it did not (a worker that was killed is innocent)."""
        kind, summary = (self.card["kind"], str(self.card["summary"])) if self.card else ("", "")
        return summary if kind == "oom" or (kind == "signal" and "SIGKILL" not in summary) else ""

    def rows(self, table: str) -> list[dict[str, Any]]:
        """The rows of a table."""
        return list(self._rows.get(table, []))

    def drop(self, kept: list[str]) -> None:
        """Forget the rows of all tables but these."""
        self.done = self.done and bool(kept)
        self._rows = {table: rows for table, rows in self._rows.items() if table in kept}
        self.card = self.card if kept else None

    def _on_state(self, event: Event) -> None:
        if event["state"] == "done":
            self.done, self.attempt = True, int(event.get("attempt", self.attempt))

    def _on_row(self, event: Event) -> None:
        self._rows.setdefault(str(event.get("table")), []).append(event["row"])

    def _on_card(self, event: Event) -> None:
        self.card = event

    def _on_dropped(self, event: Event) -> None:
        self.drop(event.get("kept") or [])

    def _on_identity(self, event: Event) -> None:
        if event.get("changed"):
            self.mixed = True
            return
        if self.identity is None or not self._rows:
            self.attempt, self.mixed = int(event.get("attempt", 1)), False
        self.identity = {key: event.get(key) for key in ("files", "versions", "environment", "request", "code")}


def rows_of(folder: Path, table: str) -> list[dict[str, Any]]:
    """The rows of a job's table that count, of all attempts."""
    return Earlier(folder, 0).rows(table)


def typed(rows: Iterable[object], kind: type[Kind]) -> list[Kind]:
    """The rows of a table as values of its type (a msgspec Struct, or a union of some). One that does not fit is left
    out, as a broken line of a journal is.
    """
    import msgspec

    found = []
    for row in rows:
        try:
            found.append(msgspec.convert(row, kind))
        except msgspec.ValidationError:
            continue
    return found
