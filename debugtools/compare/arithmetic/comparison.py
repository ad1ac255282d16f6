"""What comparing two tensors gives: every number of a layer row, and the verdict of each metric."""

import math

from msgspec import Struct, field

from layerwise._tool.debugtools.compare.arithmetic.tolerance import Rule
from layerwise._tool.debugtools.compare.arithmetic.totals import Number, SideStatistics, Totals, worst


class Comparison(Struct):
    """Two tensors compared. Numbers are None where they have no meaning (strings, different shapes).

    over: elements beyond both tolerances. order_abs, order_rel: median and quantiles, where asked for.
    verdicts: metric -> passed; None in place of the dict if nothing could be checked.
    """

    dtypes: tuple[str, str]
    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    rule: Rule
    totals: Totals | None = None
    sides: tuple[SideStatistics | None, SideStatistics | None] = (None, None)
    l2: float | None = None
    rel_l2: float | None = None
    cosine: float | None = None
    psnr: float | None = None
    snr: float | None = None
    lpips: float | None = None
    over: int | None = None
    order_abs: dict[str, float] = field(default_factory=dict)
    order_rel: dict[str, float] = field(default_factory=dict)
    order_sides: tuple[dict[str, float], dict[str, float]] = field(default_factory=lambda: ({}, {}))
    verdicts: dict[str, bool] = field(default_factory=dict)
    note: str = ""

    @property
    def passed(self) -> bool | None:
        """Whether every metric passed; None if no metric was asked for."""
        return all(self.verdicts.values()) if self.verdicts else None

    def required(self) -> tuple[Number, Number] | None:
        """The smallest absolute and relative tolerance that would pass, by the rule's statistic."""
        return None if self.totals is None else statistic(self, self.rule.stat)


def statistic(result: Comparison, stat: str) -> tuple[Number, Number]:
    """The absolute and relative error by a statistic: elemwise, max, mean, median or quantile."""
    totals = result.totals
    assert totals is not None
    if stat in ("median", "quantile"):
        return result.order_abs[stat], result.order_rel[stat]
    if stat == "mean":
        return totals.abs.mean, totals.rel.mean
    return worst(totals.abs), worst(totals.rel)


def only_hidden(result: Comparison) -> bool:
    """Whether what is not finite stands for "nothing here" on both sides, and was left out."""
    totals = result.totals
    return totals is not None and totals.sentinels > 0 and math.isfinite(worst(totals.abs))


def all_equal(result: Comparison) -> bool:
    """Whether both sides, of one type, are 0 apart in every element: what is known of one side holds for the other."""
    totals = result.totals
    if totals is None or result.dtypes[0] != result.dtypes[1] or totals.sentinels:
        return False
    counts = {totals.abs.count, totals.rel.count, totals.a.moments.count}
    return counts != {0} and len(counts) == 1 and totals.abs.high == totals.rel.high == 0
