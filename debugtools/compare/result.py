"""The result of a comparison, and what it sums up."""

from msgspec import UNSET, Struct, UnsetType

from layerwise._tool.debugtools.compare.quantised_row import QuantisedResult
from layerwise._tool.debugtools.compare.rows import NotCompared, RowSummary

FAR = 0.01
"""Relative L2 error from which on sides that rounding has driven apart are not said to agree."""


class CanaryReport(Struct, frozen=True):
    """Whether observing moved the outputs by no more than rounding explains. moved: the largest |a - b|."""

    ok: bool
    moved: float = 0.0
    text: str = ""


class TruthResult(Struct, frozen=True):
    """What all truths come to: a sentence; how many layers have a number and how many none; the first one that is not
    acceptable; each side's largest number. acceptable: None where no layer has a number."""

    acceptable: bool | None = None
    text: str = ""
    layers: int = 0
    without: int = 0
    first: RowSummary | None = None
    worst: float | None = None
    reference: float | None = None


class MetricSummary(Struct, frozen=True):
    """In how many of `total` iterations a metric passed for a pair (the runners' names); compared: its rows."""

    metric: str
    pair: tuple[str, str]
    passed: int
    total: int
    rate: float
    compared: int


class Average(Struct, frozen=True):
    """A metric of a tensor, averaged over the iterations; value: None where there is nothing to average."""

    pair: tuple[str, str]
    tensor: str
    metric: str
    value: float | None
    passed: bool


class Saturated(Struct, frozen=True):
    """A tensor that is off since onnxruntime's kernels for uint8 times int8 saturate on this CPU. error, left: relative
    L2, as it was made and by kernels that do not. nodes: of the side that multiply so, first: one of them. runners: the
    names of the sides that it is so of, side: the first one's position.
    """

    tensor: str
    error: float
    left: float
    nodes: int
    first: str
    runners: list[str]
    side: int


class CompareResult(Struct, kw_only=True):
    """The result of a comparison.

    n_compared: rows that compared something. seconds: it took. averages: where they decide.
    valid: whether all values were finite, where that was asked. peak_memory: bytes. skipped: marked values that are no
    tensors; unmatched: marked tensors without a counterpart; nothing_compared: a sentence a pair without a verdict;
    n_nonfinite, first_nonfinite: rows with NaN on both sides, or nothing but infinities.
    n_ill_conditioned, first_ill_conditioned: rows that pass because their node is seen to make small differences large;
    apart: the largest relative L2 error of a row that passes, where there is such a row.
    n_masked: rows some elements of which are left out, as masks hide them.
    conclusion: what was found, in a sentence. quantised: of a side whose other is its float original; saturated: the
    first tensor that fails since kernels saturate.
    """

    passed: bool = False
    n_rows: int = 0
    n_compared: int = 0
    n_failed: int = 0
    first_bad: RowSummary | None = None
    worst: RowSummary | None = None
    n_nonfinite: int = 0
    first_nonfinite: RowSummary | None = None
    n_ill_conditioned: int = 0
    first_ill_conditioned: RowSummary | None = None
    apart: float | None = None
    n_masked: int = 0
    runners: list[str] = []
    iterations: int = 0
    summary: list[MetricSummary] = []
    seconds: float = 0.0
    averages: list[Average] | UnsetType = UNSET
    valid: bool | UnsetType = UNSET
    peak_memory: int = 0
    canary: CanaryReport | None = None
    truth: TruthResult | None = None
    skipped: list[str] = []
    unmatched: list[str] = []
    nothing_compared: list[str] = []
    not_compared: list[NotCompared] = []
    conclusion: str = ""
    quantised: QuantisedResult | None = None
    saturated: Saturated | None = None
