"""What all parts of one comparison share."""

from collections.abc import Set
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct, field

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.stats import stats_text
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.arithmetic.metrics import array_stats
from layerwise._tool.debugtools.compare.pairing.left_out import LeftOut
from layerwise._tool.debugtools.compare.rows import LayerRow, Pair, ValidateRow
from layerwise._tool.debugtools.compare.sides.models import Model
from layerwise._tool.debugtools.compare.sides.saved_side import SavedSide
from layerwise._tool.debugtools.compare.sides.side import ModelSide, Side
from layerwise._tool.debugtools.compare.sides.stream import observing
from layerwise._tool.debugtools.compare.spec import CompareSpec, Observing
from layerwise._tool.debugtools.compare.table.layers import place_of
from layerwise._tool.debugtools.compare.table.saving import Savers

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


_TOLD = 32  # valid outputs that are told of


class Validator:
    """Checks arrays; a bad one gives a row in table `validate` and a line in the log."""

    def __init__(self, context: "JobContext") -> None:
        self._context = context
        self._looked_at = self._told = 0
        self.valid = not context.previous_rows("validate")

    def check(self, iteration: int, runner: str, name: str, array: Array) -> bool:
        """Return whether an array is free of NaN and Inf, and say so, of valid ones for the first few."""
        self._looked_at += array.size
        side = array_stats(array)
        bad = side is not None and bool(side.nans + side.infs)
        self._told += 1
        if bad or self._told <= _TOLD:
            self._tell(iteration, runner, name, array)
        if side is None or not bad:
            if self._told <= _TOLD:
                self._context.log(f"PASSED | Output: {shown(name, 120)} is valid", "finish")
            return True
        self.valid = False
        if side.nans:
            self._context.log("NaN Detected | One or more NaNs were encountered in this output", "error")
        self._context.log("Inf Detected | One or more non-finite values were encountered in this output", "error")
        first = min(place for place in (side.first_nan, side.first_inf) if place >= 0)
        row = ValidateRow(iteration, runner, name, side.nans, side.infs, place_of(first, array.shape))
        self._context.row("validate", row)
        found = f"{side.nans} NaN and {side.infs} Inf in {shown(name, 120)}, first at {row.first}"
        self._context.log(f"{shown(runner, 80)}: {found}", "error")
        return False

    def _tell(self, iteration: int, runner: str, name: str, array: Array) -> None:
        head = f"{shown(runner, 80):35} | Iteration {iteration} | Validating output: {shown(name, 120)}"
        self._context.log(f"{head} (check_inf=True, check_nan=True)", "start")
        self._context.log(stats_text(array))

    def verdict(self) -> bool:
        """Whether all was valid; where there was not one value to look at it is not, and that is said."""
        if not self._looked_at:
            self._context.log("nothing was validated: no runner gave a value to look at", "error")
        return self.valid and self._looked_at > 0


class Enough(Exception):
    """The first failure was met, and the user wants no more."""


def alike_unfused(first: Side, second: Side) -> bool:
    """True if two sides differ in nothing but their optimisation level."""
    if not (isinstance(first, ModelSide) and isinstance(second, ModelSide)) or first.model is not second.model:
        return False
    levels = {side.spec.graph_optimization_level or "all" for side in (first, second)}
    return len(levels) > 1 and observing(first.spec) == observing(second.spec)


class RowContext(Struct, frozen=True, dict=True):
    """The job, the request, the sides; done: rows that an earlier attempt of the job made; left_out: what has none.

    said: what was warned of.
    """

    context: "JobContext"
    spec: CompareSpec
    model: Model | None
    sides: list[Side]
    pairs: list[Pair]
    savers: Savers
    validator: Validator | None
    done: dict[tuple[int, Pair, str], LayerRow] = field(default_factory=dict)
    left_out: LeftOut = field(default_factory=LeftOut)
    said: set[str] = field(default_factory=set)

    def warn_once(self, text: str) -> None:
        """Warn of what would be said of every iteration again."""
        if text not in self.said:
            self.said.add(text)
            self.context.warn(text)

    @property
    def model_sides(self) -> list[ModelSide]:
        """The sides that run something."""
        return [side for side in self.sides if isinstance(side, ModelSide)]

    def saved(self, pair: Pair) -> bool:
        """True if a side of the pair was read from a file."""
        return any(isinstance(self.sides[i], SavedSide) for i in pair)

    def plain_mode(self, pair: Pair) -> str:
        """The mode of rows of graph outputs."""
        return "saved" if self.saved(pair) else "plain"

    def layer_mode(self, pair: Pair) -> str:
        """The mode of rows of other tensors."""
        if self.marked(pair):
            return "marked"
        return "saved" if self.saved(pair) else self.observe

    @cached_property
    def observe(self) -> Observing:
        """How layers are observed: as asked, as saved ones were, or executed where unfused ones cannot differ."""
        if self.spec.observe != "auto":
            return self.spec.observe
        for side in self.sides:
            if isinstance(side, SavedSide) and (noted := side.observed(self._layers)):
                return noted
        return "executed" if any(self.alike_unfused(pair) for pair in self.pairs) else "every"

    @property
    def _layers(self) -> Set[str]:
        """Tensors of the model that are not its outputs."""
        return self.model.layers() if self.model else frozenset()

    def observed(self, side: ModelSide) -> Observing:
        """How layers of one side are observed: what is not onnxruntime has but its own graph to run."""
        alone: dict[str, Observing] = {"onnxrt": self.observe, "trt": "marked"}
        return alone.get(side.spec.kind, "every")

    def marked(self, pair: Pair) -> bool:
        """True if a side of the pair runs in a session with all marked tensors as outputs: rows are from there."""
        sides = (self.sides[i] for i in pair)
        return any(isinstance(side, ModelSide) and self.observed(side) == "marked" for side in sides)

    def alike_unfused(self, pair: Pair) -> bool:
        """True if the sides differ in nothing but their optimisation level."""
        return alike_unfused(self.sides[pair[0]], self.sides[pair[1]])

    @property
    def keeps(self) -> bool:
        """Whether `keep` does anything."""
        return self.savers.takes_outputs or self.validator is not None

    def keep(self, number: int, side: Side, name: str, array: Array) -> None:
        """Save one tensor of a side that runs and validate it, as asked. Enough if it is bad and that ends it."""
        own = side.own(name)
        if isinstance(side, ModelSide) and side.common(own) == name:  # once, if it is the counterpart of several
            self.savers.output(number, side.index, own, side.naming.unlaid(name, array))
        if self.validator and not self.validator.check(number, side.name, name, array) and self.spec.fail_fast:
            raise Enough
