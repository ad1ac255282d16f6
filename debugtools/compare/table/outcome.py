"""What a comparison comes to: counts, the first bad layer, the worst one, pass rates per metric and pair."""

import math
from collections.abc import Iterable, Sequence

from layerwise._tool.debugtools.compare.pairing.left_out import compared
from layerwise._tool.debugtools.compare.rows import CompareResult, LayerRow, MetricSummary, Pair, RowSummary


class Outcome:
    """Takes in the rows as they come."""

    def __init__(
        self, runners: Sequence[str], pairs: Sequence[Pair], metrics: Sequence[str], nothing: bool = False
    ) -> None:
        """nothing: no iteration is asked for."""
        self._nothing = nothing
        self._runners, self._pairs, self._metrics = runners, pairs, metrics
        self.rows = self.failed = 0
        self._first: LayerRow | None = None
        self._worst: LayerRow | None = None
        self._failures: set[tuple[str, Pair, int]] = set()
        self._iterations: set[int] = set()
        self._compared = dict.fromkeys(pairs, 0)

    def iteration(self, number: int) -> None:
        """An iteration was run."""
        self._iterations.add(number)

    def add(self, row: LayerRow) -> None:
        """Take in one row."""
        self.rows += 1
        self._iterations.add(row.iteration)
        self._compared[row.pair] += compared(row)
        if row.passed is not False:
            return
        self.failed += 1
        if self._first is None or _order(row) < _order(self._first):
            self._first = row
        if self._worst is None or severity(row) > severity(self._worst):
            self._worst = row
        self._failures |= {(metric, row.pair, row.iteration) for metric, passed in row.metrics.items() if not passed}

    def bare(self) -> list[Pair]:
        """The pairs of which nothing was compared: for them there is no verdict."""
        return [pair for pair, count in self._compared.items() if not count and not self._nothing]

    def result(self, seconds: float) -> CompareResult:
        """The job's result, with the fields that rows decide."""
        return CompareResult(
            passed=self.failed == 0 and not self.bare(), n_rows=self.rows,
            n_compared=sum(self._compared.values()), n_failed=self.failed,
            first_bad=_summary(self._first), worst=_summary(self._worst), runners=list(self._runners),
            iterations=len(self._iterations), summary=list(self._metric_summaries()), seconds=seconds,
        )  # fmt: skip

    def _metric_summaries(self) -> Iterable[MetricSummary]:
        total = len(self._iterations)
        for metric in self._metrics:
            for pair in self._pairs:
                passed = total - sum((metric, pair, k) in self._failures for k in self._iterations)
                passed = passed if self._compared[pair] else 0
                names = self._runners[pair[0]], self._runners[pair[1]]
                rate = passed / total if total else 0.0
                yield MetricSummary(metric, names, passed, total, rate, self._compared[pair])


def _order(row: LayerRow) -> tuple[int, int]:
    return row.iteration, row.i if row.i >= 0 else 1 << 60


def severity(row: LayerRow) -> float:
    """The relative L2 error; infinite where there is none, or NaN."""
    return math.inf if row.rel_l2 is None or row.rel_l2 != row.rel_l2 else row.rel_l2


def _summary(row: LayerRow | None) -> RowSummary | None:
    return None if row is None else RowSummary(*(getattr(row, name) for name in RowSummary.__struct_fields__))
