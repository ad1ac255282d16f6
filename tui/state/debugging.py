"""The search on view: what the events of a debug job come to."""

import math
from bisect import insort
from typing import Any

import msgspec

from layerwise._tool.backends.jobs.journal.schema import Event
from layerwise._tool.debugtools.checks.invariants.spec import AxisRow, RelationRow
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.debugtools.search import rows as types
from layerwise._tool.debugtools.search.lens.predict import frontier, predicted, worst
from layerwise._tool.debugtools.search.lens.rows import EffectRow, FrontierPoint
from layerwise._tool.tui.state.debug_rows import Result, Shown, ShownStep, ShownSuspect
from layerwise._tool.tui.state.signal import Signal

SEARCHES = {
    "debug_reduce": "reduce", "debug_bisect": "bisect", "debug_repeat": "repeat", "debug_precision": "precision",
    "debug_lens": "lens", "debug_build": "build",
    "locate": "locate", "triage": "triage", "invariants": "invariants",
}  # fmt: skip
"""Job action -> what the screen calls it."""

_ANEW = ("locate", "invariants")
"""Searches of which a later attempt tells all rows again."""


class DebugState:
    """Plain data with a signal. `take` brings one event of the journal in; msgspec.ValidationError for a row or a
    result that is none.

    rows: verdicts of a search, suspects of a locate job, steps of a triage, effects of a lens (worst first), relations
    of a check of invariants, whose inputs and outputs are `axes`; a verdict that was undone stays, and says so. done,
    total: checks of a search;
    counted: how far a job is that counts something else. question: the open one, {"id", "question"}; asked_at: unix
    seconds of the last one. said: ("log" or "warning", text) of the last notes.
    """

    def __init__(self) -> None:
        self.on_change: Signal[[]] = Signal()
        self.open(0, "", {})

    def open(self, job: int, action: str, params: dict[str, Any]) -> None:
        """Begin with another job; 0 is none."""
        self.job, self.action, self.params = job, action, params
        self.compare = compare_of(params)
        self.other = ""
        """The model that the search is in, where it is not the open one."""
        self.state = ""
        self.rows: list[Shown] = []
        self.axes: list[AxisRow] = []
        self.in_fp32: set[int] = set()
        """Of a lens: the nodes that stay in FP32, as chosen, or as toggled since."""
        self._sums: tuple[object, dict[str, float]] = (None, {})
        self.proved = ""
        """What these came to when they were measured."""
        self.band: list[tuple[str, int]] = []
        self.position: int | None = None
        self.candidate: types.CandidateRow | None = None
        self.best: types.BestRow | None = None
        self.done, self.total, self.text, self.counted = 0.0, 0.0, "", ""
        self.question: dict[str, Any] | None = None
        self.asked_at = 0.0
        self.result: Result | None = None
        self.card: Event | None = None
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
        return sum(row.by == "person" and row.key != "original" for row in self.counting)

    @property
    def judged(self) -> int:
        """Checks of the search that are done: rows come at once, progress now and then."""
        told = sum(not row.phase.startswith(("original", "verify")) for row in self.counting)
        return max(int(self.done), told)

    @property
    def counting(self) -> list[types.VerdictRow]:
        """The verdicts that were not undone."""
        return [row for row in self.rows if isinstance(row, types.VerdictRow) and not row.undone]

    @property
    def seconds_left(self) -> float | None:
        """What the machine is expected to need for the checks that are left; None where that is not known."""
        known = [row.seconds for row in self.counting if row.by in ("comparison", "command")]
        return sum(known) / len(known) * max(0.0, self.total - self.done) if known and self.total else None

    def row_at(self, line: int) -> Shown | None:
        """The row that a line of the list shows, None if there is none."""
        return self.rows[self.place(line)] if 0 <= line < len(self.rows) else None

    def place(self, line: int) -> int:
        """The row that a line of the list shows: verdicts stand newest first, effects worst first."""
        return line if self.search in ("triage", "lens", *_ANEW) else len(self.rows) - 1 - line

    def model_path(self) -> str | None:
        """The model that the search has made: the smallest that fails."""
        paths = [*(entry.path for entry in self.found), self.best.path if self.best else ""]
        return next(filter(None, paths), None)

    @property
    def found(self) -> list[types.FoundRow]:
        """What the search has found: sets of nodes, each with the path of its model."""
        return self.result.found if self.result else []

    def take(self, event: Event) -> None:
        """Bring in one event; anything unknown is left alone."""
        handler = getattr(self, f"_on_{event.get('type')}", None)
        if handler is not None:
            handler(event)

    def _on_state(self, event: Event) -> None:
        self.state = str(event.get("state", ""))
        self.question = self.question if self.state == "waiting" else None
        if self.state == "queued":
            self.result = self.card = None
            self.counted = ""
            self.rows, self.axes = ([], []) if self.search in _ANEW else (self.rows, self.axes)

    def _on_dropped(self, event: Event) -> None:
        if not {"verdicts", "steps", "effects"} & set(event.get("kept") or []):
            self.rows, self.band, self.best, self.position, self.candidate = [], [], None, None, None
            self.done = self.total = 0.0

    def _on_question(self, event: Event) -> None:
        self.question = {"id": event.get("id"), "question": event.get("question")}
        self.asked_at = float(event.get("t") or 0.0)

    def _on_progress(self, event: Event) -> None:
        done, total, unit = float(event.get("done") or 0), float(event.get("total") or 0), str(event.get("unit") or "")
        self.text = str(event.get("text") or "")
        if unit == "checks":
            self.done, self.total, self.counted = done, total, ""
        else:
            self.counted = f"{done:g} of {total:g} {unit}" if total else f"{done:g} {unit}"

    def _on_row(self, event: Event) -> None:
        table, row = event.get("table"), event.get("row")
        if table == "verdicts":
            self._verdict(types.read_verdict(row))
        elif table == "band":
            band = msgspec.convert(row, types.BandRow)
            self.band, self.position, self.candidate = band.runs, band.position, band.candidate
        elif table == "best":
            self.best = msgspec.convert(row, types.BestRow)
        elif table == "suspects":
            self.rows.append(msgspec.convert(row, ShownSuspect))
        elif table == "steps":
            self.rows.append(msgspec.convert(row, ShownStep))
        elif table == "relations":
            self.rows.append(msgspec.convert(row, RelationRow))
        elif table == "effects":
            self._effect(msgspec.convert(row, EffectRow))
        elif table == "axes":
            self.axes.append(msgspec.convert(row, AxisRow))

    def _verdict(self, row: types.VerdictRow | types.UndoRow) -> None:
        if isinstance(row, types.VerdictRow):
            self.rows.append(row)
        for known in self.counting if isinstance(row, types.UndoRow) else ():
            known.undone = known.undone or known.n == row.n

    def toggle(self, row: Shown | None) -> bool:
        """Have a node stay in FP32, or be low again; whether the row is of such a node."""
        if isinstance(row, EffectRow):
            self.in_fp32 ^= {row.i}
            self.proved = ""
        return isinstance(row, EffectRow)

    def curve(self) -> list[FrontierPoint]:
        """Of a lens: what is predicted with ever more nodes in FP32."""
        return frontier([row for row in self.rows if isinstance(row, EffectRow)])

    def here(self) -> tuple[float, float]:
        """Share of the cost, and the error that is predicted, of the nodes that stay in FP32 now."""
        error, share = self.predicted()
        return share, error

    def gain(self, row: EffectRow) -> float | None:
        """By what share of itself the predicted error falls if a node stays in FP32 too; None for one that does."""
        if row.i in self.in_fp32:
            return None
        key = (len(self.rows), frozenset(self.in_fp32))
        if self._sums[0] != key:
            rows = {each.i: each for each in self.rows if isinstance(each, EffectRow)}
            self._sums = key, predicted(rows, rows.keys() - self.in_fp32)
        sums = self._sums[1]
        whole = worst(sums)
        if not whole or not math.isfinite(whole):
            return None
        own = {effect.name: effect.error or 0.0 for effect in row.effects}
        return 1 - max(math.sqrt(max(0.0, sums[name] ** 2 - own.get(name, 0.0) ** 2)) for name in sums) / whole

    def predicted(self) -> tuple[float, float]:
        """What the outputs would be off by with those nodes in FP32 and the others low, and what share of the cost is
        kept.
        """
        rows = {row.i: row for row in self.rows if isinstance(row, EffectRow)}
        whole = sum(row.cost for row in rows.values())
        kept = sum(row.cost for i, row in rows.items() if i in self.in_fp32)
        return worst(predicted(rows, rows.keys() - self.in_fp32)), kept / whole if whole else 0.0

    def _effect(self, row: EffectRow) -> None:
        """Worst first; a node that is measured again takes its row's place."""
        self.rows = [known for known in self.rows if not (isinstance(known, EffectRow) and known.i == row.i)]
        insort(self.rows, row, key=_badness)

    def _on_result(self, event: Event) -> None:
        self.result = msgspec.convert(event.get("data"), Result)
        if self.search == "lens":
            self.in_fp32 = {node.i for node in self.result.kept or [] if node.i is not None}

    def _on_card(self, event: Event) -> None:
        self.card = event

    def _on_log(self, event: Event) -> None:
        text = " ".join(str(event.get("text", "")).split())
        if text.endswith("====="):  # the title of something that is empty
            return
        self.said = [*self.said[-2:], (str(event.get("type")), text)]

    _on_warning = _on_log


def _badness(row: Shown) -> float:
    """What effects are sorted by: one that is not finite stands first."""
    if not isinstance(row, EffectRow):
        return -math.inf
    return -math.inf if row.effect is None else -row.effect


def compare_params(params: dict[str, Any]) -> dict[str, Any]:
    """The comparison among a search's parameters, empty where a command or a person alone judges."""
    search = params.get("search")  # a precision search holds another
    found = (search if isinstance(search, dict) else params).get("compare")
    return found if isinstance(found, dict) else {}


def compare_of(params: dict[str, Any]) -> CompareSpec | None:
    """The same as a value, None where there is none."""
    found = compare_params(params)
    try:
        return msgspec.convert(found, CompareSpec) if found else None
    except msgspec.ValidationError:
        return None
