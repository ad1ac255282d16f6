"""`check lint`, `check compatibility` and `check invariants` as sections."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.filesystem.files import read_file
from layerwise._tool.backends.text import counted
from layerwise._tool.debugtools.checks.compatibility.spec import BackendRow, OperatorEntry
from layerwise._tool.debugtools.checks.invariants.sentences import line, place
from layerwise._tool.debugtools.checks.invariants.spec import RelationRow
from layerwise._tool.debugtools.checks.lint.report import Entry, Level, LintResult
from layerwise._tool.debugtools.report.collected import Collected
from layerwise._tool.debugtools.report.figures import known
from layerwise._tool.debugtools.report.structure import Case, Outcome, Section, Severity

_STATUS: dict[str, Outcome] = {"obeyed": "passed", "broken": "failed", "not checked": "skipped"}
_TAKEN: dict[str, Outcome] = {"taken": "passed", "elsewhere": "passed", "unknown": "skipped"}


class _Summary(msgspec.Struct, frozen=True):
    passing: list[str] = []
    failing: list[str] = []


class _LintFile(msgspec.Struct, frozen=True):
    """What is read of the file that a lint writes."""

    summary: _Summary = _Summary()


def lint_sections(collected: Collected) -> list[Section]:
    """A case for each finding about the model, and for each node."""
    entries = collected.rows("lint", Entry)
    result = collected.result_as(LintResult)
    by_node: dict[str, list[Entry]] = {}
    for entry in entries:
        for name in entry.nodes:
            by_node.setdefault(name, []).append(entry)
    nodes = [_linted(name, found) for name, found in by_node.items()]
    nodes += [Case(name=name, outcome="passed", node=name) for name in _passing(result) if name not in by_node]
    if result is not None and result.unjudged:
        why = "they depend on a node that fails" if result.failing else "no output needs them, or nothing was run"
        name = f"{counted(result.unjudged, 'node')} not reached"
        nodes.append(Case(name=name, outcome="skipped", message=why, rule="lint/not-reached"))
    whole = [_of_model(number, entry) for number, entry in enumerate((e for e in entries if not e.nodes), 1)]
    if result is not None and all(case.outcome == "passed" for case in whole):
        whole.insert(0, Case(name="the model's structure", outcome="passed"))
    return [section for section in (Section("model", whole), Section("nodes", nodes)) if section.cases]


def _passing(result: LintResult | None) -> Sequence[str]:
    if result is None:
        return ()
    try:
        return msgspec.json.decode(read_file(Path(result.report)), type=_LintFile).summary.passing
    except (LayerwiseError, msgspec.DecodeError):
        return ()


def _linted(name: str, found: Sequence[Entry]) -> Case:
    bad = [entry for entry in found if entry.level == Level.EXCEPTION]
    first = (bad or found)[0]
    detail = "\n".join(f"{entry.level}: {entry.message}" for entry in found) if len(found) > 1 else ""
    return Case(name=f"{first.op} {name}".strip() if first.nodes[0] == name else name,
                outcome="failed" if bad else "passed", message=first.message, detail=detail,
                rule=f"lint/{first.source}", severity=_severity(found), node=name,
                op=first.op if first.nodes[0] == name else "")  # fmt: skip


def _severity(found: Sequence[Entry]) -> Severity:
    """Of the remarks, where none of these is an exception."""
    levels = {entry.level for entry in found}
    return "" if Level.EXCEPTION in levels else "warning" if Level.WARNING in levels else "note"


def _of_model(number: int, entry: Entry) -> Case:
    bad = entry.level == Level.EXCEPTION
    head = next(iter(entry.message.strip().splitlines()), "")
    return Case(name=f"{number}. {head[:80]}", outcome="failed" if bad else "passed", message=entry.message,
                rule=f"lint/{entry.source}", severity=_severity([entry]))  # fmt: skip


def compatibility_sections(collected: Collected) -> list[Section]:
    """A section for each backend: whether it takes the model, and each kind of operator."""
    rows = collected.rows("operators", OperatorEntry)
    found = []
    for backend in collected.rows("backends", BackendRow):
        own = [row for row in rows if row.backend == backend.backend]
        found.append(Section(backend.name, [_backend(backend), *_operators(own)]))
    return found


def _backend(row: BackendRow) -> Case:
    if not row.available:
        text = f"it cannot be asked here: {row.reason}"
        return Case(name="takes the model", outcome="error", message=text, rule="compatibility/not-available")
    ran = "" if row.ran or not row.takes else "loaded only: nothing was run"
    return Case(name="takes the model", outcome="passed" if row.takes else "failed", message=row.reason or ran,
                rule="compatibility/model", seconds=row.seconds, figures=known({"nodes": row.nodes}))  # fmt: skip


def _operators(rows: Sequence[OperatorEntry]) -> Iterator[Case]:
    for number, row in enumerate(rows, 1):
        op = f"{row.domain}.{row.op}" if row.domain else row.op
        types = ", ".join(row.types or ()) or "types unknown"
        elsewhere = "it falls back to another provider" if row.code == "elsewhere" else ""
        outcome = _TAKEN.get(row.code, "failed")
        message = ": ".join(filter(None, (row.code if outcome != "passed" else "", row.reason or elsewhere)))
        yield Case(
            name=f"{number}. {op} version {row.version or '?'} ({types})", outcome=outcome, message=message,
            rule=f"compatibility/{row.code.replace(' ', '-') or 'unknown'}", op=row.op, node=row.first,
            severity="note" if elsewhere else "", figures=known({"nodes": row.nodes}),
        )  # fmt: skip


def invariants_sections(collected: Collected) -> list[Section]:
    """A case for each relation."""
    cases = [_relation(row) for row in collected.rows("relations", RelationRow)]
    return [Section("relations", cases)] if cases else []


def _relation(row: RelationRow) -> Case:
    where = row.where
    at = f"first breaks at {place(where)}" if where is not None and row.status == "broken" else ""
    message = "; ".join(filter(None, (row.text, at)))
    found = {"i": where.position, "node": where.node, "op": where.op, "tensor": where.tensor} if where and at else {}
    figures = known({"output": row.output, "rel L2": row.rel, "rounding explains": row.bound}) if row.output else {}
    return Case(
        name=f"{row.relation}: {line(row.relation)}", outcome=_STATUS[row.status],
        message=message or ("" if row.status == "obeyed" else row.status),
        rule=f"invariants/{row.relation.replace(' ', '-')}", figures=figures, **found,  # type: ignore[arg-type]
    )  # fmt: skip
