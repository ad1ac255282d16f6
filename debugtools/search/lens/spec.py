"""What to measure and what to choose, as plain values."""

from typing import Literal

from layerwise._tool.backends.specs import Spec
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.surgery.quantise.formats import FormatName

Cost = Literal["bytes", "flops", "time", "nodes"]
Metric = Literal["rel_l2", "sqnr", "cosine", "max_abs", "tolerance", "score"]
Calibration = Literal["minmax", "percentile", "entropy", "mse"]


class Rounding(Spec, frozen=True):
    """How tensors are laid onto a format's values.

    to: the format. weights, activations: which become low. weight_scales: one for a tensor, a channel or a block (of
    `block` values along the contracted axis); activation_scales: one for a tensor, or for each place on that axis.
    symmetric: zero in the middle; of weights, and of activations. calibration: of activations (and of weights by mse or
    percentile); percentile: share of values within the range, in percent.
    """

    to: FormatName = "int8"
    weights: bool = True
    activations: bool = True
    weight_scales: Literal["tensor", "channel", "block"] = "channel"
    activation_scales: Literal["tensor", "channel"] = "tensor"
    block: int = 32
    symmetric_weights: bool = True
    symmetric_activations: bool = True
    calibration: Calibration = "minmax"
    percentile: float = 99.99


class Bound(Spec, frozen=True):
    """What the outputs may differ by. metric: rel_l2 (relative L2 error), max_abs: at most `value`; sqnr (in dB),
    cosine: at least `value`; of the worst output. tolerance: as the comparison's tolerances say. score: what the
    function `script` (FILE.py:name) gives of the outputs, at least `value`.
    """

    metric: Metric = "rel_l2"
    value: float = 0.0
    script: str = ""


class LensSpec(Spec, frozen=True):
    """Measure what each node's low precision does to the outputs; with a bound, choose what stays in FP32.

    compare: the model, its runner (the first; onnxruntime on the CPU where none is named), inputs, tolerances. ops: the
    operators that count, none: all that the format is for. keep, keep_types: names (or globs) and operators of nodes
    that stay in FP32 in any case. each: with a bound too every node is measured alone, not in groups where these tell
    enough. split: weight and activation also one by one. checks: random sets that the prediction
    is held against. times: file of a bench with a profile. prove: measure nothing alone: all candidates low at once,
    and the mixed model run. limit: sets that the choice may try. output: the mixed model; lists: folder for what other
    tools are told.
    """

    compare: CompareSpec = CompareSpec()
    rounding: Rounding = Rounding()
    ops: list[str] = []
    keep: list[str] = []
    keep_types: list[str] = []
    each: bool = False
    split: bool = False
    checks: int = 9
    bound: Bound | None = None
    cost: Cost = "flops"
    times: str | None = None
    prove: bool = False
    limit: int = 200
    output: str | None = None
    lists: str | None = None
