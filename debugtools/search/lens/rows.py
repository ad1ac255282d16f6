"""Rows and the result of a lens job as its journal has them, schema version 1. Errors are relative L2 errors."""

from msgspec import Struct

from layerwise._tool.debugtools.search.rows import SearchResult


class OutputEffect(Struct, frozen=True):
    """What one output is off by. error: relative L2 of floats, None: not finite; share of values that differ, of others
    (changed: True).
    """

    name: str
    error: float | None
    changed: bool = False


class Channel(Struct, frozen=True):
    """A channel of a node's output, and its share of the node's squared error."""

    channel: int
    share: float


class EffectRow(Struct, kw_only=True):
    """A row of the table effects: one node in low precision, all others in FP32.

    own: error of its own output; effect: of the worst of the model's, None: not finite. weight, activation: the same
    with those alone low, None: not measured. sqnr_weight, sqnr_activation: dB, of the worst operand; clipped: share of
    an activation's values beyond its range; clipping: share of its squared error that they make, the rest is rounding.
    fed_by: nodes whose outputs, where they are all low, it reads rounded already (of FP16 and bfloat16; None: it never
    does); stored: the outputs' errors then, with its weights and outputs low.
    grouped: how many nodes its effect was measured of, of which it has an equal share (1: it was told by the difference
    of two sets); 0: it alone was measured.
    cost: of keeping it in FP32, in the unit that was asked for; nbytes: what its weights take less; flops.
    """

    i: int
    node: str
    op: str
    outputs: list[str] = []
    own: float | None = None
    effect: float | None = None
    effects: list[OutputEffect] = []
    weight: float | None = None
    activation: float | None = None
    sqnr_weight: float | None = None
    sqnr_activation: float | None = None
    clipped: float | None = None
    clipping: float | None = None
    channels: list[Channel] = []
    fed_by: list[int] | None = None
    stored: list[OutputEffect] = []
    nbytes: int = 0
    flops: int = 0
    cost: float = 0.0
    seconds: float = 0.0
    grouped: int = 0


class SetRow(Struct, kw_only=True):
    """A row of the table sets: several nodes low at once. what: check (of the prediction), group (whose errors of all
    outputs are `errors`) or choice, on the switchboard; mixed: a mixed model, with `errors`. low, kept: how many nodes;
    key: which. predicted: by squares; error: measured, of the worst output; ratio: over the bound. passed: within it.
    """

    what: str
    key: str
    low: int
    kept: int
    cost: float = 0.0
    predicted: float | None = None
    error: float | None = None
    ratio: float | None = None
    passed: bool | None = None
    seconds: float = 0.0
    errors: list[OutputEffect] = []


class FrontierPoint(Struct, frozen=True):
    """What the best sets come to. cost: of what is kept, as a share of all; rel_l2: of the worst output, predicted, or
    measured where `verdict` says so.
    """

    kept: int
    low: int
    cost: float
    rel_l2: float | None
    verdict: str = ""


class KeptRow(Struct, frozen=True):
    """A node that stays in FP32."""

    i: int
    node: str
    op: str
    effect: float | None = None
    cost: float = 0.0


class LensResult(SearchResult, kw_only=True):
    """The result of a lens job. format: its name; candidates: nodes that can be low; all_low: the outputs' error with
    all of them, predicted and measured; adds: whether squares add for this model, by the sets that were tried: within:
    how many of `sets` were predicted within 15 %; factor: median of measured over predicted.

    kept: what stays in FP32, None: no bound was given, or no set keeps it; minimal: no node of it can be left out;
    by_prediction: of how many that was not measured, since the prediction is far beyond the bound. runs: nodes, sets
    and mixed models that were run for the choice; one_by_one: that it takes to keep one node after another, each time
    the best of all. proved: error of the mixed model as it is run at last; lost: that of one that was much worse
    than its set on the switchboard (`rounding`), after which mixed models were measured; None: there was none.
    real: whether that ran on ONNX's own operators, not_real: why not; needs: what has to be set for onnxruntime to load
    it, or to run it where its kernels saturate; saturated: the error without that there. path, files: what was written.
    left_out: kinds of nodes that cannot be switched, with their number.
    """

    format: str = ""
    candidates: int = 0
    predicted_all: float | None = None
    all_low: float | None = None
    adds: bool | None = None
    within: int = 0
    sets: int = 0
    factor: float | None = None
    kept: list[KeptRow] | None = None
    minimal: bool = False
    cost: float = 0.0
    cost_unit: str = ""
    saved: float | None = None
    error: float | None = None
    proved: float | None = None
    lost: float | None = None
    rounding: float | None = None
    runs: int = 0
    one_by_one: int = 0
    by_prediction: int = 0
    real: bool = True
    not_real: str = ""
    needs: str = ""
    saturated: float | None = None
    path: str = ""
    files: dict[str, str] = {}
    frontier: list[FrontierPoint] = []
    left_out: dict[str, int] = {}
    worst: list[str] = []
