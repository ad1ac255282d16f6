"""The search on view: what the events of a debug job come to."""

from typing import Any

import msgspec

from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.tui.state.signal import Signal

Row = dict[str, Any]
SEARCHES = {
    "debug_reduce": "reduce", "debug_bisect": "bisect", "debug_repeat": "repeat", "debug_precision": "precision",
    "debug_build": "build",
    "locate": "locate", "triage": "triage",
}  # fmt: skip
"""Job action -> what the screen calls it."""


class DebugState:
    """Plain data with a signal. `take` brings one event of the journal in.

    rows: verdicts of a search, suspects of a locate job, steps of a triage; a verdict that was undone stays, and says
    so. done, total: checks of a search; counted: how far a job is that counts something else. question: the open
    one, {"id", "question"}; asked_at: unix seconds of the last one. said: ("log" or "warning", text) of the last notes.
    """

    def __init__(self) -> None:
        self.on_change: Signal[[]] = Signal()
        self.open(0, "", {})

    def open(self, job: int, action: str, params: Row) -> None:
        """Begin with another job; 0 is none."""
        self.job, self.action, self.params = job, action, params
        self.compare = compare_of(params)
        self.state = ""
        self.rows: list[Row] = []
        self.band: list[tuple[str, int]] = []
        self.position: int | None = None
        self.candidate: Row = {}
        self.best: Row | None = None
        self.done, self.total, self.text, self.counted = 0.0, 0.0, "", ""
        self.question: Row | None = None
        self.asked_at = 0.0
        self.result: Row | None = None
        self.card: Row | None = None
        self.said: list[tuple[str, str]] = []

    @property
    def search(self) -> str:
        """The search's word, "" if no job is on view."""
        return SEARCHES.get(self.action, "")

    @property
    def live(self) -> bool:
        return self.state in ("queued", "running", "waiting")

    @property
    def ended(self) -> bool:
        return self.state in ("done", "failed", "cancelled", "lost")

    @property
    def answered(self) -> int:
        """How many of a person's answers count."""
        return sum(row.get("by") == "person" and row.get("key") != "original" for row in self.counting)

    @property
    def judged(self) -> int:
        """Checks of the search that are done: rows come at once, progress now and then."""
        told = sum(not str(row.get("phase") or "").startswith(("original", "verify")) for row in self.counting)
        return max(int(self.done), told)

    @property
    def counting(self) -> list[Row]:
        """The verdicts that were not undone."""
        return [row for row in self.rows if not row.get("undone")]

    @property
    def seconds_left(self) -> float | None:
        """What the machine is expected to need for the checks that are left; None where that is not known."""
        times = [row.get("seconds") for row in self.counting if row.get("by") in ("comparison", "command")]
        known = [float(seconds) for seconds in times if isinstance(seconds, int | float)]
        return sum(known) / len(known) * max(0.0, self.total - self.done) if known and self.total else None

    def row_at(self, line: int) -> Row:
        """The row that a line of the list shows, empty if there is none."""
        return self.rows[self.place(line)] if 0 <= line < len(self.rows) else {}

    def place(self, line: int) -> int:
        """The row that a line of the list shows: verdicts stand newest first."""
        return line if self.search in ("locate", "triage") else len(self.rows) - 1 - line

    def model_path(self) -> str | None:
        """The model that the search has made: the smallest that fails."""
        paths = [entry.get("path") for entry in self.found] + [(self.best or {}).get("path")]
        return next((str(path) for path in paths if path), None)

    @property
    def found(self) -> list[Row]:
        """What the search has found: sets of nodes, each with the path of its model."""
        found = (self.result or {}).get("found")
        return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []

    def take(self, event: Row) -> None:
        """Bring in one event; anything unknown is left alone."""
        handler = getattr(self, f"_on_{event.get('type')}", None)
        if handler is not None:
            handler(event)

    def _on_state(self, event: Row) -> None:
        self.state = str(event.get("state", ""))
        self.question = self.question if self.state == "waiting" else None
        if self.state == "queued":
            self.result = self.card = None
            self.counted = ""
            self.rows = [] if self.search == "locate" else self.rows  # a later attempt tells them again

    def _on_dropped(self, event: Row) -> None:
        if not {"verdicts", "steps"} & set(event.get("kept") or []):
            self.rows, self.band, self.best, self.position, self.candidate = [], [], None, None, {}
            self.done = self.total = 0.0

    def _on_question(self, event: Row) -> None:
        self.question = {"id": event.get("id"), "question": event.get("question")}
        self.asked_at = float(event.get("t") or 0.0)

    def _on_progress(self, event: Row) -> None:
        done, total, unit = float(event.get("done") or 0), float(event.get("total") or 0), str(event.get("unit") or "")
        self.text = str(event.get("text") or "")
        if unit == "checks":
            self.done, self.total, self.counted = done, total, ""
        else:
            self.counted = f"{done:g} of {total:g} {unit}" if total else f"{done:g} {unit}"

    def _on_row(self, event: Row) -> None:
        row = event.get("row")
        if not isinstance(row, dict):
            return
        table = event.get("table")
        if table == "verdicts":
            self._verdict(row)
        elif table == "band":
            self._band(row)
        elif table == "best":
            self.best = row
        elif table in ("suspects", "steps"):
            self.rows.append(row)

    def _verdict(self, row: Row) -> None:
        if row.get("undo"):
            self.rows = [known | {"undone": True} if known.get("n") == row.get("n") else known for known in self.rows]
        else:
            self.rows.append(row)

    def _band(self, row: Row) -> None:
        runs = row.get("runs")
        self.band = [(str(state), int(count)) for state, count in runs] if isinstance(runs, list) else []
        position, candidate = row.get("position"), row.get("candidate")
        self.position = position if isinstance(position, int) else None
        self.candidate = candidate if isinstance(candidate, dict) else {}

    def _on_result(self, event: Row) -> None:
        data = event.get("data")
        self.result = data if isinstance(data, dict) else {}

    def _on_card(self, event: Row) -> None:
        self.card = event

    def _on_log(self, event: Row) -> None:
        text = " ".join(str(event.get("text", "")).split())
        if text.endswith("====="):  # the title of something that is empty
            return
        self.said = [*self.said[-2:], (str(event.get("type")), text)]

    _on_warning = _on_log


def compare_params(params: Row) -> Row:
    """The comparison among a search's parameters, empty where a command or a person alone judges."""
    search = params.get("search")  # a precision search holds another
    found = (search if isinstance(search, dict) else params).get("compare")
    return found if isinstance(found, dict) else {}


def compare_of(params: Row) -> CompareSpec | None:
    """The same as a value, None where there is none."""
    found = compare_params(params)
    try:
        return msgspec.convert(found, CompareSpec) if found else None
    except msgspec.ValidationError:
        return None
