"""What the Perf screen shows: the layers of one bench, through a filter and a sort, and what is known of the bench."""

import re
from collections.abc import Callable
from itertools import accumulate

import msgspec

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.jobs.journal.schema import Event
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.bench.rows import ROWS, ComparisonRow, ProfileRow, RunRow
from layerwise._tool.debugtools.bench.spec import BenchSpec
from layerwise._tool.tui.state.error_filter import SIGNS
from layerwise._tool.tui.state.job_rows import JobRows, RunFacts, RunResult
from layerwise._tool.tui.state.signal import Signal

Test = Callable[[ProfileRow], bool]

FIELDS = {"share": "percent", "ms": "typical_ms", "mean": "mean_ms", "median": "median_ms", "calls": "calls"}
_LABELS = ("op", "provider", "node", "layer")
_NUMBER = re.compile(r"(?P<field>[a-z]+)(?P<sign>>=|<=|>|<|==?)(?P<value>.+)")


def parse_filter(text: str) -> Test:
    """The test of a filter; an empty one lets all pass. Raises UsageError that says what is wrong."""
    tests = [_test(word) for word in text.split() if word != "and"]
    return lambda row: all(test(row) for test in tests)


def _test(word: str) -> Test:
    match = _NUMBER.fullmatch(word.lower())
    if match is not None:
        return _number_test(match["field"], match["sign"], match["value"])
    label, colon, value = word.lower().partition(":")
    if colon and label in _LABELS and value:
        key = "name" if label == "layer" else label
        if label == "op":
            return lambda row: row.op.lower() == value
        return lambda row: value in (getattr(row, key) or "").lower()
    text = word.lower()
    return lambda row: any(text in told.lower() for told in (row.name, row.op, row.node, row.tensor))


def _number_test(field: str, sign: str, value: str) -> Test:
    if field not in FIELDS:
        raise UsageError(f"no column '{shown(field, 30)}'; there are {', '.join(FIELDS)}, and op:NAME")
    try:
        wanted = float(value)
    except ValueError:
        raise UsageError(f"{field} needs a number, not '{shown(value, 30)}'") from None
    key, compare = FIELDS[field], SIGNS[sign]
    return lambda row: compare(getattr(row, key), wanted)


class PerfState(JobRows):
    """One bench. `on_asked` comes when another job is to be shown.

    runs, comparisons: rows of the bench; profiles: runner -> its layers, in the order in which they ran. runner: whose
    layers are shown. order: places of the layers shown, in that order; so_far: percent of them and all before; most:
    percent of the slowest layer of all.
    """

    SORTS = ("time", "graph", "op", "layer", "calls")

    def __init__(self) -> None:
        super().__init__(parse_filter)
        self.on_asked: Signal[[]] = Signal()
        self.asked: int | None = None
        self.open(0, None)

    def open(self, job: int, spec: BenchSpec | None) -> None:
        """Forget what is shown and start on another job (0: none); filter and sort stay."""
        self.job, self.spec = job, spec
        self.other = ""
        """The model that was timed, where it is not the open one."""
        self.facts = RunFacts()
        self.runs: list[RunRow] = []
        self.comparisons: list[ComparisonRow] = []
        self.profiles: dict[str, list[ProfileRow]] = {}
        self.runner = ""
        self.order: list[int] = []
        self.so_far: list[float] = []
        self.most = 0.0
        self._seen = None

    def ask(self, job: int) -> None:
        """Have a job shown, though a newer one may come."""
        self.asked = job
        self.on_asked.emit()

    def take(self, event: Event) -> None:
        """Take one event of the job's journal. msgspec.ValidationError for a row that is none."""
        self.facts.take(event)
        if event.get("type") == "state" and self.facts.state == "queued":
            self.open(self.job, self.spec)
            self.facts.state = "queued"
        elif event.get("type") == "result":
            self.facts.result = msgspec.convert(event.get("data"), RunResult)
        elif event.get("type") == "row" and event.get("table") in ROWS:
            self._take_row(msgspec.convert(event.get("row"), ROWS[event["table"]]))

    def _take_row(self, row: RunRow | ComparisonRow | ProfileRow) -> None:
        if isinstance(row, RunRow):
            self.runs.append(row)
        elif isinstance(row, ComparisonRow):
            self.comparisons.append(row)
        else:
            self.runner = self.runner or row.runner
            self.profiles.setdefault(row.runner, []).append(row)

    @property
    def rows(self) -> list[ProfileRow]:
        """The layers of the runner on view."""
        return self.profiles.get(self.runner, [])

    @property
    def total(self) -> int:
        return len(self.rows)

    @property
    def run(self) -> RunRow | None:
        """The figures of the runner on view (of the first one while no layers are known), at its last batch size."""
        name = self.runner or (self.runs[0].runner if self.runs else "")
        return next((row for row in reversed(self.runs) if row.runner == name), None)

    def next_runner(self) -> None:
        """Show the layers of the next runner."""
        names = list(self.profiles)
        if names:
            self.runner = names[(names.index(self.runner) + 1) % len(names)]
            self.refresh()

    def refresh(self, *, always: bool = False) -> None:
        """Bring `so_far` and `most`, too, up to date."""
        rows = self.rows
        if not always and self._seen == (len(rows), self.runner):
            return
        self._seen = (len(rows), self.runner)
        order = [place for place, row in enumerate(rows) if self._filter is None or self._filter(row)]
        keys = {
            "time": lambda place: -rows[place].percent, "op": lambda place: rows[place].op,
            "layer": lambda place: rows[place].name, "calls": lambda place: -rows[place].calls,
        }  # fmt: skip
        if self.sort in keys:
            order.sort(key=keys[self.sort])  # type: ignore[arg-type]
        self.order = order[::-1] if self.reverse else order
        self.most = max((row.percent for row in rows), default=0.0)
        self.so_far = list(accumulate(rows[place].percent for place in self.order))

    def row_at(self, line: int) -> ProfileRow | None:
        """The layer at a line of the list, None if there is none."""
        return self.rows[self.order[line]] if 0 <= line < len(self.order) else None
