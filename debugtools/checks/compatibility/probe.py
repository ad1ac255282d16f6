"""Tests whether a backend supports a model, and if not, which of its nodes it has no kernel for.

A model is supported if it loads and runs as it is. If not, each kind of node is loaded alone; if all of them
load, the nodes run one by one until those that fail are found.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from layerwise._tool.backends.errors import BadFile, LayerwiseError, MissingDependency
from layerwise._tool.backends.older_python import StrEnum
from layerwise._tool.backends.runner import Loadable, Placed, open_runner
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.debugtools.checks.compatibility.operators import Group, Operators, Signature
from layerwise._tool.debugtools.checks.lint.isolate import Isolation
from layerwise._tool.debugtools.checks.lint.report import Level, Report
from layerwise._tool.debugtools.checks.lint.trial import Refusal, Trial, plain

Feed = Mapping[str, NDArray[Any]]
Progress = Callable[[int, int, str], None]


class Code(StrEnum):
    """A backend's support for a kind of node."""

    TAKEN = "taken"
    NO_SCHEMA = "no schema"
    NO_KERNEL = "no kernel"
    REFUSED = "refused"
    FAILS = "fails"
    ELSEWHERE = "elsewhere"
    UNKNOWN = "unknown"


_REASONS = {
    "No Op registered": Code.NO_SCHEMA,
    "is not a registered function/op": Code.NO_SCHEMA,
    "No opset import": Code.NO_SCHEMA,
    "No registered schema": Code.NO_SCHEMA,
    "is unknown, known functions": Code.NO_SCHEMA,
    "Could not find an implementation": Code.NO_KERNEL,
    "No registered implementation": Code.NO_KERNEL,
    "no CPU reference for": Code.NO_KERNEL,
}


@dataclass(frozen=True)
class OperatorRow:
    """A kind of node in one backend. nodes: their number; first: name of the first, reason: its error."""

    signature: Signature
    code: Code
    nodes: int
    first: str = ""
    reason: str = ""


@dataclass
class Verdict:
    """A backend's support of a model. available: the backend can be used here; takes: the model loads, and runs.

    ran: False if there were no inputs to run it with.
    """

    takes: bool
    available: bool = True
    ran: bool = True
    reason: str = ""
    operators: list[OperatorRow] = field(default_factory=list)


class ProbedModel:
    """A model to probe: its bytes (weights external, in `folder`), its operators, one feed (None: do not run)."""

    def __init__(self, data: bytes, folder: Path, operators: Operators, feed: Feed | None) -> None:
        self.data, self.folder, self.operators, self.feed = data, folder, operators, feed


def probe(spec: RunnerSpec, subject: ProbedModel, progress: Progress) -> Verdict:
    """Probe one backend."""
    trial = Trial(spec, subject.folder)
    try:
        runner = open_runner(spec, Loadable(data=subject.data, folder=subject.folder), name="backend")
    except (MissingDependency, BadFile) as error:
        return Verdict(takes=False, available=False, reason=str(error))
    except LayerwiseError as error:
        return _refused(plain(str(error)), trial, subject, progress)
    with runner:
        try:
            if subject.feed is not None:
                runner.infer(subject.feed)
        except LayerwiseError as error:
            return _refused(plain(str(error).removeprefix("backend: ")), trial, subject, progress)
        return Verdict(
            takes=True, ran=subject.feed is not None, operators=_all_taken(subject.operators, runner.elsewhere())
        )


def _all_taken(operators: Operators, elsewhere: Sequence[Placed]) -> list[OperatorRow]:
    rows = merged(OperatorRow(group.signature, Code.TAKEN, len(group.positions)) for group in operators.groups)
    count = Counter((placed.op, placed.provider) for placed in elsewhere)
    first = {(placed.op, placed.provider): placed.node for placed in reversed(elsewhere)}
    fallen = [
        OperatorRow(Signature(op, "", 0, None), Code.ELSEWHERE, n, first[op, provider], f"runs on {provider}")
        for (op, provider), n in count.items()
    ]
    return [*fallen, *rows]


def _refused(reason: str, trial: Trial, subject: ProbedModel, progress: Progress) -> Verdict:
    """Return why a model is unsupported, by kind of node."""
    operators = subject.operators
    rows = []
    for number, group in enumerate(operators.groups):
        progress(number, len(operators.groups), operators.names[group.positions[0]])
        rows.append(_loaded(group, trial, operators))
    if all(row.code in (Code.TAKEN, Code.UNKNOWN) for row in rows) and subject.feed is not None:
        rows = _run(rows, trial, subject, subject.feed, progress)
    return Verdict(takes=False, reason=reason, operators=merged(rows))


def _loaded(group: Group, trial: Trial, operators: Operators) -> OperatorRow:
    first, count = group.positions[0], len(group.positions)
    name, data = operators.names[first], operators.model_of(first)
    if data is None:
        return OperatorRow(group.signature, Code.UNKNOWN, count, name, "the types of its inputs are not known")
    refusal = trial.loads(data)
    if refusal is None:
        return OperatorRow(group.signature, Code.TAKEN, count)
    return OperatorRow(group.signature, _code(refusal), count, name, refusal.reason)


def _code(refusal: Refusal) -> Code:
    found = (code for text, code in _REASONS.items() if text in refusal.reason)
    return next(found, Code.FAILS if refusal.loaded else Code.REFUSED)


def _run(
    rows: Sequence[OperatorRow], trial: Trial, subject: ProbedModel, feed: Feed, progress: Progress
) -> list[OperatorRow]:
    """Return the same rows, with the nodes that fail when run in separate rows."""
    operators, report = subject.operators, Report()
    Isolation(operators.pieces, operators.names, trial, report, feed, progress=progress).run()
    reasons = {name: e.message for e in report.entries if e.level == Level.EXCEPTION for name in e.nodes}
    passing = set(report.passing)
    found: list[OperatorRow] = []
    for row, group in zip(rows, operators.groups, strict=True):
        for position in group.positions:
            name = operators.names[position]
            if name in reasons:
                found.append(OperatorRow(row.signature, Code.FAILS, 1, name, reasons[name]))
            elif name in passing:
                found.append(OperatorRow(row.signature, Code.TAKEN, 1))
            else:
                found.append(OperatorRow(row.signature, row.code, 1, row.first, row.reason))
    return found


def merged(rows: Iterable[OperatorRow]) -> list[OperatorRow]:
    """Merge equal rows of one signature; unsupported ones first."""
    found: dict[object, OperatorRow] = {}
    for row in rows:
        key = (row.signature, row.code, row.reason)
        earlier = found.get(key)
        count = row.nodes + (earlier.nodes if earlier else 0)
        found[key] = OperatorRow(row.signature, row.code, count, earlier.first if earlier else row.first, row.reason)
    return sorted(found.values(), key=lambda row: row.code == Code.TAKEN)
