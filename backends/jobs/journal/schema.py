"""What the fields of events may be. A line of a journal that has others is broken, and skipped like one."""

from collections.abc import Callable, Mapping
from typing import Any, TypedDict, TypeGuard

VERSION = 1
PRINTED = "printed"
"""The level of a log event that is a line which Python code of a user has printed."""
TOLD = frozenset({"queued", "running", "waiting", "done", "failed", "cancelled", "lost"})
FINAL = frozenset({"done", "failed", "cancelled", "lost", "damaged"})  # the last is seen, never written
_MOST = 1 << 53
_LATEST = 1e11  # unix seconds: what a calendar still takes

Check = Callable[[Any], bool]
UNEXPECTED = (TypeError, ValueError, KeyError, IndexError, AttributeError, ArithmeticError)
"""What a reader of rows may raise where the fields inside of one, which no journal checks, are none that it knows."""


def is_number(value: Any) -> bool:
    """A finite number of a size that can be shown."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and -1e300 < value < 1e300


def is_count(value: Any) -> bool:
    """A whole number that counts something."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST


def is_time(value: Any) -> bool:
    """Unix seconds."""
    return is_number(value) and 0 <= value < _LATEST


def is_text(value: Any) -> bool:
    """Whether a value is text."""
    return isinstance(value, str)


def is_object(value: Any) -> bool:
    """Whether a value is a JSON object."""
    return isinstance(value, dict)


def is_state(value: Any) -> bool:
    """A state that a journal may tell."""
    return isinstance(value, str) and value in TOLD


def are_texts(value: Any) -> bool:
    """Whether a value is a list of texts."""
    return isinstance(value, list) and all(map(is_text, value))


def or_none(check: Check) -> Check:
    """What passes `check`, and None."""
    return lambda value: value is None or check(value)


class _Stamp(TypedDict):
    v: int
    n: int
    t: float
    type: str


class Event(_Stamp, total=False):
    """One line of a journal, as `well_formed` lets it through. n: its number; t: unix seconds; type: state, progress,
    log, … (see backends.jobs.journal.events), which says what other fields there are. A dict, since the supervisor
    reads and writes events and imports no msgspec; who reads rows, questions and results converts them to their types.
    """

    attempt: int
    state: str
    reason: str | None
    gpus: list[str]
    pid: int
    ended: float
    done: float | None
    total: float | None
    unit: str | None
    text: str | None
    level: str
    table: str
    row: dict[str, Any]
    id: str
    question: object
    data: dict[str, Any]
    kind: str
    summary: str
    detail: str | None
    last_event: dict[str, Any] | None
    exit_code: int
    kept: list[str]
    changed: list[str]
    files: dict[str, Any]
    versions: dict[str, str]
    request: str


_NEEDED: dict[str, dict[str, Check]] = {
    "state": {"state": is_state},
    "row": {"table": is_text, "row": is_object},
    "result": {"data": is_object},
    "card": {"kind": is_text, "summary": is_text},
    "question": {"id": is_text},
}
_ALLOWED: dict[str, dict[str, Check]] = {
    "state": {"attempt": is_count, "reason": or_none(is_text), "gpus": are_texts, "pid": is_count,
              "ended": is_time},
    "progress": {"done": or_none(is_number), "total": or_none(is_number), "unit": or_none(is_text),
                 "text": or_none(is_text)},
    "card": {"detail": or_none(is_text), "last_event": or_none(is_object), "exit_code": is_count},
    "log": {"level": is_text},
    "dropped": {"attempt": is_count, "kept": are_texts},
    "identity": {"attempt": is_count, "changed": are_texts},
}  # fmt: skip
_MISSING = object()
_CHECKS = {
    kind: [*((key, check, True) for key, check in _NEEDED.get(kind, {}).items()),
           *((key, check, False) for key, check in _ALLOWED.get(kind, {}).items())]
    for kind in (*_NEEDED, *_ALLOWED)
}  # fmt: skip


def well_formed(event: Mapping[str, Any]) -> TypeGuard[Event]:
    """Whether an event has a head that this version reads, and only fields of the types that its readers expect."""
    if event.get("v") != VERSION or not is_count(event.get("n")) or not is_time(event.get("t")):
        return False
    kind = event.get("type")
    if not isinstance(kind, str):
        return False
    for key, check, needed in _CHECKS.get(kind, ()):  # a loop: it is run for every line of a journal
        if (needed or key in event) and not check(event.get(key, _MISSING)):
            return False
    return True


_HEAD = {"v": VERSION, "n": 0, "t": 0}
VIEW: dict[str, Check] = {
    "id": is_count,
    "state": is_state,
    "reason": is_text,
    "attempt": is_count,
    "progress": or_none(is_object),
    "question": or_none(is_object),
    "created": is_time,
    "started": or_none(is_time),
    "ended": or_none(is_time),
    "card": or_none(lambda card: is_object(card) and well_formed({**_HEAD, **card, "type": "card"})),
    "result": or_none(is_object),
    "counts": lambda counts: is_object(counts) and all(map(is_count, counts.values())),
    "warnings": is_count,
    "gpus": are_texts,
    "pid": is_count,
    "last_event": or_none(is_object),
    "bytes_on_disk": is_count,
    "damage": is_text,
    "offset": is_count,
}
"""By field of a JobView, as the index keeps it."""
