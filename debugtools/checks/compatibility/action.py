"""The job action `compatibility`: which backends support a model, operator by operator."""

import time
from typing import TYPE_CHECKING

import msgspec

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.checks.compatibility.engines import probe_engine
from layerwise._tool.debugtools.checks.compatibility.operators import Operators
from layerwise._tool.debugtools.checks.compatibility.probe import OperatorRow, Subject, probe
from layerwise._tool.debugtools.checks.compatibility.spec import (
    BackendRow,
    CompatibilityResult,
    CompatibilitySpec,
    OperatorEntry,
)
from layerwise._tool.debugtools.checks.lint.feeding import first_feed

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


def compatibility(context: "JobContext") -> CompatibilityResult:
    """Probe the backends that `context.params` names (a CompatibilitySpec). Tables: operators, backends."""
    try:
        spec = msgspec.convert(context.params, CompatibilitySpec)
    except msgspec.ValidationError as error:
        raise UsageError(f"the description of what to probe does not fit: {error}") from None
    options = spec.model_options
    rows = []
    with ModelFile(spec.model, options.external_data_dir, options.ignore_external_data) as file:
        operators = Operators(file.structure())
        left_out = options.ignore_external_data
        feed = None if left_out else first_feed(spec.feeds, operators.pieces, context.warn, context.warn)
        subject = Subject(file.structure_bytes(), file.folder, operators, feed)
        for number, runner in enumerate(spec.runners):
            rows.append(_backend(number, runner, subject, context))
    return CompatibilityResult(bool(rows) and all(row.takes for row in rows), rows)


def _backend(number: int, spec: RunnerSpec, subject: Subject, context: "JobContext") -> BackendRow:
    started = time.perf_counter()
    name = backend_name(spec)
    if spec.kind == "trt":
        verdict = probe_engine(spec, subject)
    else:
        verdict = probe(spec, subject, lambda done, total, text: context.progress(done, total, name, text))
    for row in verdict.operators:
        context.row("operators", _entry(number, row))
    seconds, nodes = time.perf_counter() - started, len(subject.operators.names)
    found = BackendRow(
        number, name, spec.kind, verdict.available, verdict.takes, verdict.ran, verdict.reason, nodes, seconds
    )
    context.row("backends", found)
    return found


def backend_name(spec: RunnerSpec) -> str:
    """Return a backend's label in the table: its kind, and onnxruntime's providers."""
    providers = "+".join(shown(provider, 40) for provider in spec.providers) or "cpu"
    return f"onnxrt ({providers})" if spec.kind == "onnxrt" else {"reference": "onnx"}.get(spec.kind, spec.kind)


def _entry(backend: int, row: OperatorRow) -> OperatorEntry:
    found = row.signature
    types = None if found.types is None else list(found.types)
    return OperatorEntry(
        backend, found.op, found.domain, found.version, types, row.code, row.nodes, row.first, row.reason
    )
