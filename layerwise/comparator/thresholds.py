"""Thresholds: what the numbers of a comparison must not exceed, or must reach."""

from collections.abc import Mapping
from typing import Any, ClassVar

from layerwise._tool.backends.results.accuracy import METRICS, SIMPLE_FIELDS, STATS
from layerwise.json import Decoder, Encoder
from layerwise.logger import G_LOGGER
from layerwise.util import array

Values = Mapping[str, Any]


class Threshold:
    """Decides on the numbers of one output. METRIC_FIELDS: their names."""

    METRIC_FIELDS: ClassVar[list[str]] = []

    @classmethod
    def metric_fields(cls) -> list[str]:
        """The names of the numbers that it decides on."""
        return list(cls.METRIC_FIELDS)

    def passed(self, metric_values: Values) -> bool:
        """Whether they pass; for thresholds of one's own."""
        raise NotImplementedError

    def describe(self, metric_values: Values) -> tuple[str, bool] | None:
        """A line about them and whether they pass; None if there is nothing to say."""
        return None


class SimpleThreshold(Threshold):
    """Absolute and relative tolerance on a statistic of the differences; meeting either one is enough."""

    METRIC_FIELDS: ClassVar[list[str]] = list(SIMPLE_FIELDS)

    def __init__(self, check_error_stat: str, atol: float, rtol: float) -> None:
        self.check_error_stat = check_error_stat
        self.atol = atol
        self.rtol = rtol

    def passed(self, metric_values: Values) -> bool:
        """Whether the statistic passes. PolygraphyException for "elemwise", which cannot be told from statistics, and
        for one that was not computed.
        """
        stat = self.check_error_stat
        if stat not in STATS:
            G_LOGGER.critical(f"Cannot re-evaluate check_error_stat={stat!r}; use one of {', '.join(STATS)}")
        absolute, relative = (metric_values.get(f"{stat}_{kind}") for kind in ("absdiff", "reldiff"))
        if absolute is None or relative is None:
            G_LOGGER.critical(f"The {stat!r} statistic was not computed, so it cannot be checked")
        return not (_exceeds(absolute, self.atol) and _exceeds(relative, self.rtol))


class _MetricThreshold(Threshold):
    """One number, that must be at most or, where higher is better, at least `threshold`."""

    metric: str

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold

    @classmethod
    def metric_fields(cls) -> list[str]:
        return [METRICS[cls.metric].field]

    def passed(self, metric_values: Values) -> bool:
        value = metric_values.get(METRICS[self.metric].field)
        if value is None:
            return False
        return bool(value >= self.threshold if METRICS[self.metric].more_is_better else value <= self.threshold)

    def describe(self, metric_values: Values) -> tuple[str, bool] | None:
        metric = METRICS[self.metric]
        value = metric_values.get(metric.field)
        if value is None:
            return None
        passed, limit = self.passed(metric_values), "min required" if metric.more_is_better else "tolerance"
        told, wanted = _told_apart(value, self.threshold)
        verdict = "PASSED" if passed else "FAILED"
        return f"{metric.label}: {told}{metric.unit} ({limit}: {wanted}{metric.unit}) | {verdict}", passed


class L2Threshold(_MetricThreshold):
    """The L2 norm of the difference must be at most this."""

    metric = "l2"


class CosineSimilarityThreshold(_MetricThreshold):
    """The cosine similarity must be at least this."""

    metric = "cosine_similarity"


class PsnrThreshold(_MetricThreshold):
    """The peak signal-to-noise ratio must be at least this, in dB."""

    metric = "psnr"


class SnrThreshold(_MetricThreshold):
    """The signal-to-noise ratio must be at least this, in dB."""

    metric = "snr"


class LpipsThreshold(_MetricThreshold):
    """LPIPS must be at most this; where it could not be computed, that passes."""

    metric = "perceptual_metrics"

    def passed(self, metric_values: Values) -> bool:
        return metric_values.get("lpips") is None or super().passed(metric_values)


def _exceeds(value: Any, limit: float) -> bool:
    return bool(array.isnan(value)) or bool(value > limit)


def _told_apart(value: float, threshold: float) -> tuple[str, str]:
    """Both numbers with five digits, or as many as it takes to tell them apart."""
    for digits in range(5, 18):
        texts = f"{value:.{digits}g}", f"{threshold:.{digits}g}"
        if value == threshold or texts[0] != texts[1]:
            break
    return texts


def _register(cls: Any, fields: list[str]) -> None:
    @Encoder.register(cls)
    def encode(threshold: Any) -> dict[str, Any]:
        return {field: getattr(threshold, field) for field in fields}

    @Decoder.register(cls)
    def decode(found: dict[str, Any]) -> Any:
        return cls(*(found[field] for field in fields))


_register(SimpleThreshold, ["check_error_stat", "atol", "rtol"])
for _cls in (L2Threshold, CosineSimilarityThreshold, PsnrThreshold, SnrThreshold, LpipsThreshold):
    _register(_cls, ["threshold"])
