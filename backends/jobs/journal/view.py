"""A job as its journal tells it: replaying the events gives the state."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layerwise._tool.backends.jobs.folder import JOURNAL, job_id
from layerwise._tool.backends.jobs.journal import schema
from layerwise._tool.backends.jobs.journal.events import EventReader
from layerwise._tool.backends.jobs.journal.schema import FINAL, Event

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.spec import JobSpec

_MOST_TABLES = 1000
_MOST_TEXT = 4000
_MOST_KEPT = 1 << 18


class JobView:
    """What is known of one job.

    state: queued, running, waiting, done, failed, cancelled, lost or damaged; reason: why it is queued.
    progress: the last {"done", "total", "unit", "text"}; question: the open one, {"id", "question"}.
    created, started, ended: unix seconds, started and ended of the latest attempt; a lost one ended when it was last
    seen alive.
    card, result: of the latest attempt. counts: rows of each table, of all attempts whose rows count.
    bytes_on_disk: of the folder. pid: the worker's, 0 before there is one. damage: which of its files is not what it
    should be, in words.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.id = job_id(folder.name)
        self.state = "queued"
        self.reason = ""
        self.attempt = 1
        self.progress: dict[str, Any] | None = None
        self.question: dict[str, Any] | None = None
        self.created = 0.0
        self.started: float | None = None
        self.ended: float | None = None
        self.card: dict[str, Any] | None = None
        self.result: dict[str, Any] | None = None
        self.counts: dict[str, int] = {}
        self.warnings = 0
        self.gpus: list[str] = []
        self.last_event: dict[str, Any] | None = None
        self.pid = 0
        self.damage = ""
        self.bytes_on_disk = 0
        self.offset = 0

    @property
    def final(self) -> bool:
        return self.state in FINAL

    @property
    def outcome(self) -> str:
        """The state in words; what did all it was asked to and found a failure is "done, bad"."""
        found_bad = self.state == "done" and (self.result or {}).get("passed") is False
        return "done, bad" if found_bad else self.state

    @property
    def spec(self) -> "JobSpec":
        """What the job does. Raises BadFile when the folder's spec.json cannot be read."""
        from layerwise._tool.backends.jobs.spec import load_spec

        return load_spec(self.folder)

    def news(self) -> Iterator[Event]:
        """Replay what the journal has gained since the last call, and yield it; all of it if it is another one."""
        if self._shrank():
            vars(self).update(vars(JobView(self.folder)))
        reader = EventReader(self.folder, self.offset)
        for event in reader.read():
            self._take(event)
            self.offset = reader.offset
            yield event
        self.offset = reader.offset

    def _shrank(self) -> bool:
        try:
            return self.offset > (self.folder / JOURNAL).lstat().st_size
        except OSError:
            return False

    def refresh(self) -> None:
        """Replay what the journal has gained since the last call."""
        for _ in self.news():
            pass

    def to_json(self) -> str:
        """What is known, for the index."""
        known = {key: value for key, value in vars(self).items() if key != "folder"}
        return json.dumps(known)

    def copy(self) -> "JobView":
        """A view of its own that knows the same."""
        view = JobView(self.folder)
        vars(view).update(json.loads(self.to_json()))
        return view

    def trim(self) -> None:
        """Keep only short facts of a result, a card and a question that are large: many views are kept at once."""
        for name in ("result", "card", "question"):
            value = getattr(self, name)
            if value is not None and len(json.dumps(value)) > _MOST_KEPT:
                setattr(self, name, {key: item for key, item in value.items() if _is_short(item)})

    @classmethod
    def from_json(cls, folder: Path, text: str) -> "JobView":
        """What was known. Raises ValueError when the text is not what `to_json` gives."""
        view = cls(folder)
        known = json.loads(text)
        if not isinstance(known, dict) or set(known) != set(vars(view)) - {"folder"}:
            raise ValueError("another version")
        wrong = [name for name, value in known.items() if not schema.VIEW[name](value)]
        if wrong or known["id"] != view.id:
            raise ValueError(f"not a view's: {', '.join(wrong) or 'id'}")
        vars(view).update(known)
        return view

    def apply(self, event: Event) -> None:
        """Take one event into account, whoever made it."""
        if schema.well_formed(event):
            self._take(event)

    def _take(self, event: Event) -> None:
        handler = getattr(self, f"_on_{event['type']}", None)
        if handler is not None:
            handler(event)
        self.last_event = {key: event[key] for key in ("n", "t", "type")}
        for key in ("state", "text", "table", "done", "total"):
            value = event.get(key)
            if key in event and _is_short(value):
                self.last_event[key] = value[:200] if isinstance(value, str) else value

    def _on_state(self, event: Event) -> None:
        self.state = event["state"]
        self.reason = (event.get("reason") or "")[:_MOST_TEXT]
        self.created = self.created or event["t"]
        attempt = event.get("attempt", self.attempt)
        if self.state == "queued" and attempt != self.attempt:
            self._new_attempt(attempt)
        elif self.state == "running":
            self.started = self.started or event["t"]
            self.gpus = event.get("gpus", self.gpus)
            self.pid = event.get("pid", self.pid)
            self.question = None
        elif self.final:
            end = event["t"] if event.get("ended") is None else event["ended"]
            self.ended = max(end, self.started or 0.0)  # the clock may have been set back
            self.question = None

    def _new_attempt(self, attempt: int) -> None:
        self.attempt = attempt
        self.started = self.ended = self.progress = self.card = self.result = self.question = None
        self.pid = 0

    def _on_progress(self, event: Event) -> None:
        self.progress = {key: event.get(key) for key in ("done", "total", "t")}
        self.progress |= {key: str(event.get(key) or "")[:_MOST_TEXT] for key in ("unit", "text")}

    def _on_row(self, event: Event) -> None:
        table = event["table"][:200]
        if table in self.counts or len(self.counts) < _MOST_TABLES:
            self.counts[table] = self.counts.get(table, 0) + 1

    def _on_dropped(self, event: Event) -> None:
        kept = event.get("kept") or []
        self.counts = {table: count for table, count in self.counts.items() if table in kept}

    def _on_question(self, event: Event) -> None:
        self.question = {"id": event["id"], "question": event.get("question")}

    def _on_warning(self, event: Event) -> None:
        self.warnings += 1

    def _on_result(self, event: Event) -> None:
        self.result = event["data"]

    def _on_card(self, event: Event) -> None:
        self.card = {key: value for key, value in event.items() if key not in ("v", "n", "t", "type")}


def _is_short(value: object) -> bool:
    return len(value) < _MOST_TEXT if isinstance(value, str) else value is None or isinstance(value, (bool, int, float))
