"""The job action `invariants`: which relations a model obeys, and which node breaks one first."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.specs import read_spec
from layerwise._tool.debugtools.checks.invariants.locate import Open
from layerwise._tool.debugtools.checks.invariants.outputs import RelationJudge
from layerwise._tool.debugtools.checks.invariants.padding import padding
from layerwise._tool.debugtools.checks.invariants.relations import ROW_RELATIONS, Relations
from layerwise._tool.debugtools.checks.invariants.sentences import conclusion
from layerwise._tool.debugtools.checks.invariants.spec import AxisRow, InvariantsResult, InvariantsSpec, RelationRow
from layerwise._tool.debugtools.checks.invariants.subject import Subject, opened

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


def invariants(context: "JobContext") -> InvariantsResult:
    """Check the model that `context.params` describes (an InvariantsSpec). Tables: axes, relations."""
    spec = read_spec(context.params, InvariantsSpec, "what to check")
    return check(spec, context.row, context.progress)


def check(
    spec: InvariantsSpec,
    row: Callable[[str, object], None],
    progress: Callable[..., None] = lambda *_: None,
    open_session: Open = opened,
) -> InvariantsResult:
    """Check a model. row: takes a table and its row as they are found; open_session: how the model is opened.

    UsageError for axes and shapes that do not fit; LayerwiseError if the model does not load or run.
    """
    started = time.perf_counter()
    options = spec.model_options
    with ExitStack() as stack:
        file = stack.enter_context(ModelFile(spec.model, options.external_data_dir, options.ignore_external_data))
        subject = Subject(spec, file, stack, open_session)
        for axis in _axes(subject):
            row("axes", axis)
        found: list[RelationRow] = []
        steps = list(_steps(subject))
        for number, step in enumerate(steps):
            progress(number, len(steps), "relations", "")
            found.append(step())
            row("relations", found[-1])
    counts = {status: sum(each.status == status for each in found) for status in ("obeyed", "broken", "not checked")}
    return InvariantsResult(
        bool(counts["obeyed"]) and not counts["broken"], counts["obeyed"], counts["broken"], counts["not checked"],
        conclusion(found), time.perf_counter() - started,
    )  # fmt: skip


def _steps(subject: Subject) -> Iterator[Callable[[], RelationRow]]:
    judge = RelationJudge(subject)
    relations = Relations(judge)
    yield relations.repeated
    for relation in ROW_RELATIONS:
        yield partial(relations.between_rows, relation)
    yield relations.another_shape
    yield partial(padding, judge)
    yield relations.threads


def _axes(subject: Subject) -> Iterator[AxisRow]:
    batch = subject.batch
    for name, array in subject.feed.items():
        axis = batch.axes.get(name)
        why = batch.why if axis is not None else "no axis of it is the batch: it is left alone"
        yield AxisRow(name, False, list(array.shape), axis, why or "nothing tells which axis is the batch")
    for output in subject.axes:
        drawn = subject.random.get(output.name)
        why = f"not checked: random numbers, {drawn}" if drawn else output.why
        yield AxisRow(output.name, True, list(subject.outputs[output.name].shape), output.axis, why)
