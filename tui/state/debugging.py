"""The search on view: what the events of a debug job come to."""

from typing import Any

import msgspec

from debugtools.compare.spec import CompareSpec
from tui.state.signal import Signal

Row = dict[str, Any]
SEARCHES = {
    "debug_reduce": "reduce", "debug_bisect": "bisect", "debug_repeat": "repeat", "debug_precision": "precision",
    "locate": "locate", "triage": "triage",
}  # fmt: skip
"""Job action -> what the screen calls it."""


class DebugState:
    """Plain data with a signal. `take` brings one event of the journal in.

    rows: verdicts of a search, suspects of a locate job, steps of a triage; those undone are not among them.
    """

    def __init__(self) -> None:
        self.on_change: Signal[[]] = Signal()
        self.open(0, "", {})

    def open(self, job: int, action: str, params: Row) -> None:
        """Begin with another job; 0 is none."""
        self.job, self.action, self.params = job, action, params
        self.compare = _compare(params)
        self.state = ""
        self.rows: list[Row] = []
        self.band: list[tuple[str, int]] = []
        self.position: int | None = None
        self.candidate: Row = {}
        self.best: Row | None = None
        self.done, self.total, self.text = 0.0, 0.0, ""
        self.result: Row | None = None
        self.card: Row | None = None
        self.said: list[str] = []

    @property
    def search(self) -> str:
        """The search's word, "" if no job is on view."""
        return SEARCHES.get(self.action, "")

    @property
    def live(self) -> bool:
        return self.state in ("queued", "running", "waiting")

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
        if self.state == "queued":
            self.result = self.card = None

    def _on_progress(self, event: Row) -> None:
        self.done, self.total = float(event.get("done") or 0), float(event.get("total") or 0)
        self.text = str(event.get("text") or "")

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
            self.rows = [known for known in self.rows if known.get("n") != row.get("n")]
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
        self.said = [*self.said[-5:], str(event.get("text", ""))]

    _on_warning = _on_log


def _compare(params: Row) -> CompareSpec | None:
    """The comparison that a search is about, None where a command or a person alone judges."""
    try:
        return msgspec.convert(params["compare"], CompareSpec) if params.get("compare") else None
    except msgspec.ValidationError:
        return None
