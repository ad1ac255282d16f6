"""The rows of a comparison's tables and its result, as the job's journal (schema version 1) holds them.

Fields with a default may be missing in journals that were written before they came. UNSET: the field is not written.
"""

from collections.abc import Sequence
from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from layerwise._tool.debugtools.compare.quantised_row import QuantisedRow
from layerwise._tool.surgery.origin.origin import SourceLine

Pair = tuple[int, int]
Index = Sequence[int]
Number = int | float | UnsetType
Reason = Literal[
    "excluded", "not marked", "no counterpart", "no value", "empty", "random", "no verdict", "not a tensor",
    "iterations", "unclear", "whole numbers",
]  # fmt: skip

IN_FULL = 16
"""Rows of one iteration and pair that a report for people tells in full; of more it has a line for each failure."""


class SideStats(Struct, frozen=True):
    """The values of one side of a pair, in the tensor's own unit; median and quantiles where they were asked for.

    argmin, argmax: the index per dimension. avg_magnitude: the mean of |x|.
    """

    mean: int | float
    std: int | float
    min: int | float
    argmin: Index
    max: int | float
    argmax: Index
    avg_magnitude: int | float
    var: Number = UNSET
    median: Number = UNSET
    p90: Number = UNSET
    p95: Number = UNSET
    p99: Number = UNSET


class Required(Struct, frozen=True):
    """The smallest absolute and the smallest relative tolerance that would pass alone."""

    abs: int | float | None = None
    rel: int | float | None = None


class Truth(Struct, frozen=True):
    """How far each side is from what the reference's graph gives in FP64 on that side's own inputs of a layer.

    suspect, reference: times what rounding explains (of `kind`, the coarsest type that the suspect rounds to), inf if
    nothing does; None: no number, and `why`. accumulated: the sides' difference over what all layers so far explain.
    """

    suspect: float | None = None
    reference: float | None = None
    accumulated: float | None = None
    kind: str = ""
    why: str = ""


class LayerRow(Struct, frozen=True, kw_only=True):
    """A row of table `layers`: a tensor of an iteration (from 0) and pair of runners (by place, the reference second).

    i, node, op: the node that makes it, i its position in topological order (-1: an input or initializer).
    tensor2, shape2: the reference's name and shape where they differ. mode: the run that it is from (plain, every,
    executed, marked or saved). dtype: of both sides; "sequence" or "value" where an output is no tensor on one side.
    shape: of the first side, size its elements. atol, rtol, stat: the rule. over: elements beyond both tolerances.
    nan, inf: how many each side has; first_nan: the index of the first.
    *_abs, *_rel: statistics of |a - b| and of |a - b| / |b|, as are required's; unset where nothing can be subtracted.
    argmin_*, argmax_*: an index per dimension. rel_l2: ||a - b|| / ||b||. psnr, snr: in dB.
    stats: of each side's values. figures: values and histograms, as text, of |a - b|, of |a - b| / |b| and of each
    side, where it failed. ampl: rel_l2 over the largest one among the node's inputs. finding: overflow, nan,
    leap, propagated, ill-conditioned (it passes), random, skip or "". metrics: the verdict of each; passed: all, None
    without one.
    local, local_abs, diagnosis: of a locate job: rel_l2 and largest error of the node on the reference's inputs.
    module, source: where the node comes from, as its exporter noted it: the path of its module, and a Python line.
    masked: elements that are left out, since they stand for "nothing here" on both sides (masks, or NaN alike).
    quantised: of a tensor in few bits or what its codes become, how well they hold it, as far as is known by then.
    """

    iteration: int = 0
    pair: Pair = (0, 1)
    i: int = -1
    node: str = ""
    op: str = ""
    tensor: str = ""
    mode: str = ""
    dtype: tuple[str, str] = ("", "")
    shape: tuple[int, ...] = ()
    size: int = 0
    tensor2: str | UnsetType = UNSET
    shape2: tuple[int, ...] | UnsetType = UNSET
    atol: int | float | None = None
    rtol: int | float | None = None
    stat: str = "elemwise"
    over: int | None = None
    nan: tuple[int, int] = (0, 0)
    inf: tuple[int, int] = (0, 0)
    first_nan: Index | None = None
    max_abs: Number = UNSET
    min_abs: Number = UNSET
    mean_abs: Number = UNSET
    std_abs: Number = UNSET
    argmin_abs: Index | UnsetType = UNSET
    argmax_abs: Index | UnsetType = UNSET
    max_rel: Number = UNSET
    min_rel: Number = UNSET
    mean_rel: Number = UNSET
    std_rel: Number = UNSET
    argmin_rel: Index | UnsetType = UNSET
    argmax_rel: Index | UnsetType = UNSET
    l2: Number = UNSET
    cosine: Number = UNSET
    psnr: Number = UNSET
    snr: Number = UNSET
    lpips: Number = UNSET
    required: Required | UnsetType = UNSET
    median_abs: Number = UNSET
    p90_abs: Number = UNSET
    p95_abs: Number = UNSET
    p99_abs: Number = UNSET
    quantile_abs: Number = UNSET
    median_rel: Number = UNSET
    p90_rel: Number = UNSET
    p95_rel: Number = UNSET
    p99_rel: Number = UNSET
    quantile_rel: Number = UNSET
    stats: Sequence[SideStats | None] = ()
    figures: Sequence[str] | UnsetType = UNSET
    ampl: float | None = None
    rel_l2: float | None = None
    finding: str = ""
    metrics: dict[str, bool] = {}
    passed: bool | None = None
    note: str = ""
    local: Number | None = UNSET
    local_abs: Number | None = UNSET
    diagnosis: str | UnsetType = UNSET
    truth: Truth | UnsetType = UNSET
    module: tuple[str, ...] | UnsetType = UNSET
    source: SourceLine | UnsetType = UNSET
    quantised: QuantisedRow | UnsetType = UNSET
    masked: int | UnsetType = UNSET

    @property
    def times(self) -> float | None:
        """How many times what rounding explains the suspect is off the truth, if that is known."""
        return None if self.truth is UNSET else self.truth.suspect

    @property
    def key(self) -> tuple[int, Pair, str]:
        """What identifies a row: iteration, pair, tensor."""
        return self.iteration, self.pair, self.tensor


class RowSummary(Struct, frozen=True):
    """What a result repeats of a row: the first bad or the worst one."""

    iteration: int = 0
    pair: Pair = (0, 1)
    i: int = -1
    node: str = ""
    op: str = ""
    tensor: str = ""
    mode: str = ""
    max_abs: Number = UNSET
    max_rel: Number = UNSET
    rel_l2: float | None = None
    finding: str = ""
    note: str = ""


class TensorInfo(Struct, frozen=True):
    """A tensor that a run took or gave."""

    name: str
    dtype: str
    shape: tuple[int, ...]


class InputsRow(Struct, frozen=True):
    """A row of table `inputs`: what all runners of an iteration take."""

    iteration: int
    inputs: list[TensorInfo]


class RunRow(Struct, frozen=True):
    """A row of table `runs`: one runner's plain run of an iteration. index: its place; runtime: seconds, if known."""

    iteration: int
    runner: str
    index: int
    runtime: float | None = None
    outputs: list[TensorInfo] = []


class EngineFileRow(Struct, frozen=True):
    """A row of table `engines`: the file of the engine that a runner built or opened."""

    runner: str
    index: int
    path: str


class ValidateRow(Struct, frozen=True):
    """A row of table `validate`: a tensor that holds NaN or Inf, how many, and the index of the first."""

    iteration: int = 0
    runner: str = ""
    tensor: str = ""
    nan: int = 0
    inf: int = 0
    first: Index = ()


class FeedRow(Struct, frozen=True):
    """A row of table `feeds`: the hash, in hex, of the inputs that a script gave for an iteration."""

    iteration: int
    hash: str


class NotCompared(Struct, frozen=True):
    """One tensor that was not compared ("": whole iterations), and why.

    pair: places of the two runners, None for all. iteration: the first one where it was so; times: in how many.
    layer: it is no output of the runs.
    """

    tensor: str
    reason: Reason
    text: str
    pair: Pair | None = None
    iteration: int = 0
    times: int = 1
    layer: bool = False
