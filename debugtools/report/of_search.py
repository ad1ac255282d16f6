"""Locating, the searches and bundles as sections. What a search finds is a failure of the model, not of the search."""

from collections.abc import Iterator, Sequence

from layerwise._tool.backends.text import counted
from layerwise._tool.debugtools.compare.rows import LayerRow
from layerwise._tool.debugtools.locate.rows import LocateResult, SuspectRow
from layerwise._tool.debugtools.report.collected import Collected
from layerwise._tool.debugtools.report.figures import errors, known, origin, place
from layerwise._tool.debugtools.report.structure import Case, Outcome, Section, Table, Value
from layerwise._tool.debugtools.search import rows as types

_VERDICTS: dict[str, Outcome] = {"good": "passed", "bad": "failed"}
_TRIALS = ("debug_repeat", "debug_build")


def suspect_cases(suspects: Sequence[SuspectRow]) -> Iterator[Case]:
    """A case for each suspect; its tensor has a name of its own."""
    for rank, row in enumerate(suspects, 1):
        clean = row.diagnosis == "clean"
        figures = known({"local": row.local, "accumulated": row.accumulated, "amplification": row.amplification,
                         "times rounding": row.times, "diagnosis": row.diagnosis})  # fmt: skip
        yield Case(
            name=f"{rank}. {place(row.i, row.op, row.node)}", outcome="passed" if clean else "failed",
            message=f"{row.diagnosis}: {row.evidence}" if row.evidence else row.diagnosis,
            rule=f"locate/{row.diagnosis or 'suspect'}", i=row.i, node=row.node, op=row.op, tensor=row.tensor,
            figures=figures, **origin(row),
        )  # fmt: skip


def locate_sections(collected: Collected) -> list[Section]:
    """The suspects, or that there are none."""
    result = collected.result_as(LocateResult)
    if result is None:
        return []
    cases = list(suspect_cases(result.suspects))
    told = len(result.suspects)
    if told < result.n_suspects:
        text = f"{result.n_suspects - told} more suspects are not listed: --top N lists more"
        cases.append(Case(name="more suspects", outcome="skipped", message=text, rule="locate/not-listed"))
    if not cases and result.passed:
        cases.append(Case(name=f"no suspect among {counted(result.tensors, 'tensor')}", outcome="passed"))
    return [Section("suspects", cases)] if cases else []


def locate_tables(collected: Collected) -> list[Table]:
    """All tensors that were looked at; most are off where one before them is, so that none is a case."""
    rows = collected.rows("layers", LayerRow)
    columns = ["#", "op", "node", "tensor", "local", "max abs", "max rel", "rel L2", "finding", "diagnosis", "note"]
    return [Table("tensors", columns, list(map(_layer, rows)))] if rows else []


def _layer(row: LayerRow) -> list[Value]:
    found, own = errors(row), known({"local": row.local, "diagnosis": row.diagnosis})
    values = (found.get("max abs"), found.get("max rel"), found.get("rel L2"))
    return [row.i, row.op, row.node, row.tensor, own.get("local"), *values, row.finding, own.get("diagnosis"), row.note]


def search_sections(collected: Collected, action: str) -> list[Section]:
    """The model as it was, and what was found; of a repetition each try."""
    if action == "debug_precision":
        return _precision(collected)
    kind = types.RepeatedResult if action in _TRIALS else types.NodeSearchResult
    result = collected.result_as(kind)
    if action in _TRIALS:
        tries = [_try(row) for row in verdicts(collected) if row.phase != "original"]
        return [Section("tries", tries)] if tries else []
    if result is None:
        return []
    found = [_culprits(number, each) for number, each in enumerate(getattr(result, "found", []), 1)]
    return [Section("what fails", [*_original(result, action), *found])]


def search_tables(collected: Collected, action: str) -> list[Table]:
    """The candidates that were judged."""
    rows = [] if action in _TRIALS else verdicts(collected)
    columns = ["n", "phase", "nodes", "node", "verdict", "by", "seconds", "rel L2", "max abs", "note"]
    told: list[list[Value]] = [
        [row.n, row.phase, row.nodes, row.node, row.verdict, row.by, row.seconds, row.measured.rel_l2,
         row.measured.max_abs, row.note] for row in rows
    ]  # fmt: skip
    return [Table("candidates", columns, told)] if told else []


def verdicts(collected: Collected) -> list[types.VerdictRow]:
    """The verdicts that were not taken back."""
    rows = collected.tables.get("verdicts", [])
    undone = {row.get("n") for row in rows if isinstance(row, dict) and row.get("undo")}
    return [row for row in collected.rows("verdicts", types.VerdictRow) if row.n not in undone]


def bundle_sections(collected: Collected) -> list[Section]:
    """Whether the script of the bundle fails by itself, as it should."""
    result = collected.result
    if result is None:
        return []
    good = result.get("passed") is not False
    text = str(result.get("summary", ""))
    case = Case(name="the bundle's script fails as it should", outcome="passed" if good else "failed", message=text,
                rule="bundle/reproduced")  # fmt: skip
    return [Section("bundle", [case])]


def _original(result: types.SearchResult, action: str) -> Iterator[Case]:
    if result.original:
        outcome = _VERDICTS.get(result.original, "skipped")
        told = {"failed": "it fails, as it was before the search", "skipped": "it cannot be judged"}
        rule = f"{action.removeprefix('debug_')}/original"
        yield Case(name="the original model", outcome=outcome, message=told.get(outcome, ""), rule=rule)


def _culprits(number: int, found: types.FoundRow) -> Case:
    first = found.nodes[0] if found.nodes else types.Node()
    label = place(first.i if first.i is not None else -1, first.op, first.node)
    more = f" and {len(found.nodes) - 1} more" if len(found.nodes) > 1 else ""
    minimal = ", and no node of it can be left out" if found.minimal else ""
    fail = "that fails by itself" if len(found.nodes) == 1 else "that fail by themselves"
    text = f"{counted(len(found.nodes), 'node')} {fail}{minimal}"
    return Case(
        name=f"{number}. {label}{more}", outcome="failed", message="; ".join(filter(None, (text, found.note))),
        detail="\n".join([*map(_node, found.nodes), *([f"saved: {found.path}"] if found.path else [])]),
        rule="search/culprit", i=-1 if first.i is None else first.i, node=first.node, op=first.op,
        tensor=next(iter(first.outputs), ""), figures=_measured(found.measured),
    )  # fmt: skip


def _precision(collected: Collected) -> list[Section]:
    result = collected.result_as(types.PrecisionSearchResult)
    if result is None:
        return []
    cases = []
    for number, found in enumerate(result.found, 1):
        good = found.verdict != "bad" and result.passed
        text = f"{counted(len(found.nodes), 'node')} stay in FP32"
        cases.append(Case(name=f"{number}. the mixed model", outcome="passed" if good else "failed", message=text,
                          rule="precision/mixed", figures=_measured(found.measured)))  # fmt: skip
        cases += [
            Case(name=f"{number}. {_node(node)}", outcome="passed", message=f"must stay in FP32 ({result.low} fails)",
                 rule="precision/must-stay", severity="note", i=-1 if node.i is None else node.i, node=node.node,
                 op=node.op, tensor=next(iter(node.outputs), "")) for node in found.nodes
        ]  # fmt: skip
    return [Section("mixed precision", cases)] if cases else []


def _try(row: types.VerdictRow) -> Case:
    outcome = _VERDICTS.get(row.verdict, "skipped")
    told = {"failed": "it fails", "skipped": "it could not be judged"}
    return Case(name=f"try {row.n}", outcome=outcome, message=": ".join(filter(None, (told.get(outcome), row.note))),
                rule="repeat/try", seconds=row.seconds, figures=_measured(row.measured))  # fmt: skip


def _node(node: types.Node) -> str:
    return place(-1 if node.i is None else node.i, node.op, node.node)


def _measured(found: types.Numbers) -> dict[str, Value]:
    return known({"max abs": found.max_abs, "max rel": found.max_rel, "rel L2": found.rel_l2,
                  "exit code": found.exit_code, "worst tensor": found.tensor})  # fmt: skip
