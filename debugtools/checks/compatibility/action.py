"""The job action `compatibility`: which backends support a model, operator by operator."""

import time
from typing import TYPE_CHECKING, Any

import msgspec

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.checks.compatibility.engines import probe_engine
from layerwise._tool.debugtools.checks.compatibility.operators import Operators
from layerwise._tool.debugtools.checks.compatibility.probe import OperatorRow, Subject, probe
from layerwise._tool.debugtools.checks.compatibility.spec import CompatibilitySpec
from layerwise._tool.debugtools.checks.lint.feeding import first_feed

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


def compatibility(context: "JobContext") -> dict[str, Any]:
    """Probe the backends that `context.params` names (a CompatibilitySpec).

    Rows of the table operators: backend (its number), op, domain, version, types, code, nodes, first, reason. Rows of
    the table backends: backend, name, kind, available, takes, ran, reason, nodes, seconds. Result: passed (all support
    the model), backends (the rows).
    """
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
    return {"passed": bool(rows) and all(row["takes"] for row in rows), "backends": rows}


def _backend(number: int, spec: RunnerSpec, subject: Subject, context: "JobContext") -> dict[str, Any]:
    started = time.perf_counter()
    name = backend_name(spec)
    if spec.kind == "trt":
        verdict = probe_engine(spec, subject)
    else:
        verdict = probe(spec, subject, lambda done, total, text: context.progress(done, total, name, text))
    for row in verdict.operators:
        context.row("operators", {"backend": number, **_row(row)})
    seconds = time.perf_counter() - started
    found = {
        "backend": number, "name": name, "kind": spec.kind, "available": verdict.available, "takes": verdict.takes,
        "ran": verdict.ran, "reason": verdict.reason, "nodes": len(subject.operators.names), "seconds": seconds,
    }  # fmt: skip
    context.row("backends", found)
    return found


def backend_name(spec: RunnerSpec) -> str:
    """Return a backend's label in the table: its kind, and onnxruntime's providers."""
    providers = "+".join(shown(provider, 40) for provider in spec.providers) or "cpu"
    return f"onnxrt ({providers})" if spec.kind == "onnxrt" else {"reference": "onnx"}.get(spec.kind, spec.kind)


def _row(row: OperatorRow) -> dict[str, Any]:
    signature = row.signature
    return {
        "op": signature.op, "domain": signature.domain, "version": signature.version,
        "types": None if signature.types is None else list(signature.types), "code": str(row.code), "nodes": row.nodes,
        "first": row.first, "reason": row.reason,
    }  # fmt: skip
