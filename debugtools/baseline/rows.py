"""A baseline as its file holds it, and what a check finds: rows of table `baseline` and the result."""

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

from layerwise._tool.debugtools.compare.rows import Pair
from layerwise._tool.surgery.origin.origin import SourceLine

Change = Literal["grown", "follows", "unsure", "fails", "lost", "new", "less"]


class KeptLayer(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A tensor of a comparison, over all its iterations.

    layer: its name in the comparison's model. pair: places of the two runners. error: relative L2 error, of whole
    numbers the share that differs; peak: the largest error of an element over the root mean square of the reference;
    None: nothing could be subtracted.
    limit, peak_limit: up to where rounding on another machine explains them. broken: values that are not finite on one
    side alone. rms: root mean square of the reference. operator, weights: digests of what makes it from the tensors
    before it; reference: of the same in the reference's own model. passed: of an output of the runs, its verdict.
    """

    layer: str
    pair: Pair = (0, 1)
    op: str = ""
    node: str = ""
    dtype: tuple[str, str] = ("", "")
    shape: tuple[int, ...] = ()
    error: float | None = None
    limit: float = 0.0
    peak: float | None = None
    peak_limit: float = 0.0
    broken: int = 0
    rms: float | None = None
    operator: str = ""
    weights: str = ""
    reference: str = ""
    passed: bool | None = None


class Machine(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What the numbers were made with. versions: of packages. providers: of each side, "" where it has none."""

    versions: dict[str, str] = {}
    processor: str = ""
    features: list[str] = []
    providers: list[str] = []


class Baseline(Struct, frozen=True):
    """A baseline. request: the comparison, as a CompareSpec's JSON, with paths from the file's folder.

    models: digests of the sides' models, "" where there is none. feeds: digests of the inputs of each iteration.
    layers: in topological order.
    """

    machine: Machine
    request: dict[str, Any]
    models: list[str]
    feeds: list[str]
    layers: list[KeptLayer]


class ChangeRow(Struct, frozen=True, kw_only=True):
    """A layer that is not as it was. i: its position in topological order.

    change: grown (beyond its limit, its inputs are not), follows (grown, and so are its inputs), unsure (repetitions do
    not tell whether it has), fails (an output that passed its tolerance), lost, new, less (its error is far below).
    was: its name then, where it has another one. error, peak: now; *_then, *limit: as the baseline has them.
    times: how many times its limit, None where values are not finite or of another shape that were.
    cause: what changed since that fits. confidence: that it is beyond its limit, where it was repeated.
    """

    change: Change
    i: int = -1
    layer: str = ""
    was: str | UnsetType = UNSET
    pair: Pair = (0, 1)
    op: str = ""
    node: str = ""
    error: float | None = None
    error_then: float | None = None
    limit: float = 0.0
    peak: float | None = None
    peak_then: float | None = None
    peak_limit: float = 0.0
    times: float | None = 0.0
    cause: str = ""
    confidence: float | UnsetType = UNSET
    note: str = ""
    module: tuple[str, ...] | UnsetType = UNSET
    source: SourceLine | UnsetType = UNSET


class BaselineResult(Struct, frozen=True, kw_only=True):
    """What a baseline comes to. compared: layers that both have. counts: rows by their change.

    changes: what is not as it was when the baseline was made, in words: versions, models, inputs, machine.
    versions_then, versions_now: of what computed. outputs_pass: the verdict of the comparison itself. written: the
    file, "" where none was.
    """

    passed: bool
    layers: int = 0
    compared: int = 0
    counts: dict[str, int] = {}
    first: ChangeRow | None = None
    changes: list[str] = []
    versions_then: dict[str, str] = {}
    versions_now: dict[str, str] = {}
    outputs_pass: bool | None = None
    repetitions: int = 0
    written: str = ""
    seconds: float = 0.0
    conclusion: str = ""
