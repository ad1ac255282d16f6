"""Which command has which document.

Every document has `schema`, whose number grows when a field goes away or changes its meaning. New fields may come: read
those that you know. A field with a default may be missing. Numbers that JSON lacks are "inf", "-inf" and "nan".
"""

from typing import Any

from layerwise._tool.tui.cli.documents.base import Detached, Failed, JobTables
from layerwise._tool.tui.cli.documents.models import (
    Compatibility,
    Diff,
    Inspected,
    Invariants,
    Lint,
    Quantization,
    Sparsity,
)
from layerwise._tool.tui.cli.documents.runs import Accuracy, Autotune, Baseline, Bench, BenchFile, Locate, Run, Triage
from layerwise._tool.tui.cli.documents.searches import Precise, Reduced, Repeated
from layerwise._tool.tui.cli.documents.workspace import Doctor, Install, Job, Matrix, Where

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
