"""Comparing the outputs of two iterations, with Polygraphy's rules and report, and exact arithmetic for integers."""

from typing import Any, ClassVar, get_args

import msgspec

from layerwise._tool.backends.results.accuracy import METRICS
from layerwise._tool.debugtools.compare.arithmetic.comparison import Comparison
from layerwise._tool.debugtools.compare.arithmetic.tolerance import Tolerances
from layerwise._tool.debugtools.compare.rows import LayerRow
from layerwise._tool.debugtools.compare.spec import Stat, ToleranceSpec
from layerwise.comparator.array_compare import ArrayCompareFunc, PerOutput, rules_of
from layerwise.comparator.matching import (
    BaseCompareFunc,
    FindOutput,
    default_find_output_func,
    metric_fields_for_func,
    run_comparison,
)
from layerwise.comparator.results import (
    CompareResult,
    CosineSimilarityResult,
    L2Result,
    OutputCompareResult,
    PerceptualMetricsResult,
    PsnrResult,
    SnrResult,
)
from layerwise.comparator.thresholds import (
    CosineSimilarityThreshold,
    L2Threshold,
    LpipsThreshold,
    PsnrThreshold,
    SimpleThreshold,
    SnrThreshold,
    Threshold,
)
from layerwise.comparator.util import draw_differences
from layerwise.logger import G_LOGGER
from layerwise.util import default

__all__ = [
    "BaseCompareFunc", "CompareFunc", "CompareResult", "CosineSimilarityCompareFunc", "CosineSimilarityResult",
    "CosineSimilarityThreshold", "IndicesCompareFunc", "L2CompareFunc", "L2Result", "L2Threshold", "LpipsThreshold",
    "OutputCompareResult", "PerceptualMetricsCompareFunc", "PerceptualMetricsResult", "PsnrCompareFunc", "PsnrResult",
    "PsnrThreshold", "SimpleCompareFunc", "SimpleThreshold", "SnrCompareFunc", "SnrResult", "SnrThreshold", "Threshold",
    "default_find_output_func", "metric_fields_for_func", "run_comparison",
]  # fmt: skip


class SimpleCompareFunc(ArrayCompareFunc):
    """Absolute or relative error within tolerance, element by element or by a statistic.

    check_error_stat: "elemwise", "max", "mean", "median" or "quantile". save_heatmaps, save_error_metrics_plot: folders
    for plots; the same with show_ opens no window, and says so.
    """

    metric = "simple"

    def __init__(
        self,
        check_shapes: bool | None = None,
        rtol: PerOutput = None,
        atol: PerOutput = None,
        fail_fast: bool | None = None,
        find_output_func: FindOutput | None = None,
        check_error_stat: PerOutput = None,
        infinities_compare_equal: bool | None = None,
        save_heatmaps: str | None = None,
        show_heatmaps: bool | None = None,
        save_error_metrics_plot: str | None = None,
        show_error_metrics_plot: bool | None = None,
        error_quantile: PerOutput = None,
    ) -> None:
        self._set(check_shapes, fail_fast, find_output_func)
        self.rtol, self.atol = default(rtol, 1e-5), default(atol, 1e-5)
        self.check_error_stat = default(check_error_stat, "elemwise")
        self.error_quantile = default(error_quantile, 0.99)
        self.infinities_compare_equal = bool(infinities_compare_equal)
        self.save_heatmaps, self.show_heatmaps = save_heatmaps, bool(show_heatmaps)
        self.save_error_metrics_plot = save_error_metrics_plot
        self.show_error_metrics_plot = bool(show_error_metrics_plot)
        if show_heatmaps or show_error_metrics_plot:
            G_LOGGER.warning("plots are saved, not shown: save_heatmaps and save_error_metrics_plot name folders")

    def thresholds_for(self, output_name: str) -> SimpleThreshold:
        """The statistic that is checked, and the tolerances."""
        rule = Tolerances(self._rules()).rule(output_name)
        return SimpleThreshold(rule.stat, rule.atol, rule.rtol)

    def _rules(self) -> ToleranceSpec:
        stats = rules_of(self.check_error_stat)
        if wrong := [stat for stat in stats.values() if stat not in get_args(Stat)]:
            G_LOGGER.critical(
                f"Invalid choice for check_error_stat: {wrong[0]}; it is one of {', '.join(get_args(Stat))}"
            )
        return ToleranceSpec(
            rtol=rules_of(self.rtol),
            atol=rules_of(self.atol),
            stat=stats,
            quantile=rules_of(self.error_quantile),
            infinities_compare_equal=self.infinities_compare_equal,
        )

    def _draw(self, row: LayerRow, runners: tuple[str, str], a: Any, b: Any) -> None:
        if self.save_heatmaps or self.save_error_metrics_plot:
            draw_differences(row, runners, a, b, self.save_heatmaps, self.save_error_metrics_plot)

    def _found(self, result: Comparison, threshold: Any) -> OutputCompareResult | bool:
        rule, totals = result.rule, result.totals
        if totals is None:
            return bool(result.passed)
        values: dict[str, float | None] = {}
        for kind, moments, order in (("abs", totals.abs, result.order_abs), ("rel", totals.rel, result.order_rel)):
            values[f"max_{kind}diff"] = float(moments.high) if moments.count else 0.0
            values[f"mean_{kind}diff"] = moments.mean
            values[f"median_{kind}diff"] = order.get("median")
            values[f"quantile_{kind}diff"] = order.get("quantile") if rule.stat == "quantile" else None
        stored = bool(result.passed) if rule.stat == "elemwise" else None
        return OutputCompareResult(**values, thresholds=threshold, passed=stored)


class IndicesCompareFunc(ArrayCompareFunc):
    """Positions of indices, such as those of a top-k, within a tolerance. Results are plain verdicts; a tolerance that
    leaves no place to check is told.
    """

    metric = "indices"

    def __init__(self, index_tolerance: PerOutput = None, fail_fast: bool | None = None) -> None:
        self._set(None, fail_fast, None)
        self.index_tolerance = default(index_tolerance, 0)

    def _rules(self) -> ToleranceSpec:
        return ToleranceSpec(index_tolerance=rules_of(self.index_tolerance))

    def _threshold(self, output_name: str) -> None:
        return None

    def _found(self, result: Comparison, threshold: Any) -> bool:
        return result.passed is not False


class _OneNumber(ArrayCompareFunc):
    """A metric that gives one number an output."""

    _RESULT_CLASS: ClassVar[Any]
    _THRESHOLD_CLASS: ClassVar[Any]
    threshold: PerOutput

    def _set_all(self, threshold: PerOutput, *rest: Any) -> None:
        self.threshold = default(threshold, METRICS[self.metric].default)
        self._set(*rest)

    def thresholds_for(self, output_name: str) -> Any:
        """What the number is held against."""
        return self._THRESHOLD_CLASS(getattr(Tolerances(self._rules()).rule(output_name), self._field()))

    def _field(self) -> str:
        return {"cosine_similarity": "cosine", "perceptual_metrics": "lpips"}.get(self.metric, self.metric)

    def _rules(self) -> ToleranceSpec:
        return msgspec.structs.replace(ToleranceSpec(), **{self._field(): rules_of(self.threshold)})

    def _found(self, result: Comparison, threshold: Any) -> Any:
        if result.totals is None:
            return False
        return self._RESULT_CLASS(getattr(result, self._field()), thresholds=threshold)


class L2CompareFunc(_OneNumber):
    """L2 norm of the difference, at most 1e-5 by default."""

    metric = "l2"
    _RESULT_CLASS, _THRESHOLD_CLASS = L2Result, L2Threshold

    def __init__(
        self, l2_threshold: PerOutput = None, check_shapes: bool | None = None,
        fail_fast: bool | None = None, find_output_func: FindOutput | None = None,
    ) -> None:  # fmt: skip
        self._set_all(l2_threshold, check_shapes, fail_fast, find_output_func)


class CosineSimilarityCompareFunc(_OneNumber):
    """Cosine similarity, at least 0.997 by default."""

    metric = "cosine_similarity"
    _RESULT_CLASS, _THRESHOLD_CLASS = CosineSimilarityResult, CosineSimilarityThreshold

    def __init__(
        self, cosine_similarity_threshold: PerOutput = None, check_shapes: bool | None = None,
        fail_fast: bool | None = None, find_output_func: FindOutput | None = None,
    ) -> None:  # fmt: skip
        self._set_all(cosine_similarity_threshold, check_shapes, fail_fast, find_output_func)


class PsnrCompareFunc(_OneNumber):
    """Peak signal-to-noise ratio, at least 30 dB by default; the peak is that of the first side."""

    metric = "psnr"
    _RESULT_CLASS, _THRESHOLD_CLASS = PsnrResult, PsnrThreshold

    def __init__(
        self, psnr_threshold: PerOutput = None, check_shapes: bool | None = None,
        fail_fast: bool | None = None, find_output_func: FindOutput | None = None,
    ) -> None:  # fmt: skip
        self._set_all(psnr_threshold, check_shapes, fail_fast, find_output_func)


class SnrCompareFunc(_OneNumber):
    """Signal-to-noise ratio, at least 20 dB by default; the signal is the first side."""

    metric = "snr"
    _RESULT_CLASS, _THRESHOLD_CLASS = SnrResult, SnrThreshold

    def __init__(
        self, snr_threshold: PerOutput = None, check_shapes: bool | None = None,
        fail_fast: bool | None = None, find_output_func: FindOutput | None = None,
    ) -> None:  # fmt: skip
        self._set_all(snr_threshold, check_shapes, fail_fast, find_output_func)


class PerceptualMetricsCompareFunc(_OneNumber):
    """LPIPS, at most 0.1 by default. MissingDependency where lpips is not installed."""

    metric = "perceptual_metrics"
    _RESULT_CLASS, _THRESHOLD_CLASS = PerceptualMetricsResult, LpipsThreshold

    def __init__(
        self, lpips_threshold: PerOutput = None, check_shapes: bool | None = None,
        fail_fast: bool | None = None, find_output_func: FindOutput | None = None,
    ) -> None:  # fmt: skip
        self._set_all(lpips_threshold, check_shapes, fail_fast, find_output_func)


class CompareFunc:
    """The older spelling of the functions above."""

    simple = SimpleCompareFunc
    indices = IndicesCompareFunc
    l2 = L2CompareFunc
    cosine_similarity = CosineSimilarityCompareFunc
    psnr = PsnrCompareFunc
    snr = SnrCompareFunc
    perceptual_metrics = PerceptualMetricsCompareFunc
