"""What the documents of all commands have."""

from typing import Any

from msgspec import Struct

from layerwise._tool.debugtools.compare.rows import InputsRow, RunRow


class Document(Struct, kw_only=True):
    """schema: `layerwise/COMMAND/1`; command: the line that was run; exit_code: 0 passed, 1 not, 2 wrong usage."""

    schema: str
    command: str
    exit_code: int


class Judged(Document, kw_only=True):
    """passed: the exit code is 0."""

    passed: bool


class JobMessage(Struct):
    """level: info, warning, …"""

    level: str
    text: str | None = None


class Card(Struct, kw_only=True):
    """Why a job failed. kind: error, exception, signal, oom, timeout, disk, lost."""

    kind: str = ""
    summary: str = ""
    detail: str = ""
    last_event: Any = None
    command: Any = None


class OfJob(Judged, kw_only=True):
    """Of a command that runs a job. error: None unless the job failed."""

    messages: list[JobMessage]
    error: Card | None


class Tables(OfJob, kw_only=True):
    """The tables of runs that any job may have."""

    runs: list[RunRow]
    inputs: list[InputsRow]


class JobTables(Tables, kw_only=True):
    """rows: the layer table, or the rows that the command is about."""

    result: dict[str, Any] | None
    rows: list[Any]


class Text(Judged, kw_only=True):
    """Of a command that has no document of its own. output: the lines that it prints; error: why it failed."""

    output: list[str]
    error: str | None


class Failed(Judged, kw_only=True):
    """In place of any document, where the command could not be carried out before it had one."""

    error: str | None


class Detached(Document, kw_only=True):
    """In place of any document, with --detach. job: its number; `layerwise attach JOB --json` waits for it."""

    job: int
