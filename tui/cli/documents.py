"""The documents of `--json`, by command: what docs/schemas/ is made from, and no more than that.

Every document has `schema`, whose number grows when a field goes away or changes its meaning. New fields may come: read
those that you know. A field with a default may be missing. Numbers that JSON lacks are "inf", "-inf" and "nan".
"""

from typing import Any

from msgspec import UNSET, Struct, UnsetType

from layerwise._tool.debugtools.autotune.rows import AutotuneResult, CombinationRow
from layerwise._tool.debugtools.baseline.rows import BaselineResult, ChangeRow
from layerwise._tool.debugtools.bench import rows as bench
from layerwise._tool.debugtools.checks.compatibility.spec import BackendRow, OperatorEntry
from layerwise._tool.debugtools.checks.invariants.spec import AxisRow, InvariantsResult, RelationRow
from layerwise._tool.debugtools.checks.lint.report import LintResult
from layerwise._tool.debugtools.compare.quantised_row import QuantisedRow
from layerwise._tool.debugtools.compare.result import CompareResult, TruthResult
from layerwise._tool.debugtools.compare.rows import InputsRow, LayerRow, RunRow
from layerwise._tool.debugtools.locate.rows import SuspectRow
from layerwise._tool.debugtools.matrix.rows import CellRow, Change
from layerwise._tool.debugtools.search import rows as search
from layerwise._tool.debugtools.search.lens.rows import EffectRow, KeptRow, SetRow
from layerwise._tool.debugtools.triage.rows import StepRow, TriageResult
from layerwise._tool.tui.cli.doctor.finding import Finding


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


class Searched(OfJob, kw_only=True):
    """Fields of the result are missing where the job failed."""

    verdicts: list[search.VerdictRow]
    search: str = ""
    original: str | None = None
    verified: bool = False
    checks: int = 0
    summary: str = ""
    conclusion: str = ""
    seconds: float = 0.0


class Reduced(Searched, kw_only=True):
    found: list[search.Culprits] = []
    by: str = ""
    min_good: str | UnsetType | None = UNSET


class Precise(Searched, kw_only=True):
    """Of `precision` with `--check` and without `-o`, kept is a number of layers; with `--to`, the nodes that stay.

    effects, sets: with `--to`, which has no verdicts. Points of the frontier have cost then, else max_abs.
    """

    verdicts: list[search.VerdictRow] = []
    found: list[search.KeptNodes] = []
    low: str = ""
    frontier: list[dict[str, Any]] = []
    kept: int | list[KeptRow] | UnsetType | None = UNSET
    effects: list[EffectRow] | UnsetType = UNSET
    sets: list[SetRow] | UnsetType = UNSET
    adds: bool | UnsetType | None = UNSET
    proved: float | UnsetType | None = UNSET


class Repeated(Searched, kw_only=True):
    found: list[search.Culprits] = []
    good: int = 0
    bad: int = 0
    skipped: int = 0
    interval: list[float] = []
    below: float | None = None


class PlannedCell(Struct):
    """A cell as `--list` tells it; command: its words."""

    model: str
    side: str
    feed: str
    action: str
    command: list[str]


class Matrix(OfJob, kw_only=True):
    """cells: those that have ended; counts: by verdict; run, reused: cells run now, and finished before. planned: of
    `--list`, which has no cells. The rest is as in the result file; it is missing where the matrix did not end.
    """

    cells: list[CellRow] = []
    planned: list[PlannedCell] = []
    version: int = 1
    name: str = ""
    file: str = ""
    started: float = 0.0
    seconds: float = 0.0
    counts: dict[str, int] = {}
    run: int = 0
    reused: int = 0
    versions: dict[str, str] = {}
    against: str = ""
    changes: list[Change] = []
    subset: bool = False
    conclusion: str = ""
    path: str = ""


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


class LintSummary(Struct):
    """Names of nodes."""

    passing: list[str]
    failing: list[str]


class LintEntry(Struct):
    """A finding, in Polygraphy's fields."""

    level: str
    source: str
    message: str
    nodes: list[str] = []


class Lint(OfJob, kw_only=True):
    """summary and lint_entries are missing where the job failed."""

    result: LintResult | None
    summary: LintSummary | UnsetType = UNSET
    lint_entries: list[LintEntry] = []


class Backend(BackendRow, kw_only=True):
    """A backend with its operators."""

    operators: list[OperatorEntry]


class Compatibility(OfJob, kw_only=True):
    backends: list[Backend]


class Invariants(OfJob, kw_only=True):
    result: InvariantsResult | None
    axes: list[AxisRow]
    relations: list[RelationRow]


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
    results: list[AccuracyMetric]
    nothing_compared: list[str]
    not_compared: list[str]
    conclusion: str


class Onnxruntime(Struct):
    """names: of its distributions; cuda: that it is built for."""

    names: list[str]
    cuda: str | None


class Install(Document, kw_only=True):
    distribution: str
    version: str
    python: str
    onnxruntime: Onnxruntime | None
    driver_cuda: str | None
    packages: dict[str, str | None]
    wrong: list[str]


class Doctor(Document, kw_only=True):
    findings: list[Finding]
    wrong: list[str]


class Where(Document, kw_only=True):
    """Paths; None where there is none."""

    workspace: str
    jobs: str
    cache: str
    sessions: str
    edits: str
    settings: str
    project: str | None


class Job(Struct, kw_only=True):
    """A job of the workspace; times in unix seconds."""

    schema: str
    job: int
    state: str
    passed: bool | None
    action: str | None
    title: str | None
    command: str
    attempt: int
    created: float
    started: float | None
    ended: float | None
    rows: dict[str, int]
    warnings: int
    folder: str
    result: dict[str, Any] | None
    card: dict[str, Any] | None


class Autotune(OfJob, kw_only=True):
    result: AutotuneResult | None
    rows: list[dict[str, Any]]
    combinations: list[CombinationRow]


class Diff(Document, kw_only=True):
    """differences: by their kind."""

    kind: str
    equal: bool
    summary: str
    differences: dict[str, list[dict[str, Any]]]


class Baseline(Tables, kw_only=True):
    """rows: the layer table; changes: layers that are not as the baseline has them."""

    result: BaselineResult | None
    rows: list[LayerRow]
    changes: list[ChangeRow]


class Quantization(Document, kw_only=True):
    """cache: of a calibration cache; unread: what was not looked at; text: what was found, in a sentence."""

    tensors: list[QuantisedRow]
    cache: list[QuantisedRow]
    unread: list[str]
    text: str


class Sparsity(Document, kw_only=True):
    weights: list[dict[str, Any]]
    skipped: list[dict[str, str]]


class Inspected(Document, kw_only=True):
    """What the file holds, in further fields: of a model path, opset, inputs, outputs, n_nodes; of data its tensors."""


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


DOCUMENTS: dict[str, Any] = {
    "run": Run, "convert": JobTables, "attach": JobTables, "bench": Bench, "triage": Triage, "matrix": Matrix,
    "check lint": Lint, "check compatibility": Compatibility, "check invariants": Invariants,
    "check accuracy": Accuracy, "check install": Install,
    "debug locate": Locate, "debug reduce": Reduced, "debug bisect": Reduced, "debug precision": Precise,
    "debug repeat": Repeated, "debug build": Repeated, "debug bundle": JobTables,
    "inspect model": Inspected, "inspect data": Inspected, "inspect diff": Diff, "inspect capability": Inspected,
    "inspect sparsity": Sparsity, "doctor": Doctor, "where": Where, "jobs show": Job, "jobs list": list[Job],
    "baseline accept": Baseline, "baseline check": Baseline, "inspect quantization": Quantization,
    "plugin autotune": Autotune, "plugin list": JobTables, "plugin match": JobTables, "plugin replace": JobTables,
}  # fmt: skip
"""By command; any other that has --json has a Text."""
ANYWHERE: dict[str, Any] = {"error": Failed, "detached": Detached, "bench file": BenchFile}
"""What may come in place of a command's own."""
