"""Documents of what runs a model: comparisons, locating, triage, benches, baselines."""

from typing import Any

from msgspec import UNSET, Struct, UnsetType

from layerwise._tool.debugtools.autotune.rows import AutotuneResult, CombinationRow
from layerwise._tool.debugtools.baseline.rows import BaselineResult, ChangeRow
from layerwise._tool.debugtools.bench import rows as bench
from layerwise._tool.debugtools.compare.result import CompareResult, TruthResult
from layerwise._tool.debugtools.compare.rows import LayerRow
from layerwise._tool.debugtools.locate.rows import SuspectRow
from layerwise._tool.debugtools.triage.rows import StepRow, TriageResult
from layerwise._tool.tui.cli.documents.base import Judged, OfJob, Tables


class Run(Tables, kw_only=True):
    """rows: the layer table."""

    result: CompareResult | None
    rows: list[LayerRow]


class Locate(Tables, kw_only=True):
    """Fields of the result are missing where the job failed. engine: the layers of an engine."""

    rows: list[LayerRow]
    suspects: list[SuspectRow] = []
    n_suspects: int = 0
    tensors: int = 0
    stopped: str = ""
    outputs_differ: bool = False
    summary: str = ""
    conclusion: str = ""
    level: float = 0.0
    runners: list[str] = []
    truth: TruthResult | None = None
    engine: list[dict[str, Any]] | UnsetType = UNSET


class Triage(Tables, kw_only=True):
    """rows: of no layer table."""

    result: TriageResult | None
    rows: list[Any]
    steps: list[StepRow]


class Bench(OfJob, kw_only=True):
    """Fields of the result are missing where the job failed."""

    runs: list[bench.RunRow] = []
    comparisons: list[bench.ComparisonRow] = []
    opening_seconds: dict[str, float] = {}
    measured_on: dict[str, Any] = {}
    conclusion: str = ""
    layers: list[bench.ProfileRow]


class BenchFile(Judged, kw_only=True):
    """Of a file of an earlier bench."""

    runs: list[bench.RunRow] = []
    comparisons: list[bench.ComparisonRow] = []
    layers: list[bench.LayerTimes] = []
    changes: list[bench.ChangeRow] = []


class AccuracyPair(Struct):
    """runners: their names; iterations: the verdict of each output."""

    runners: list[str]
    iterations: list[dict[str, bool]]


class AccuracyMetric(Struct):
    """A metric; aggregation: per_sample or average."""

    metric: str
    aggregation: str
    passed: bool
    pairs: list[AccuracyPair]


class Accuracy(Judged, kw_only=True):
    """nothing_compared, not_compared: names of outputs."""

    results: list[AccuracyMetric]
    nothing_compared: list[str]
    not_compared: list[str]
    conclusion: str


class Autotune(OfJob, kw_only=True):
    """combinations: plugins that were tried together, with their times."""

    result: AutotuneResult | None
    rows: list[dict[str, Any]]
    combinations: list[CombinationRow]


class Baseline(Tables, kw_only=True):
    """rows: the layer table; changes: layers that are not as the baseline has them."""

    result: BaselineResult | None
    rows: list[LayerRow]
    changes: list[ChangeRow]
