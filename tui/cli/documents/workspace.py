"""Documents of the workspace and the installation: jobs, matrices of jobs, what is installed where."""

from typing import Any

from msgspec import Struct

from layerwise._tool.debugtools.matrix.rows import CellRow, Change
from layerwise._tool.tui.cli.doctor.finding import Finding
from layerwise._tool.tui.cli.documents.base import Document, OfJob


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


class Onnxruntime(Struct):
    """names: of its distributions; cuda: that it is built for."""

    names: list[str]
    cuda: str | None


class Install(Document, kw_only=True):
    """packages: version by name, None where one is missing; wrong: what does not fit together."""

    distribution: str
    version: str
    python: str
    onnxruntime: Onnxruntime | None
    driver_cuda: str | None
    packages: dict[str, str | None]
    wrong: list[str]


class Doctor(Document, kw_only=True):
    """wrong: the texts of the findings that are wrong."""

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
