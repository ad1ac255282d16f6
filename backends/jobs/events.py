"""The journal of a job: `events.jsonl`, append-only, one writer at a time, schema version 1.

    {"v": 1, "n": sequence number, "t": unix seconds, "type": T, ...}

T is state, progress, log, row, question, reply, result, card, warning, identity (what the rows that follow depend
on) or dropped (rows of before count for nothing, except those of the tables in `kept`). An event that does not
fit in one line of 4 KB leaves its fields in `artifacts/event-N.json` and only names that file. Readers put the
fields back.
"""

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from backends.jobs.folder import read_own
from backends.jobs.lines import MAX_LINE, LineReader, LineWriter, encode_line, last_lines

VERSION = 1
JOURNAL = "events.jsonl"
Event = dict[str, Any]


class EventWriter:
    """Appends events to a job's journal; numbers go on where the journal ends.

    Threads may share one writer.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lines = LineWriter(folder / JOURNAL)
        self._n = last_number(folder)
        self._lock = threading.Lock()

    def write(self, kind: str, /, **fields: Any) -> Event:
        """Append one event and return it. Raises OSError when it cannot be written whole."""
        with self._lock:
            head: Event = {"v": VERSION, "n": self._n + 1, "t": round(time.time(), 4), "type": kind}
            line = encode_line({**head, **fields})
            if len(line) > MAX_LINE:
                line = encode_line({**head, "spill": self._spill(head["n"], fields)})
            self._lines.write(line)
            self._n += 1
        return {**head, **fields}

    def _spill(self, n: int, fields: Event) -> str:
        from backends.files import atomic_write

        artifacts = self._folder / "artifacts"
        artifacts.mkdir(0o700, exist_ok=True)
        atomic_write(artifacts / f"event-{n}.json", encode_line(fields))
        return f"event-{n}.json"

    def close(self) -> None:
        self._lines.close()


class EventReader:
    """Reads a job's journal from an offset on; every call to `read` gives what was added since."""

    def __init__(self, folder: Path, offset: int = 0) -> None:
        self._folder = folder
        self._lines = LineReader(folder / JOURNAL, offset)

    @property
    def offset(self) -> int:
        return self._lines.offset

    def read(self) -> Iterator[Event]:
        for value in self._lines.read():
            event = whole_event(self._folder, value)
            if event is not None:
                yield event


def read_events(folder: Path, after: int = 0) -> Iterator[Event]:
    """All events of a job numbered above `after`, as the journal has them now."""
    return (event for event in EventReader(folder).read() if event["n"] > after)


def last_events(folder: Path) -> list[Event]:
    """The last events of a job (those within the last 64 KB of its journal)."""
    found = (whole_event(folder, value) for value in last_lines(folder / JOURNAL))
    return [event for event in found if event is not None]


def last_number(folder: Path) -> int:
    """The highest event number in a journal, 0 when there is none."""
    recent = last_events(folder) or read_events(folder)
    return max((event["n"] for event in recent), default=0)


def whole_event(folder: Path, value: Event) -> Event | None:
    """The event with its spilled fields, or None when it is not one that this version reads."""
    head_ok = value.get("v") == VERSION and isinstance(value.get("n"), int) and isinstance(value.get("type"), str)
    if not head_ok or not isinstance(value.get("t"), (int, float)):
        return None
    name = value.pop("spill", None)
    if name is None:
        return value
    try:
        fields = json.loads(read_own(folder / "artifacts" / Path(str(name)).name))
    except (OSError, ValueError, RecursionError):
        return None
    return {**fields, **value} if isinstance(fields, dict) else None
