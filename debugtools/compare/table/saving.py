"""What a comparison comes to, and what it writes besides its table.

Counts, the first bad layer, the worst one, pass rates per metric and pair; inputs, outputs, accuracy results.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.filesystem.files import atomic_writer
from layerwise._tool.backends.results.accuracy import (
    METRICS,
    AccuracyResult,
    AccuracyResults,
    MetricResult,
    MetricThreshold,
    Result,
    SimpleResult,
    SimpleThreshold,
)
from layerwise._tool.backends.results.accuracy import passed as accuracy_passed
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.arithmetic.comparison import Comparison
from layerwise._tool.debugtools.compare.arithmetic.totals import worst
from layerwise._tool.debugtools.compare.pairing.left_out import compared
from layerwise._tool.debugtools.compare.plots import file_name, merged_folder
from layerwise._tool.debugtools.compare.result import Average, CompareResult, MetricSummary
from layerwise._tool.debugtools.compare.rows import LayerRow, Pair, RowSummary
from layerwise._tool.debugtools.compare.sides.side import ModelSide, Side
from layerwise._tool.debugtools.compare.spec import FIELDS, CompareSpec
from layerwise._tool.debugtools.compare.truth.verdict import TruthOutcome, summary


class Outcome:
    """Takes in the rows as they come."""

    def __init__(
        self, runners: Sequence[str], pairs: Sequence[Pair], metrics: Sequence[str], nothing: bool = False
    ) -> None:
        """nothing: no iteration is asked for."""
        self._nothing = nothing
        self._runners, self._pairs, self.metrics = runners, pairs, metrics
        self.rows = self.failed = 0
        self.truth = TruthOutcome()
        self._first: LayerRow | None = None
        self._worst: LayerRow | None = None
        self._nonfinite: list[LayerRow] = []
        self._ill_conditioned: list[LayerRow] = []
        self._apart, self._masked = 0.0, 0
        self._failures: set[tuple[str, Pair, int]] = set()
        self._iterations: set[int] = set()
        self._compared = dict.fromkeys(pairs, 0)

    def iteration(self, number: int) -> None:
        """An iteration was run."""
        self._iterations.add(number)

    def add(self, row: LayerRow) -> None:
        """Take in one row."""
        self.rows += 1
        self.truth.add(row)
        self._iterations.add(row.iteration)
        self._compared[row.pair] += compared(row)
        blank = all(nan + inf == row.size for nan, inf in zip(row.nan, row.inf, strict=True))
        if row.size and (blank or (all(row.nan) and row.passed)):
            self._nonfinite.append(row)
        self._masked += bool(row.masked)
        if row.finding == "ill-conditioned":
            self._ill_conditioned.append(row)
        if row.passed is not False:
            self._apart = max(self._apart, row.rel_l2 or 0.0)
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
            first_bad=_summary(self._first), worst=_summary(self._worst), n_nonfinite=len(self._nonfinite),
            first_nonfinite=_summary(min(self._nonfinite, key=_order, default=None)),
            n_ill_conditioned=len(self._ill_conditioned),
            first_ill_conditioned=_summary(min(self._ill_conditioned, key=_order, default=None)),
            apart=self._apart if self._ill_conditioned else None, n_masked=self._masked,
            runners=list(self._runners), iterations=len(self._iterations),
            summary=list(self._metric_summaries()), seconds=seconds,
        )  # fmt: skip

    def _metric_summaries(self) -> Iterable[MetricSummary]:
        total = len(self._iterations)
        for metric in self.metrics:
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
    return None if row is None else summary(row)


class Savers(ExitStack):
    """Files that fill while the comparison runs; they appear when it ends well."""

    def __init__(self, spec: CompareSpec, sides: Sequence[Side]) -> None:
        super().__init__()
        self._runners = {side.index: n for n, side in enumerate(s for s in sides if isinstance(s, ModelSide))}
        names = [side.name for side in sides if side.index in self._runners]
        self._inputs = self._outputs = None
        if spec.save_inputs:
            from layerwise._tool.backends.feeds.writer import FeedsWriter  # what writes: most comparisons save nothing

            self._inputs = self.enter_context(FeedsWriter(spec.save_inputs))
        if spec.save_outputs:
            from layerwise._tool.backends.results.writer import open_results_writer

            self._outputs = self.enter_context(open_results_writer(spec.save_outputs, names))
        self._open: dict[int, int] = {}
        self._blob = self.enter_context(merged_folder(Path(spec.save_input_blob))) if spec.save_input_blob else None

    @property
    def takes_outputs(self) -> bool:
        """Whether outputs are saved."""
        return self._outputs is not None

    def feed(self, iteration: int, feed: Mapping[str, Array]) -> None:
        """Save one iteration's inputs."""
        if self._inputs:
            self._inputs.add(feed)
        if self._blob:
            folder = self._blob / f"{iteration:010d}"
            folder.mkdir()
            for name, array in feed.items():
                with atomic_writer(folder / f"{file_name(name, 200)}.bin") as stream:
                    array.tofile(stream)

    def output(self, iteration: int, side: int, name: str, array: Array) -> None:
        """Save one output of a runner; outputs that were loaded are not saved again."""
        if self._outputs and side in self._runners:
            self._open[side] = iteration
            self._outputs.add(iteration, self._runners[side], name, array)

    def finish(self, iteration: int, side: int, runtime: float | None, observed: str) -> None:
        """Say that a runner's iteration is complete. observed: how its layers were, "" if there are none."""
        if self._outputs and side in self._runners:
            self._outputs.finish(iteration, self._runners[side], runtime, observed)
            self._open.pop(side, None)

    def finish_all(self, observed: Callable[[int], str]) -> None:
        """Complete what was begun: the comparison ends in the middle of an iteration. observed: of a side."""
        for side, iteration in list(self._open.items()):
            self.finish(iteration, side, None, observed(side))


class Accuracy:
    """Collects accuracy results as Polygraphy has them: one AccuracyResult a metric."""

    def __init__(self, metrics: Sequence[str], average: bool) -> None:
        kind = "average" if average else "per_sample"
        self._results = {metric: AccuracyResult(aggregation=kind) for metric in metrics}

    def add(self, iteration: int, pair: tuple[str, str], name: str, result: Comparison) -> None:
        """Take in one row's comparison."""
        for metric, passed in result.verdicts.items():
            if metric not in self._results:
                continue
            iterations = self._results[metric].pairs.setdefault(pair, [])
            while len(iterations) <= iteration:
                iterations.append({})
            iterations[iteration][name] = accuracy_result(metric, passed, result)

    def averages(self) -> list[Average]:
        """Per pair, tensor and metric: the average over the iterations (None for `simple`) and its verdict."""
        return [
            Average(pair, name, metric, getattr(found, "value", None), accuracy_passed(found))
            for metric, result in self._results.items()
            for pair in result.pairs
            for name, found in result.average(pair).items()
        ]

    def results(self) -> AccuracyResults:
        """All that was collected."""
        return AccuracyResults(list(self._results.values()))


def accuracy_result(metric: str, passed: bool, result: Comparison) -> Result:
    """One metric of one tensor: numbers with their thresholds, or a bare verdict where there are none."""
    totals, rule = result.totals, result.rule
    if totals is None:
        return passed
    if metric == "simple":
        values: dict[str, float | None] = {
            "max_absdiff": float(worst(totals.abs)), "max_reldiff": float(worst(totals.rel)),
            "mean_absdiff": totals.abs.mean, "mean_reldiff": totals.rel.mean,
        }  # fmt: skip
        for stat in ("median", "quantile"):
            values |= {f"{stat}_absdiff": result.order_abs.get(stat), f"{stat}_reldiff": result.order_rel.get(stat)}
        stored = passed if rule.stat == "elemwise" else None
        return SimpleResult(values, SimpleThreshold(rule.stat, rule.atol, rule.rtol), stored)
    if metric not in METRICS:
        return passed
    value, threshold = (getattr(each, FIELDS[metric]) for each in (result, rule))
    return MetricResult(value, MetricThreshold(METRICS[metric], threshold))


def check_average(spec: CompareSpec) -> None:
    """UsageError if `check_average` is asked for where there is nothing to average."""
    if not spec.check_average:
        return
    if spec.fail_fast:
        raise UsageError("--check-average looks at all iterations: it cannot be combined with --fail-fast")
    stats = set(spec.tolerance.stat.values()) | ({"elemwise"} if "" not in spec.tolerance.stat else set())
    if "simple" in spec.metrics and "elemwise" in stats:
        raise UsageError(
            "--check-average needs a statistic to average: add --check-error-stat max, mean, median or quantile"
        )
    without = [metric for metric in spec.metrics if metric not in ("simple", *METRICS)]
    if without or spec.compare_script:
        told = ", ".join(without) or spec.compare_script
        raise UsageError(f"--check-average: {shown(str(told), 100)} gives verdicts, not numbers to average")
