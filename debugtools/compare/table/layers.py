"""The layer table: one row a pair of tensors."""

import math
from typing import Any

from msgspec import UNSET

from layerwise._tool.debugtools.compare.arithmetic.comparison import Comparison, all_equal
from layerwise._tool.debugtools.compare.arithmetic.totals import Moments, SideStatistics, worst
from layerwise._tool.debugtools.compare.rows import LayerRow, Required, SideStats
from layerwise._tool.debugtools.compare.table.places import Place


def layer_row(
    iteration: int,
    pair: tuple[int, int],
    name: str,
    other: str,
    mode: str,
    place: Place,
    result: Comparison,
    judged: tuple[float | None, str],
) -> LayerRow:
    """Return the row of table `layers` of a compared pair. judged: amplification and finding."""
    shape, shape2 = result.shapes
    rule, (a, b) = result.rule, result.sides
    masked = result.totals.sentinels if result.totals is not None else 0
    first = side_stats(a, shape, result.order_sides[0])
    second = first if all_equal(result) else side_stats(b, shape2, result.order_sides[1])
    return LayerRow(
        iteration=iteration, pair=pair, i=place.i, node=place.node, op=place.op, tensor=name,
        tensor2=other if other != name else UNSET, mode=mode, dtype=result.dtypes,
        shape=shape, shape2=shape2 if shape2 != shape else UNSET, size=math.prod(shape),
        atol=rule.atol, rtol=rule.rtol, stat=rule.stat, over=result.over,
        nan=(a.nans if a else 0, b.nans if b else 0), inf=(a.infs if a else 0, b.infs if b else 0),
        first_nan=_first_place([(s.first_nan, sh) for s, sh in zip((a, b), result.shapes, strict=True) if s]),
        stats=(first, second), ampl=judged[0], rel_l2=result.rel_l2, finding=judged[1], metrics=result.verdicts,
        passed=result.passed, note=result.note, masked=masked or UNSET, **_errors(result), **origin_fields(place),
    )  # fmt: skip


def origin_fields(place: Place) -> dict[str, Any]:
    """The fields of a row that say where its node comes from; none where nothing tells."""
    origin = place.origin
    if origin is None:
        return {}
    return {"module": origin.modules, "source": UNSET if origin.line is None else origin.line}


def _errors(result: Comparison) -> dict[str, Any]:
    """The fields of a row that are set where elements could be subtracted."""
    totals, shape, required = result.totals, result.shapes[0], result.required()
    if totals is None or required is None:
        return {}
    found: dict[str, Any] = {
        "l2": result.l2, "cosine": result.cosine, "psnr": result.psnr, "snr": result.snr,
        "lpips": UNSET if result.lpips is None else result.lpips, "required": Required(*required),
    }  # fmt: skip
    for key, moments, orders in (("abs", totals.abs, result.order_abs), ("rel", totals.rel, result.order_rel)):
        found[f"max_{key}"], found[f"min_{key}"] = worst(moments), moments.low if moments.count else 0.0
        found[f"mean_{key}"], found[f"std_{key}"] = moments.mean, moments.deviation
        found[f"argmin_{key}"] = place_of(moments.low_at, shape)
        found[f"argmax_{key}"] = place_of(moments.high_at, shape)
        for name, value in orders.items():
            found[f"{name}_{key}"] = value
    return found


def side_stats(side: SideStatistics | None, shape: tuple[int, ...], order: dict[str, float]) -> SideStats | None:
    """Statistics of one side as Polygraphy's `Stats` line has them; None for what has no numbers."""
    if side is None or not side.moments.count:
        return None
    moments: Moments = side.moments
    return SideStats(
        mean=moments.mean, std=moments.deviation, min=moments.low, argmin=place_of(moments.low_at, shape),
        max=moments.high, argmax=place_of(moments.high_at, shape), avg_magnitude=side.magnitude / moments.count,
        var=moments.deviation * moments.deviation if order else UNSET, **order,
    )  # fmt: skip


def place_of(flat: int, shape: tuple[int, ...]) -> list[int]:
    """The index per dimension of a flat index."""
    if 0 in shape:
        return []
    if not flat:
        return [0] * len(shape)
    place = []
    for length in reversed(shape):
        flat, at = divmod(flat, length)
        place.append(at)
    return place[::-1]


def _first_place(found: list[tuple[int, tuple[int, ...]]]) -> list[int] | None:
    return next((place_of(flat, shape) for flat, shape in found if flat >= 0), None)
