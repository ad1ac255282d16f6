"""Rows and the result of a bench, and the file of `-o`, schema version 1.

Times are milliseconds if a name ends in _ms, and in `Statistics` of latencies; others are seconds. Fields that
older files lack have a default; unknown fields are ignored.
"""

from msgspec import UNSET, Struct, UnsetType, field


class Statistics(Struct):
    """In the unit of the values. percentiles: keyed by number as text; cov: coefficient of variation in percent."""

    min: float = 0.0
    max: float = 0.0
    mean: float = 0.0
    median: float = 0.0
    percentiles: dict[str, float] = {}
    cov: float = 0.0


class RunRow(Struct, kw_only=True):
    """A row of the table runs: one runner at one batch size. seconds: of all runs together; qps: runs per second;
    phases: those measured, of enqueue, h2d, compute, d2h.
    """

    runner: str = ""
    batch: int | None = None
    streams: int = 1
    runs: int = 0
    seconds: float = 0.0
    warm_ups: int | UnsetType = UNSET
    qps: float = 0.0
    items_per_second: float = 0.0
    latency: Statistics = field(default_factory=Statistics)
    phases: dict[str, Statistics] = {}


class SavedRun(RunRow):
    """The same in a file, with the latency of every run, in order of start."""

    latency_ms: list[float]


class LayerTimes(Struct, kw_only=True):
    """A layer's time. typical_ms: without outliers; percent: its share of the time of all layers."""

    name: str = ""
    typical_ms: float = 0.0
    mean_ms: float = 0.0
    median_ms: float = 0.0
    percent: float = 0.0


class ProfileRow(LayerTimes):
    """A row of the table profile. i: position in the order of execution; tensor, node: of the model, "" if the backend
    made the layer; calls: in all runs, total_ms: of all of them.
    """

    runner: str = ""
    batch: int | None = None
    i: int = 0
    op: str = ""
    provider: str | None = None
    tensor: str = ""
    node: str = ""
    calls: int = 0
    total_ms: float = 0.0


class ChangeRow(Struct):
    """A layer in two profiles: milliseconds in each, None if absent."""

    name: str
    ms: float | None
    reference_ms: float | None
    change_ms: float


class ComparisonRow(Struct, kw_only=True):
    """A row of the table comparisons: `debugtools.bench.statistics.LatencyComparison` of two series of latencies, by
    name; words: the same as a sentence.
    """

    name: str = ""
    reference: str = ""
    batch: int | UnsetType | None = UNSET
    ratio: float = 0.0
    low: float = 0.0
    high: float = 0.0
    p: float = 0.0
    verdict: str = ""
    words: str = ""


ROWS: dict[str, type[RunRow | ProfileRow | ComparisonRow]] = {
    "runs": RunRow, "profile": ProfileRow, "comparisons": ComparisonRow,
}  # fmt: skip
"""By table."""


class BenchResult(Struct, kw_only=True):
    """The result of a bench. opening_seconds: of each runner; measured_on: model, machine, versions.
    conclusion: what was found, in a sentence.
    """

    passed: bool = True
    runs: list[RunRow] = []
    comparisons: list[ComparisonRow] = []
    opening_seconds: dict[str, float] = {}
    measured_on: dict[str, object] = {}
    conclusion: str = ""


class SavedReport(BenchResult):
    """The file of `-o`."""

    runs: list[SavedRun]  # type: ignore[assignment]
    layers: list[ProfileRow] = []
    format: str = ""
