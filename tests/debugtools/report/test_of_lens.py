"""A lens in reports: what was chosen, the nodes, and the curve of error against cost."""

from typing import Any

import msgspec

from layerwise._tool.debugtools.report.collected import Collected
from layerwise._tool.debugtools.report.html import html
from layerwise._tool.debugtools.report.parts import job_part
from layerwise._tool.debugtools.report.structure import Report
from layerwise._tool.debugtools.search.lens.predict import frontier
from layerwise._tool.debugtools.search.lens.rows import EffectRow, FrontierPoint, KeptRow, LensResult, OutputEffect


def event(row: EffectRow) -> dict[str, Any]:
    return {"type": "row", "table": "effects", "row": msgspec.to_builtins(row)}


def test_a_page_has_the_choice_the_nodes_and_the_curve() -> None:
    rows = [
        EffectRow(
            i=i, node=f"<n{i}>", op="MatMul", effect=error, own=0.1, cost=10.0, effects=[OutputEffect("y", error)]
        )
        for i, error in ((1, 0.3), (2, 0.04), (3, 0.001))
    ]
    points = [*frontier(rows), FrontierPoint(1, 2, 1 / 3, 0.041, "measured")]
    result = LensResult(
        passed=True, search="precision", format="int8", candidates=3, kept=[KeptRow(1, "<n1>", "MatMul", 0.3, 10.0)],
        proved=0.041, frontier=points, cost_unit="FLOPs", summary="1 of 3", conclusion="1 of 3 nodes.",
    )  # fmt: skip
    collected = Collected()
    for each in [*map(event, rows), {"type": "result", "data": msgspec.to_builtins(result)}]:
        collected.event(each)
    part = job_part("debug_lens", {}, collected, name="lens")
    (case,) = part.cases
    assert (case.outcome, case.name) == ("passed", "1 of 3 nodes stay in FP32, the others are int8")
    assert [row[2] for row in part.tables[0].rows] == ["<n1>", "<n2>", "<n3>"]
    assert part.curve is not None and len(part.curve.points) == len(points)
    page = html(Report("lens", [part]))
    assert page.count('class="dot bad"') == 1
    assert page.count('class="dot') == len(points)
    assert "<n1>" not in page
