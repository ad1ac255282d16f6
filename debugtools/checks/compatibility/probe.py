"""Tests whether a backend supports a model, and if not, which of its nodes it has no kernel for.

A model is supported if it loads and runs as it is. If not, each kind of node is loaded alone; if all of them
load, the nodes run one by one until those that fail are found. Nodes are of one kind if what decides backend support is
the same: operator, version, types, attributes set.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import onnx
from onnx import TensorProto, defs

from layerwise._tool.backends.arrays import Feed
from layerwise._tool.backends.errors import BadFile, LayerwiseError, MissingDependency
from layerwise._tool.backends.model.reads import subgraphs
from layerwise._tool.backends.older_python import StrEnum
from layerwise._tool.backends.runner import Loadable, Placed, open_runner
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.tensors import dtype_name
from layerwise._tool.debugtools.checks.lint.isolate import Isolation
from layerwise._tool.debugtools.checks.lint.report import Level, LintFindings
from layerwise._tool.debugtools.checks.lint.structure import labels
from layerwise._tool.debugtools.checks.lint.trial import Refusal, Trial, plain
from layerwise._tool.surgery.cut.pieces import Pieces
from layerwise._tool.surgery.types.node_types import tensor_types


@dataclass(frozen=True)
class Signature:
    """Common properties of nodes. version: of the operator's schema, or the opset if there is none.

    types: element types of the inputs, each once, None if unknown.
    """

    op: str
    domain: str
    version: int
    types: tuple[str, ...] | None


@dataclass
class Group:
    """The nodes of one signature, by position; testing the first tests all."""

    signature: Signature
    positions: list[int] = field(default_factory=list)


class Operators:
    """The operators of a model's main graph; a node with bodies is a separate group."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.pieces = Pieces(model, model.graph)
        self.names = labels(self.pieces.nodes)
        self._opsets = {"" if i.domain == "ai.onnx" else i.domain: i.version for i in model.opset_import}
        self.types = {name: tensor.data_type for name, tensor in self.pieces.weights.items()}
        with suppress(LayerwiseError):  # then only what the model declares is known
            self.types |= tensor_types(model)
        self._propagate()
        self.groups = self._grouped()

    def model_of(self, position: int) -> bytes | None:
        """Return one node as a loadable model; None if the type of one of its inputs is unknown."""
        kinds: dict[str, onnx.TypeProto] = {}
        for name in self.pieces.feeds([position]):
            kind = self._type_of(name)
            if kind is None:
                return None
            kinds[name] = kind
        return self.pieces.build([position], kinds, [name for name in self.pieces.nodes[position].output if name])

    def _type_of(self, name: str) -> onnx.TypeProto | None:
        number = self.types.get(name, TensorProto.UNDEFINED)
        if number != TensorProto.UNDEFINED:
            return onnx.TypeProto(tensor_type=onnx.TypeProto.Tensor(elem_type=number))
        declared = self.pieces.types.get(name)
        return declared if declared is not None and declared.WhichOneof("value") else None

    def _grouped(self) -> Sequence[Group]:
        found: dict[object, Group] = {}
        for position, node in enumerate(self.pieces.nodes):
            signature = self._signature(node)
            attributes = tuple(sorted(attribute.name for attribute in node.attribute))
            outputs = tuple(self.types.get(name, 0) for name in node.output)
            alone = position if any(subgraphs(node)) else None
            key = (signature, attributes, len(node.input), outputs, alone)
            found.setdefault(key, Group(signature)).positions.append(position)
        return list(found.values())

    def _signature(self, node: onnx.NodeProto) -> Signature:
        domain = "" if node.domain == "ai.onnx" else node.domain
        names = [name for name in node.input if name]
        known = all(self._type_of(name) is not None for name in names)
        types = tuple(dict.fromkeys(map(self._type_name, names))) if known else None
        schema = self._schema(node)
        version = int(schema.since_version) if schema else self._opsets.get(domain, 0)
        return Signature(node.op_type, domain, version, types)

    def _type_name(self, name: str) -> str:
        number = self.types.get(name)
        return dtype_name(number) if number else "sequence or optional"

    def _schema(self, node: onnx.NodeProto) -> "defs.OpSchema | None":
        domain = "" if node.domain == "ai.onnx" else node.domain
        try:
            return defs.get_schema(node.op_type, self._opsets.get(domain, 0), domain)
        except (defs.SchemaError, TypeError):  # TypeError: a version beyond 2^31
            return None

    def _propagate(self) -> None:
        """Give outputs that inference left untyped (it stops at shape mismatches) the type of their inputs."""
        for position in self.pieces.order:
            node = self.pieces.nodes[position]
            schema = None if all(name in self.types for name in node.output if name) else self._schema(node)
            if schema is None:
                continue
            bound = {
                formal.type_str: self.types[name]
                for formal, name in zip(schema.inputs, node.input, strict=False)
                if name in self.types
            }
            for formal, name in zip(schema.outputs, node.output, strict=False):
                if name and name not in self.types and formal.type_str in bound:
                    self.types[name] = bound[formal.type_str]


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
class BackendSupport:
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


def probe(spec: RunnerSpec, subject: ProbedModel, progress: Progress) -> BackendSupport:
    """Probe one backend."""
    trial = Trial(spec, subject.folder)
    try:
        runner = open_runner(spec, Loadable(data=subject.data, folder=subject.folder), name="backend")
    except (MissingDependency, BadFile) as error:
        return BackendSupport(takes=False, available=False, reason=str(error))
    except LayerwiseError as error:
        return _refused(plain(str(error)).strip(), trial, subject, progress)
    with runner:
        try:
            if subject.feed is not None:
                runner.infer(subject.feed)
        except LayerwiseError as error:
            return _refused(plain(str(error).removeprefix("backend: ")).strip(), trial, subject, progress)
        return BackendSupport(
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


def _refused(reason: str, trial: Trial, subject: ProbedModel, progress: Progress) -> BackendSupport:
    """Return why a model is unsupported, by kind of node."""
    operators = subject.operators
    rows = []
    for number, group in enumerate(operators.groups):
        progress(number, len(operators.groups), operators.names[group.positions[0]])
        rows.append(_loaded(group, trial, operators))
    if all(row.code in (Code.TAKEN, Code.UNKNOWN) for row in rows) and subject.feed is not None:
        rows = _run(rows, trial, subject, subject.feed, progress)
    return BackendSupport(takes=False, reason=reason, operators=merged(rows))


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
    operators, report = subject.operators, LintFindings()
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
