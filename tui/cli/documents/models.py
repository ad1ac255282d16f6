"""Documents of what looks at models and files: checks, differences, weights."""

from typing import Any

from msgspec import UNSET, Struct, UnsetType

from layerwise._tool.debugtools.checks.compatibility.spec import BackendRow, OperatorEntry
from layerwise._tool.debugtools.checks.invariants.spec import AxisRow, InvariantsResult, RelationRow
from layerwise._tool.debugtools.checks.lint.report import LintResult
from layerwise._tool.debugtools.compare.quantised_row import QuantisedRow
from layerwise._tool.tui.cli.documents.base import Document, OfJob


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
    """The backends that the model was tried with."""

    backends: list[Backend]


class Invariants(OfJob, kw_only=True):
    """axes: the inputs and outputs with their axes; relations: what has to hold between runs, and whether it does."""

    result: InvariantsResult | None
    axes: list[AxisRow]
    relations: list[RelationRow]


class Diff(Document, kw_only=True):
    """differences: by their kind."""

    kind: str
    equal: bool
    summary: str
    differences: dict[str, list[dict[str, Any]]]


class Quantization(Document, kw_only=True):
    """cache: of a calibration cache; unread: what was not looked at; text: what was found, in a sentence."""

    tensors: list[QuantisedRow]
    cache: list[QuantisedRow]
    unread: list[str]
    text: str


class Sparsity(Document, kw_only=True):
    """weights: those that were looked at, each sparse or not; skipped: others, and why."""

    weights: list[dict[str, Any]]
    skipped: list[dict[str, str]]


class Inspected(Document, kw_only=True):
    """What the file holds, in further fields: of a model path, opset, inputs, outputs, n_nodes; of data its tensors."""
