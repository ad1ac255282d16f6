"""The job action `compatibility`: which backends support a model, operator by operator."""

import time
from typing import TYPE_CHECKING

from layerwise._tool.backends.errors import BadFile, LayerwiseError, MissingDependency
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.runner import Loadable, open_runner
from layerwise._tool.backends.specs import RunnerSpec, read_spec
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.trt.inspect.support import Refusal, Support
from layerwise._tool.backends.trt.library import tensorrt
from layerwise._tool.backends.trt.logger import Messages
from layerwise._tool.backends.trt.options import trt_options
from layerwise._tool.debugtools.checks.compatibility.conclusion import conclusion
from layerwise._tool.debugtools.checks.compatibility.probe import (
    BackendSupport,
    Code,
    OperatorRow,
    Operators,
    ProbedModel,
    merged,
    probe,
)
from layerwise._tool.debugtools.checks.compatibility.spec import (
    BackendRow,
    CompatibilityResult,
    CompatibilitySpec,
    OperatorEntry,
)
from layerwise._tool.debugtools.checks.lint.trial import first_feed

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


def compatibility(context: "JobContext") -> CompatibilityResult:
    """Probe the backends that `context.params` names (a CompatibilitySpec). Tables: operators, backends."""
    spec = read_spec(context.params, CompatibilitySpec, "what to probe")
    options = spec.model_options
    rows = []
    with ModelFile(spec.model, options.external_data_dir, options.ignore_external_data) as file:
        operators = Operators(file.structure())
        left_out = options.ignore_external_data
        say = context.warn
        feed = None if left_out else first_feed(spec.feeds, operators.pieces, say, say, context.log)
        subject = ProbedModel(file.structure_bytes(), file.folder, operators, feed)
        for number, runner in enumerate(spec.runners):
            rows.append(_backend(number, runner, subject, context))
    return CompatibilityResult(bool(rows) and all(row.takes for row in rows), rows, conclusion(rows))


def _backend(number: int, spec: RunnerSpec, subject: ProbedModel, context: "JobContext") -> BackendRow:
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


_NO_CODE = ("No importer registered", "Plugin not found")


def probe_engine(spec: RunnerSpec, subject: ProbedModel) -> BackendSupport:
    """Probe TensorRT. If the parser supports every node but the build fails, the reason is that of the build."""
    model = Loadable(data=subject.data, folder=subject.folder)
    try:
        support = Support(tensorrt(), Messages(), trt_options(spec.options).network)
    except (MissingDependency, BadFile) as error:
        return BackendSupport(takes=False, available=False, reason=str(error))
    refusals = support.refusals(model)
    rows = _rows(subject.operators, refusals)
    if refusals:
        return BackendSupport(takes=False, reason=_told(refusals), operators=rows)
    try:
        with open_runner(spec, model, name="backend") as runner:
            if subject.feed is not None:
                runner.infer(subject.feed)
    except MissingDependency as error:
        return BackendSupport(takes=False, available=False, reason=str(error))
    except LayerwiseError as error:
        return BackendSupport(takes=False, reason=str(error), operators=rows)
    return BackendSupport(takes=True, ran=subject.feed is not None, operators=rows)


def _told(refusals: list[Refusal]) -> str:
    first = refusals[0]
    more = f" (and {len(refusals) - 1} more)" if len(refusals) > 1 else ""
    return f"the parser refuses node {first.name or first.node} ({first.op}): {first.reason}{more}"


def _rows(operators: Operators, refusals: list[Refusal]) -> list[OperatorRow]:
    reasons = {refusal.node: refusal.reason for refusal in reversed(refusals) if not refusal.stack}
    found = []
    for group in operators.groups:
        taken = [at for at in group.positions if at not in reasons]
        if taken:
            found.append(OperatorRow(group.signature, Code.TAKEN, len(taken)))
        found += [
            OperatorRow(group.signature, _code(reasons[at]), 1, operators.names[at], reasons[at])
            for at in group.positions
            if at in reasons
        ]
    return merged(found)


def _code(reason: str) -> Code:
    return Code.NO_KERNEL if any(text in reason for text in _NO_CODE) else Code.REFUSED
