"""The journal of a job: `events.jsonl`, append-only, one writer at a time, schema version 1.

    {"v": 1, "n": sequence number, "t": unix seconds, "type": T, ...}

T is state, progress, log, row, question, reply, result, card, warning, identity (what the rows that follow depend
on) or dropped (rows of before count for nothing, except those of the tables in `kept`); what their fields may be is in
backends.jobs.journal.schema. An event that does not fit in one line of 4 KB leaves its fields in
`artifacts/event-N.json` and only names that file. Readers put the fields back.
"""

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.filesystem.regular import Damaged, read_regular
from layerwise._tool.backends.jobs.folder import JOURNAL
from layerwise._tool.backends.jobs.journal.json_lines import MAX_LINE, LineReader, LineWriter, encode_line, last_lines
from layerwise._tool.backends.jobs.journal.schema import VERSION, Event, well_formed

MAX_SPILL = 1 << 26


class EventWriter:
    """Appends events to a job's journal; numbers go on where the journal ends.

    Threads may share one writer.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lines = LineWriter(folder / JOURNAL)
        self._n = last_number(folder)
        self._lock = threading.Lock()

    def write(self, kind: str, /, **fields: Any) -> dict[str, Any]:
        """Append one event and return it.

        Raises OSError when it cannot be written whole, LayerwiseError when no reader would take it: it has more
        than MAX_SPILL bytes.
        """
        with self._lock:
            head: dict[str, Any] = {"v": VERSION, "n": self._n + 1, "t": round(time.time(), 4), "type": kind}
            line = encode_line({**head, **fields})
            if len(line) > MAX_LINE:
                line = encode_line({**head, "spill": self._spill(head["n"], fields)})
            self._lines.write(line)
            self._n += 1
        return {**head, **fields}

    def _spill(self, n: int, fields: dict[str, Any]) -> str:
        from layerwise._tool.backends.filesystem.files import atomic_write

        data = encode_line(fields)
        if len(data) > MAX_SPILL:
            raise LayerwiseError(f"an event of {len(data):,} bytes does not fit in a journal (at most {MAX_SPILL:,})")
        artifacts = self._folder / "artifacts"
        artifacts.mkdir(0o700, exist_ok=True)
        atomic_write(artifacts / _spill_name(n), data)
        return _spill_name(n)

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
    """The last events of a job (those within the last 64 KB of its journal).

    What is kept apart from it is read up to MAX_SPILL bytes, the newest first.
    """
    room, found = MAX_SPILL, []
    for value in reversed(last_lines(folder / JOURNAL)):
        room -= _spilled_bytes(folder, value)
        event = whole_event(folder, value) if room >= 0 else None
        if event is not None:
            found.append(event)
    return found[::-1]


def last_number(folder: Path) -> int:
    """The highest event number in a journal, 0 when there is none."""
    recent = last_events(folder) or read_events(folder)
    return max((event["n"] for event in recent), default=0)


def whole_event(folder: Path, value: dict[str, Any]) -> Event | None:
    """The event with its spilled fields, or None when it is not one that this version reads."""
    name = value.pop("spill", None)
    if name is not None:
        fields = _spilled(folder, value.get("n"), name)
        if fields is None:
            return None
        value = {**fields, **value}
    return value if well_formed(value) else None


def _spilled_bytes(folder: Path, value: dict[str, Any]) -> int:
    if "spill" not in value:
        return 0
    try:
        return (folder / "artifacts" / _spill_name(value.get("n"))).lstat().st_size
    except (OSError, ValueError):
        return 0


def _spill_name(n: object) -> str:
    return f"event-{n}.json"


def _spilled(folder: Path, n: object, name: object) -> dict[str, Any] | None:
    """The fields of event `n` that are kept apart, None where they cannot be read."""
    if not isinstance(n, int) or name != _spill_name(n):
        return None
    try:
        fields = json.loads(read_regular(folder / "artifacts" / _spill_name(n), MAX_SPILL, own=True))
    except (FileNotFoundError, Damaged, ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) else None
