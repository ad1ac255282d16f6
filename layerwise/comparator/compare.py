"""Comparing the outputs of two iterations, with Polygraphy's rules and report, and exact arithmetic for integers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.results.accuracy import (
    METRICS,
    MetricResult,
    MetricThreshold,
    SimpleResult,
    SimpleThreshold,
)
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.arithmetic.metrics import Comparison, compare_arrays
from layerwise._tool.debugtools.compare.arithmetic.tolerance import Tolerances
from layerwise._tool.debugtools.compare.pairing.counterparts import counterparts
from layerwise._tool.debugtools.compare.spec import MetricName, ToleranceSpec
from layerwise._tool.debugtools.compare.table import report_lines
from layerwise._tool.debugtools.compare.table.layers import layer_row
from layerwise._tool.debugtools.compare.table.places import Place
from layerwise.comparator.accuracy import CompareResult, Found
from layerwise.comparator.struct import IterationResult
from layerwise.logger import G_LOGGER

PerOutput = Any  # a value for all outputs, or output name -> value ("" for all others)
FindOutput = Callable[[str, int, IterationResult], Sequence[str] | None]


class BaseCompareFunc:
    """Takes two IterationResults, returns output name -> something that is true if it passed."""

    def __call__(self, iter_result0: IterationResult, iter_result1: IterationResult) -> Mapping[str, Any]:
        raise NotImplementedError


class _ArrayCompareFunc(BaseCompareFunc):
    """Compares output by output with one metric. Outputs are matched by their exact names."""

    metric: MetricName

    def __init__(
        self,
        rules: ToleranceSpec,
        check_shapes: bool | None,
        fail_fast: bool | None,
        find_output_func: FindOutput | None,
    ) -> None:
        self.rules = rules
        self.check_shapes = check_shapes is not False
        self.fail_fast = bool(fail_fast)
        self.find_output_func = find_output_func
        self._tolerances = Tolerances(rules)

    def __call__(self, iter_result0: IterationResult, iter_result1: IterationResult) -> dict[str, Found]:
        found: dict[str, Found] = {}
        for index, name in enumerate(iter_result0):
            for other in self._others(name, index, iter_result1):
                if other not in iter_result1:
                    G_LOGGER.warning(
                        f"For output: '{shown(name, 200)}' [{iter_result0.runner_name}], skipping corresponding "
                        f"output: '{shown(other, 200)}' [{iter_result1.runner_name}], since the output was not found"
                    )
                    continue
                found[name] = self._compare((name, other), iter_result0[name], iter_result1[other])
                if self.fail_fast and not found[name]:
                    return found
        if self.find_output_func is None:
            found |= self._unpaired(iter_result0, iter_result1)
        if not found and (iter_result0 or iter_result1):
            raise LayerwiseError(
                f"All outputs were skipped, no common outputs found: {shown(str(list(iter_result0)), 300)} and "
                f"{shown(str(list(iter_result1)), 300)}"
            )
        self._summary(found)
        return found

    def _unpaired(self, iter_result0: IterationResult, iter_result1: IterationResult) -> dict[str, Found]:
        """Sequences of different lengths, which fail; outputs of the second side alone are named."""
        pairs = counterparts(iter_result0, iter_result1, ((), ()))
        if alone := [shown(name, 200) for name in pairs.alone[1]]:
            G_LOGGER.warning(f"not compared: {alone} [{iter_result1.runner_name}]: not in [{iter_result0.runner_name}]")
        for each in pairs.uneven:
            G_LOGGER.error(f"FAILED | Output: `{shown(each.name, 200)}` | {each.text}")
        return {each.name: False for each in pairs.uneven}

    def _others(self, name: str, index: int, result: IterationResult) -> Sequence[str]:
        if self.find_output_func is None:
            return [name]
        return self.find_output_func(name, index, result) or []

    def _compare(self, names: tuple[str, str], first: Any, second: Any) -> Found:
        rule = self._tolerances.rule(names[0])
        result = compare_arrays(
            np.asarray(first), np.asarray(second), rule,
            metrics=[self.metric], statistics=True, medians=True, shape_check=self.check_shapes,
        )  # fmt: skip
        row = layer_row(0, (0, 1), *names, "plain", Place(), result, (None, ""))
        for line in report_lines.metric_lines(row, self.metric, self.rules):
            with G_LOGGER.indent(line.depth - 1):
                G_LOGGER.say(line.level, line.text)
        return self._found(result)

    def _found(self, result: Comparison) -> Found:
        raise NotImplementedError

    def _summary(self, found: Mapping[str, Found]) -> None:
        bad = [shown(name, 200) for name, each in found.items() if not each]
        label = report_lines.label(self.metric)
        if bad:
            G_LOGGER.error(f"FAILED | {label} | Mismatched outputs: {bad}")
        elif not found:
            G_LOGGER.warning(f"SKIPPED | {label} | No output was compared")
        else:
            names = [shown(name, 200) for name in found]
            G_LOGGER.finish(f"PASSED | {label} | All outputs matched | Outputs: {names}")


class SimpleCompareFunc(_ArrayCompareFunc):
    """Absolute or relative error within tolerance, element by element or by a statistic.

    check_error_stat: "elemwise", "max", "mean", "median" or "quantile". Heat maps and plots: `layerwise run`.
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
        if save_heatmaps or show_heatmaps or save_error_metrics_plot or show_error_metrics_plot:
            G_LOGGER.warning("heat maps and plots are made by `layerwise run --save-heatmaps`, not here")
        rules = ToleranceSpec(
            rtol=_rules(rtol),
            atol=_rules(atol),
            stat=_rules(check_error_stat),
            quantile=_rules(error_quantile),
            infinities_compare_equal=bool(infinities_compare_equal),
        )
        super().__init__(rules, check_shapes, fail_fast, find_output_func)

    def _found(self, result: Comparison) -> Found:
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
        return CompareResult(SimpleResult(values, SimpleThreshold(rule.stat, rule.atol, rule.rtol), stored))


class IndicesCompareFunc(_ArrayCompareFunc):
    """Positions of indices, such as those of a top-k, within a tolerance. Results are plain verdicts; a tolerance that
    leaves no place to check is told.
    """

    metric = "indices"

    def __init__(self, index_tolerance: PerOutput = None, fail_fast: bool | None = None) -> None:
        super().__init__(ToleranceSpec(index_tolerance=_rules(index_tolerance)), None, fail_fast, None)

    def _found(self, result: Comparison) -> Found:
        return result.passed is not False


class _OneNumber(_ArrayCompareFunc):
    """A metric that gives one number an output."""

    def _found(self, result: Comparison) -> Found:
        metric = METRICS[self.metric]
        if result.totals is None:
            return False
        field = {"cosine_similarity": "cosine", "perceptual_metrics": "lpips"}.get(self.metric, self.metric)
        return CompareResult(MetricResult(getattr(result, field), MetricThreshold(metric, getattr(result.rule, field))))


class L2CompareFunc(_OneNumber):
    """L2 norm of the difference, at most 1e-5 by default."""

    metric = "l2"

    def __init__(
        self, l2_threshold: PerOutput = None, check_shapes: bool | None = None,
        fail_fast: bool | None = None, find_output_func: FindOutput | None = None,
    ) -> None:  # fmt: skip
        super().__init__(ToleranceSpec(l2=_rules(l2_threshold)), check_shapes, fail_fast, find_output_func)


class CosineSimilarityCompareFunc(_OneNumber):
    """Cosine similarity, at least 0.997 by default."""

    metric = "cosine_similarity"

    def __init__(
        self, cosine_similarity_threshold: PerOutput = None, check_shapes: bool | None = None,
        fail_fast: bool | None = None, find_output_func: FindOutput | None = None,
    ) -> None:  # fmt: skip
        rules = ToleranceSpec(cosine=_rules(cosine_similarity_threshold))
        super().__init__(rules, check_shapes, fail_fast, find_output_func)


class PsnrCompareFunc(_OneNumber):
    """Peak signal-to-noise ratio, at least 30 dB by default; the peak is that of the first side."""

    metric = "psnr"

    def __init__(
        self, psnr_threshold: PerOutput = None, check_shapes: bool | None = None,
        fail_fast: bool | None = None, find_output_func: FindOutput | None = None,
    ) -> None:  # fmt: skip
        super().__init__(ToleranceSpec(psnr=_rules(psnr_threshold)), check_shapes, fail_fast, find_output_func)


class SnrCompareFunc(_OneNumber):
    """Signal-to-noise ratio, at least 20 dB by default; the signal is the first side."""

    metric = "snr"

    def __init__(
        self, snr_threshold: PerOutput = None, check_shapes: bool | None = None,
        fail_fast: bool | None = None, find_output_func: FindOutput | None = None,
    ) -> None:  # fmt: skip
        super().__init__(ToleranceSpec(snr=_rules(snr_threshold)), check_shapes, fail_fast, find_output_func)


class PerceptualMetricsCompareFunc(_OneNumber):
    """LPIPS, at most 0.1 by default. MissingDependency where lpips is not installed."""

    metric = "perceptual_metrics"

    def __init__(
        self, lpips_threshold: PerOutput = None, check_shapes: bool | None = None,
        fail_fast: bool | None = None, find_output_func: FindOutput | None = None,
    ) -> None:  # fmt: skip
        super().__init__(ToleranceSpec(lpips=_rules(lpips_threshold)), check_shapes, fail_fast, find_output_func)


class CompareFunc:
    """The older spelling of the functions above."""

    simple = SimpleCompareFunc
    indices = IndicesCompareFunc
    l2 = L2CompareFunc
    cosine_similarity = CosineSimilarityCompareFunc
    psnr = PsnrCompareFunc
    snr = SnrCompareFunc
    perceptual_metrics = PerceptualMetricsCompareFunc


def _rules(given: PerOutput) -> dict[str, Any]:
    if given is None:
        return {}
    return dict(given) if isinstance(given, Mapping) else {"": given}
