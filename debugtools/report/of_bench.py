"""A bench as sections: nothing in it is judged by a bound, so that what was measured has passed."""

from layerwise._tool.debugtools.bench.rows import ComparisonRow, ProfileRow, RunRow
from layerwise._tool.debugtools.report.collected import Collected
from layerwise._tool.debugtools.report.figures import known, lasting
from layerwise._tool.debugtools.report.structure import Case, Section, Table, Value


def bench_sections(collected: Collected) -> list[Section]:
    """The runs, and which of two is faster."""
    runs = [_run(row) for row in collected.rows("runs", RunRow)]
    pairs = [_pair(number, row) for number, row in enumerate(collected.rows("comparisons", ComparisonRow), 1)]
    if collected.result is not None and not runs:
        why = "the runners were opened only"
        runs = [Case(name="runs", outcome="skipped", message=why, rule="bench/nothing-run")]
    return [section for section in (Section("runs", runs), Section("comparisons", pairs)) if section.cases]


def bench_tables(collected: Collected) -> list[Table]:
    """The times of layers, slowest first."""
    rows = sorted(collected.rows("profile", ProfileRow), key=lambda row: -row.percent)
    columns = ["runner", "op", "layer", "node", "ms", "share %"]
    told: list[list[Value]] = [
        [row.runner, row.op, row.name, row.node, row.typical_ms, row.percent] for row in rows
    ]  # fmt: skip
    return [Table("layers", columns, told)] if told else []


def _run(row: RunRow) -> Case:
    batch = "" if row.batch is None else f", batch {row.batch}"
    percentiles = {f"p{name} ms": value for name, value in row.latency.percentiles.items()}
    figures = known({"median ms": row.latency.median, "mean ms": row.latency.mean, **percentiles,
                     "runs a second": row.qps, "items a second": row.items_per_second, "runs": row.runs})  # fmt: skip
    return Case(name=f"{lasting(row.runner)}{batch}", outcome="passed", seconds=row.seconds, figures=figures)


def _pair(number: int, row: ComparisonRow) -> Case:
    figures = known({"ratio": row.ratio, "low": row.low, "high": row.high, "p": row.p, "found": row.verdict})
    name = f"{number}. {lasting(row.name)} against {lasting(row.reference)}"
    return Case(name=name, outcome="passed", message=row.words, rule="bench/comparison", figures=figures)
