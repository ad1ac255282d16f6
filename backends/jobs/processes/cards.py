"""The crash card: how an attempt ended that gave no result, said so that somebody can act on it."""

import errno
import json
import re
import signal
from pathlib import Path
from typing import Any, NamedTuple

from layerwise._tool.backends.filesystem.regular import read_from
from layerwise._tool.backends.jobs.folder import LOG, command_of
from layerwise._tool.backends.jobs.journal.events import last_events
from layerwise._tool.backends.jobs.journal.schema import Event
from layerwise._tool.backends.limits.memory import remedy
from layerwise._tool.backends.sizes import binary_size

DISK_FULL_EXIT = 74
DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_OUT_OF_MEMORY = re.compile(
    r"bad[_ ]alloc|cannot allocate memory|failed to allocate memory|out of memory", re.IGNORECASE
)
_DUMP = re.compile(r"^(Fatal Python error|Thread 0x|Current thread 0x)", re.MULTILINE)
_HALF = 1400


class Ending(NamedTuple):
    """What the supervisor saw. status: exit code or -signal, None when the supervisor is gone too.

    stopped: "cancel", "timeout" or "memory" when the supervisor asked the worker to end; killed: and then killed it;
    oom: the kernel killed something for memory meanwhile; error: why no worker was started; log_from: where in log.txt
    this attempt begins. held: bytes of memory that the worker had when last looked; memory: how many it may have,
    None: no limit. swept: what the worker left running is killed already.
    """

    status: int | None = None
    stopped: str = ""
    killed: bool = False
    oom: bool = False
    error: str = ""
    log_from: int = 0
    held: int = 0
    memory: int | None = None
    swept: bool = False

    @property
    def obeyed(self) -> bool:
        """Whether it ended because it was asked to; a worker may fail by itself in the same moment."""
        by_us = (None, -signal.SIGTERM, 128 + signal.SIGTERM, *([-signal.SIGKILL] if self.killed else []))
        return self.stopped != "" and self.status in by_us


def events_of_attempt(folder: Path, attempt: int) -> list[Event]:
    """The last events of one attempt, without those of earlier ones."""
    events = last_events(folder)
    starts = [i for i, event in enumerate(events) if event["type"] == "state" and event.get("attempt") == attempt]
    first = next((i for i in starts if events[i].get("state") == "queued"), 0)
    return events[first:]


def outcome(folder: Path, attempt: int, ending: Ending) -> tuple[str, dict[str, Any] | None]:
    """The final state of an attempt and the card that is to be written, if any."""
    events = events_of_attempt(folder, attempt)
    kinds = {event["type"] for event in events}
    if "result" in kinds:
        return "done", None
    if ending.obeyed and ending.stopped == "cancel":
        return "cancelled", None
    if "card" in kinds and not ending.obeyed:
        return "failed", None
    lacking = {"lacking": ending.error[:600]} if ending.error else {}
    card = make_card(folder, *_story(folder, ending, events), events=events, **lacking)
    return ("lost" if card["kind"] == "lost" else "failed"), card


def make_card(
    folder: Path, kind: str, summary: str, detail: str = "", *, events: list[Event] | None = None, **more: Any
) -> dict[str, Any]:
    """A card of one kind with the last event and the command that does it again.

    `lacking`: what the machine did not give, where that alone ended the job, which says nothing of a model then.
    Fits in one line of the journal.
    """
    if kind == "disk":
        more.setdefault("lacking", summary[:600])
    events = last_events(folder) if events is None else events
    last = next((event for event in reversed(events) if event["type"] != "identity"), None)
    return {
        "kind": kind,
        "summary": summary[:600],
        "detail": clipped(detail),
        "last_event": last and {key: _short(value) for key, value in last.items() if key != "v"},
        "command": command_of(folder),
        **more,
    }


def clipped(text: str) -> str:
    """Head and tail of a long text."""
    return text if len(text) <= 2 * _HALF else f"{text[: _HALF // 2]}\n[…]\n{text[-(2 * _HALF - _HALF // 2) :]}"


def _short(value: Any) -> Any:
    if isinstance(value, (int, float)) or value is None:
        return value
    text = value if isinstance(value, str) else json.dumps(value)
    return text[:200]


def _story(folder: Path, ending: Ending, events: list[Event]) -> tuple[str, str, str]:
    """Kind, summary and detail of an attempt that ended without a word of its own."""
    log = _log_tail(folder, ending.log_from)
    if ending.error:
        return "error", ending.error, ""
    if ending.obeyed and ending.stopped == "timeout":
        return "timeout", "ran longer than its timeout and was stopped", _stack(log)
    if ending.stopped == "memory" and ending.memory:
        held = f"the worker held {binary_size(ending.held)} of memory and was stopped"
        return "oom", f"{held}: {remedy(ending.memory)}", _stack(log)
    if ending.status is None:
        return "lost", _LOST, ""
    if ending.status == DISK_FULL_EXIT:
        return (
            "disk",
            f"no space left on the disk of {folder}: free some and retry; what was finished is kept",
            log[-_HALF:],
        )
    if ending.status < 0:
        return _signal_story(-ending.status, ending, log)
    return "exception", f"the worker ended with exit code {ending.status} and no result", log[-2 * _HALF :]


KILLED = "the worker was killed (SIGKILL): by somebody, or by the system for memory"
"""The summary of a failure that says nothing of what the worker did."""
_LOST = "worker and supervisor are gone (killed, or a restart); finished rows are kept, retry resumes"


def _signal_story(number: int, ending: Ending, log: str) -> tuple[str, str, str]:
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    detail = _stack(log)
    if number == signal.SIGKILL and ending.oom:
        return "oom", "the kernel killed the worker because memory ran out (SIGKILL)", detail
    if number == signal.SIGABRT and _OUT_OF_MEMORY.search(log):
        hint = f": {remedy(ending.memory)}" if ending.memory else ""
        return "oom", f"native code ran out of memory and aborted (SIGABRT){hint}", detail
    if number == signal.SIGKILL:
        return "signal", KILLED, detail
    return "signal", f"the worker crashed: {name}", detail


def _stack(log: str) -> str:
    """What faulthandler wrote into the log, or the end of the log."""
    match = _DUMP.search(log)
    return log[match.start() :] if match else log[-_HALF:]


def _log_tail(folder: Path, start: int, window: int = 1 << 15) -> str:
    try:
        size = (folder / LOG).lstat().st_size
        return read_from(folder / LOG, max(start, size - window, 0), window).decode("utf-8", "replace")
    except OSError:
        return ""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception says that memory ran out, in Python or in native code."""
    return isinstance(error, MemoryError) or bool(_OUT_OF_MEMORY.search(str(error)[:2000]))
