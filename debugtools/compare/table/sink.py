"""Where the rows of tensors go: the journal, the counts, accuracy files and pictures."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from layerwise._tool.backends.arrays import Array
from layerwise._tool.debugtools.compare.arithmetic.comparison import Comparison
from layerwise._tool.debugtools.compare.figures import FIGURES, figures
from layerwise._tool.debugtools.compare.pairing.left_out import LeftOut
from layerwise._tool.debugtools.compare.plots import Plots
from layerwise._tool.debugtools.compare.rows import LayerRow, Pair
from layerwise._tool.debugtools.compare.sides.side import Side
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.debugtools.compare.table.comparison import Enough
from layerwise._tool.debugtools.compare.table.saving import Accuracy, Outcome

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


Host = Callable[..., tuple[Array, ...]]


class RowSink:
    """Takes finished rows. host: brings tensors to the host.

    Between `hold` and `release` rows wait: those of the plain runs come before them in the journal.
    """

    def __init__(
        self, context: "JobContext", spec: CompareSpec, sides: Sequence[Side], outcome: Outcome, left_out: LeftOut,
        plots: Plots, host: Host,
    ) -> None:  # fmt: skip
        self._context, self._spec, self._sides, self._left_out = context, spec, sides, left_out
        self._plots, self._host = plots, host
        self.outcome = outcome
        self.accuracy = Accuracy(outcome.metrics, spec.check_average)
        self._pictures = 0
        self._held: list[tuple[LayerRow, Comparison]] | None = None

    def hold(self) -> None:
        """Keep rows back from here on, and no tensors of them."""
        self._held = []

    @property
    def holds(self) -> bool:
        """Whether rows are kept back."""
        return self._held is not None

    def release(self) -> None:
        """Put the rows that were kept back where they belong. Enough if one of them ends the comparison."""
        held, self._held = self._held, None
        for row, result in held or ():
            self._put(row, result)

    def take(self, row: LayerRow, result: Comparison, a: Array, b: Array) -> None:
        """Take in a row with its comparison and tensors. Enough if it ends the comparison."""
        row = self._pictured(row, a, b)
        if self._held is not None:
            self._held.append((row, result))
            return
        self._plots.draw(row, self._names(row.pair), a, b)
        self._put(row, result)

    def count(self, row: LayerRow) -> None:
        """Count a row, which may be one of an earlier attempt."""
        self.outcome.add(row)
        self._left_out.row(row)

    def _put(self, row: LayerRow, result: Comparison) -> None:
        self._context.row("layers", row)
        self.count(row)
        if self._spec.save_accuracy or self._spec.check_average:
            self.accuracy.add(row.iteration, self._names(row.pair), row.tensor, result)
        if self._spec.fail_fast and row.passed is False:
            raise Enough

    def _names(self, pair: Pair) -> tuple[str, str]:
        return self._sides[pair[0]].name, self._sides[pair[1]].name

    def _pictured(self, row: LayerRow, a: Array, b: Array) -> LayerRow:
        """The row with its figures, where they are asked for and not too many."""
        wanted = self._spec.figures and (row.passed is False or self._spec.all_figures)
        if not wanted or self._pictures >= FIGURES:
            return row
        self._pictures += 1
        first, second = self._host(a, b)
        return replace(row, figures=figures(first, second, self._spec.shape_check))
