"""Results of comparing one output: numbers, and thresholds that decide on them."""

from typing import Any, ClassVar

from layerwise.comparator.thresholds import (
    CosineSimilarityThreshold,
    L2Threshold,
    LpipsThreshold,
    PsnrThreshold,
    SimpleThreshold,
    SnrThreshold,
    Threshold,
)
from layerwise.json import Decoder, Encoder


class CompareResult:
    """The comparison of one output: true if its numbers, which are attributes, pass its thresholds."""

    _THRESHOLD_CLASS: ClassVar[type[Threshold] | None] = None

    def __init__(self, thresholds: Any = None) -> None:
        self.thresholds = thresholds
        self.output0_name: str | None = None
        self.output1_name: str | None = None

    def __bool__(self) -> bool:
        return bool(self.thresholds.passed(self.metric_values()))

    def set_thresholds(self, thresholds: Any) -> None:
        """Have other thresholds decide."""
        self.thresholds = thresholds

    @classmethod
    def metric_fields(cls) -> list[str]:
        """The names of its numbers."""
        return cls._THRESHOLD_CLASS.metric_fields() if cls._THRESHOLD_CLASS else []

    def metric_values(self) -> dict[str, Any]:
        """Its numbers by name."""
        return {name: getattr(self, name) for name in self.metric_fields()}

    def describe(self) -> tuple[str, bool] | None:
        """A line about it and whether it passed; None if there is nothing to say."""
        found: tuple[str, bool] | None = self.thresholds.describe(self.metric_values())
        return found


class OutputCompareResult(CompareResult):
    """Statistics of absolute and relative differences. passed: the verdict of a check element by element, which holds
    until other thresholds are set.
    """

    _THRESHOLD_CLASS = SimpleThreshold

    def __init__(
        self,
        max_absdiff: Any,
        max_reldiff: Any,
        mean_absdiff: Any,
        mean_reldiff: Any,
        median_absdiff: Any,
        median_reldiff: Any,
        quantile_absdiff: Any,
        quantile_reldiff: Any,
        thresholds: Any = None,
        passed: bool | None = None,
    ) -> None:
        super().__init__(thresholds)
        self._stored_passed = passed
        self.max_absdiff, self.max_reldiff = _number(max_absdiff), _number(max_reldiff)
        self.mean_absdiff, self.mean_reldiff = _number(mean_absdiff), _number(mean_reldiff)
        self.median_absdiff, self.median_reldiff = _number(median_absdiff), _number(median_reldiff)
        self.quantile_absdiff, self.quantile_reldiff = _number(quantile_absdiff), _number(quantile_reldiff)

    def __bool__(self) -> bool:
        return super().__bool__() if self._stored_passed is None else self._stored_passed

    def set_thresholds(self, thresholds: Any) -> None:
        super().set_thresholds(thresholds)
        self._stored_passed = None

    def __str__(self) -> str:
        return f"(atol={self.max_absdiff}, rtol={self.max_reldiff})"


class PerceptualMetricsResult(CompareResult):
    """LPIPS, None if it could not be computed."""

    _THRESHOLD_CLASS = LpipsThreshold

    def __init__(self, lpips: float | None = None, thresholds: Any = None) -> None:
        super().__init__(thresholds)
        self.lpips = lpips


class L2Result(CompareResult):
    """The L2 norm of the difference."""

    _THRESHOLD_CLASS = L2Threshold

    def __init__(self, l2_norm: float | None, thresholds: Any = None) -> None:
        super().__init__(thresholds)
        self.l2_norm = l2_norm


class CosineSimilarityResult(CompareResult):
    """The cosine similarity."""

    _THRESHOLD_CLASS = CosineSimilarityThreshold

    def __init__(self, cosine_similarity: float | None, thresholds: Any = None) -> None:
        super().__init__(thresholds)
        self.cosine_similarity = cosine_similarity


class PsnrResult(CompareResult):
    """The peak signal-to-noise ratio, in dB."""

    _THRESHOLD_CLASS = PsnrThreshold

    def __init__(self, psnr: float | None, thresholds: Any = None) -> None:
        super().__init__(thresholds)
        self.psnr = psnr


class SnrResult(CompareResult):
    """The signal-to-noise ratio, in dB."""

    _THRESHOLD_CLASS = SnrThreshold

    def __init__(self, snr: float | None, thresholds: Any = None) -> None:
        super().__init__(thresholds)
        self.snr = snr


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


@Encoder.register(OutputCompareResult)
def _encode(result: OutputCompareResult) -> dict[str, Any]:
    return {**result.metric_values(), "thresholds": result.thresholds, "passed": result._stored_passed}


@Decoder.register(OutputCompareResult)
def _decode(found: dict[str, Any]) -> OutputCompareResult:
    numbers = {name: found[name] for name in OutputCompareResult.metric_fields()}
    return OutputCompareResult(**numbers, thresholds=found["thresholds"], passed=found["passed"])


def _register(cls: Any) -> None:
    (field,) = cls.metric_fields()

    @Encoder.register(cls)
    def encode(result: Any) -> dict[str, Any]:
        return {field: getattr(result, field), "thresholds": result.thresholds}

    @Decoder.register(cls)
    def decode(found: dict[str, Any]) -> Any:
        return cls(found[field], thresholds=found["thresholds"])


for _cls in (PerceptualMetricsResult, L2Result, CosineSimilarityResult, PsnrResult, SnrResult):
    _register(_cls)
