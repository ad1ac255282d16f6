"""A lens as sections, tables and a curve: what each node does to the outputs, and what stays in FP32."""

from layerwise._tool.debugtools.report.collected import Collected
from layerwise._tool.debugtools.report.figures import known
from layerwise._tool.debugtools.report.structure import Case, Curve, CurvePoint, Section, Table, Value
from layerwise._tool.debugtools.search.lens.rows import EffectRow, LensResult, SetRow

_COLUMNS = ["#", "op", "node", "effect", "nodes it was measured of", "own", "weights alone", "activations alone",
            "SQNR weights, dB", "SQNR activations, dB", "clipped", "FLOPs", "bytes", "cost"]  # fmt: skip


def lens_sections(collected: Collected) -> list[Section]:
    """The nodes that stay in FP32, and whether the mixed model keeps the bound; nothing where none was asked for."""
    result = collected.result_as(LensResult)
    if result is None or (result.kept is None and result.passed):
        return []
    figures = known({"rel L2": result.proved, "runs": result.runs or None})
    name = f"{len(result.kept or [])} of {result.candidates} nodes stay in FP32, the others are {result.format}"
    cases = [Case(name=name, outcome="passed" if result.passed else "failed", message=result.summary, figures=figures)]
    return [Section("the mixed model", cases)]


def lens_tables(collected: Collected) -> list[Table]:
    """Every node, the worst first, and the sets that were measured."""
    result = collected.result_as(LensResult)
    kept = set() if result is None else {row.i for row in result.kept or []}
    rows = {row.i: row for row in collected.rows("effects", EffectRow)}
    worst = sorted(rows.values(), key=lambda row: (row.effect is not None, -(row.effect or 0.0), row.i))
    tables = (
        [Table("nodes", [*_COLUMNS, "stays in FP32"], [[*_cells(row), row.i in kept] for row in worst])] if rows else []
    )
    sets = collected.rows("sets", SetRow)
    columns = ["what", "low", "FP32", "cost", "predicted", "measured", "over the bound"]
    told: list[list[Value]] = [
        [row.what, row.low, row.kept, row.cost, row.predicted, row.error, row.ratio] for row in sets
    ]
    return [*tables, *([Table("sets", columns, told)] if told else [])]


def _cells(row: EffectRow) -> list[Value]:
    return [row.i, row.op, row.node, row.effect, row.grouped or 1, row.own, row.weight, row.activation, row.sqnr_weight,
            row.sqnr_activation, row.clipped, row.flops, row.nbytes, row.cost]  # fmt: skip


def lens_curve(collected: Collected) -> Curve | None:
    """Error against what stays in FP32, predicted, with what was chosen as it was measured."""
    result = collected.result_as(LensResult)
    if result is None:
        return None
    points = [
        CurvePoint(
            point.cost, point.rel_l2, f"{point.kept} nodes in FP32, {point.low} {result.format}", bool(point.verdict)
        )
        for point in result.frontier
        if point.rel_l2 is not None
    ]
    title = f"relative L2 error of the worst output against the share of the {result.cost_unit} kept in FP32"
    return Curve(title, points) if len(points) > 1 else None
