"""What a comparison writes besides its table: inputs, outputs, accuracy results."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import UsageError, placing
from layerwise._tool.backends.feeds.writer import FeedsWriter
from layerwise._tool.backends.filesystem.files import atomic_writer
from layerwise._tool.backends.filesystem.folders import whole_folder
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
from layerwise._tool.backends.results.writer import open_results_writer
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.arithmetic.metrics import Comparison, worst
from layerwise._tool.debugtools.compare.rows import Average
from layerwise._tool.debugtools.compare.sides.side import ModelSide, Side
from layerwise._tool.debugtools.compare.spec import CompareSpec

if TYPE_CHECKING:
    from typing_extensions import Self


class Savers:
    """Files that fill while the comparison runs; they appear when it ends well."""

    def __init__(self, spec: CompareSpec, sides: Sequence[Side]) -> None:
        self._stack = ExitStack()
        self._runners = {side.index: n for n, side in enumerate(s for s in sides if isinstance(s, ModelSide))}
        names = [side.name for side in sides if side.index in self._runners]
        self._inputs = self._stack.enter_context(FeedsWriter(spec.save_inputs)) if spec.save_inputs else None
        self._outputs = (
            self._stack.enter_context(open_results_writer(spec.save_outputs, names)) if spec.save_outputs else None
        )
        self._open: dict[int, int] = {}
        self._blob = self._blobs(Path(spec.save_input_blob)) if spec.save_input_blob else None

    def _blobs(self, folder: Path) -> Path:
        with placing(folder):
            folder.parent.mkdir(parents=True, exist_ok=True)
        return self._stack.enter_context(whole_folder(folder, merge=True))

    def feed(self, iteration: int, feed: Mapping[str, Array]) -> None:
        """Save one iteration's inputs."""
        if self._inputs:
            self._inputs.add(feed)
        if self._blob:
            folder = self._blob / f"{iteration:010d}"
            folder.mkdir()
            for name, array in feed.items():
                with atomic_writer(folder / f"{_file_name(name)}.bin") as stream:
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

    def __enter__(self) -> "Self":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)


def _file_name(name: str) -> str:
    return "".join(c if c.isalnum() or c in "._-" else "_" for c in name)[:200]


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
    numbers = {
        "l2": (result.l2, rule.l2), "cosine_similarity": (result.cosine, rule.cosine), "psnr": (result.psnr, rule.psnr),
        "snr": (result.snr, rule.snr), "perceptual_metrics": (result.lpips, rule.lpips),
    }  # fmt: skip
    value, threshold = numbers[metric]
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
