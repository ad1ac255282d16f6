"""The ledgers of one comparison: of each pair of sides of which one holds tensors in few bits."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from layerwise._tool.backends.arrays import Array
from layerwise._tool.debugtools.compare.arithmetic.comparison import Comparison
from layerwise._tool.debugtools.compare.quantised.explaining import Explaining
from layerwise._tool.debugtools.compare.quantised.ledger import Ledger, ledger_of
from layerwise._tool.debugtools.compare.quantised.left import Left
from layerwise._tool.debugtools.compare.quantised.told import cost_text, unseen
from layerwise._tool.debugtools.compare.quantised_row import QuantisedResult
from layerwise._tool.debugtools.compare.result import CompareResult
from layerwise._tool.debugtools.compare.rows import LayerRow, Pair
from layerwise._tool.debugtools.compare.sides.marks import marked_tensors
from layerwise._tool.debugtools.compare.sides.setup import Setup
from layerwise._tool.debugtools.compare.sides.side import ModelSide
from layerwise._tool.debugtools.compare.spec import is_given, rules_of

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext

_STRICT = 2.0  # times what rounding explains of floats: a tensor within it needs no other explanation
_RUNS_GRAPHS = ("onnxrt", "reference")


class QuantisedPairs:
    """unfused: layers are observed so, which codes are paired for. folder: for tensors that wait.

    explaining: of pairs whose sides are graphs that onnxruntime runs; without observed layers only those of which one
    side holds weights alone in few bits.
    """

    def __init__(self, setup: Setup, folder: Path, *, unfused: bool) -> None:
        self._setup, self._sides, self._spec = setup, setup.sides, setup.spec
        made = ((pair, ledger_of(self._sides[pair[0]], self._sides[pair[1]], setup.model)) for pair in setup.pairs)
        self._ledgers: dict[Pair, Ledger] = {pair: found for pair, found in made if found is not None}
        if unfused and len(setup.pairs) == 1:  # a side that is in two pairs has one set of names
            for found in self._ledgers.values():
                found.pair()
        self.explaining: dict[Pair, Explaining] = {
            pair: Explaining(found, folder, setup.spec.memory_budget)
            for pair, found in self._ledgers.items()
            if _explainable(found)
        }
        if not setup.observing:
            self.explaining = {pair: each for pair, each in self.explaining.items() if each.weights_alone}

    def begin(self, feed: Mapping[str, Array]) -> None:
        """Take in the inputs of an iteration, by the comparison's names."""
        for found in self._ledgers.values():
            found.fed(feed)
        for pair, explaining in self.explaining.items():
            other = self._ledgers[pair].other
            assert isinstance(other, ModelSide)
            assert self._setup.model is not None
            cut = self._setup.model.cut
            names = [*cut.outputs, *(marked_tensors(self._setup.marks, cut) if self._setup.observing else ())]
            explaining.begin(other.fit(feed, lambda text: None), names)

    def settles(
        self, pair: Pair, name: str, tensors: tuple[Array, Array], result: Comparison, depth: int,
        host: Callable[..., tuple[Array, ...]],
    ) -> bool | None:  # fmt: skip
        """Whether what few bits explain decides of a tensor by itself; its verdict and note are by that. None where
        they explain nothing of it.

        host: brings tensors to the host. Where the user gave a tolerance, that decides, and the note tells.
        """
        explaining = self.explaining.get(pair)
        if explaining is None:
            return None
        a, b = host(*tensors)
        mine, theirs = (a, b) if self._ledgers[pair].side is self._sides[pair[0]] else (b, a)
        found = explaining.left(name, mine, theirs, result, depth)
        explaining.done(name)
        if found is None or found.whole <= _STRICT * found.bound:
            return None
        note = _note(found)
        result.note = f"{result.note}; {note}" if result.note else note
        if is_given(self._spec.tolerance, name) or "simple" not in result.verdicts:
            return False
        result.verdicts["simple"] = found.explained
        return found.settled

    def held(self, row: LayerRow, a: Array, b: Array) -> LayerRow:
        """Take in a compared tensor; its row, with how well codes hold it where one side does so in few bits. What the
        format does not explain fails where rounding decides.
        """
        found = self._ledgers.get(row.pair)
        if found is None:
            return row
        mine, other = (self._sides[i] for i in row.pair)
        if found.side is not mine:
            mine, other, b = other, mine, a
        own = mine.own(row.tensor)
        found.saw(own, b, other.own(row.tensor))
        held = found.of(own)
        if held is None:
            return row
        row = replace(row, quantised=held)
        auto = rules_of(self._spec.tolerance, layers=self._setup.whole_graph).auto
        asked = auto and not is_given(self._spec.tolerance, row.tensor) and row.metrics.get("simple")
        return _failed(row, held.text) if held.word and asked else row

    def tell(self, context: "JobContext", result: CompareResult) -> None:
        """Write the rows of table `quantised` and what they come to. What no format explains does not pass where
        rounding decides.
        """
        for pair, found in self._ledgers.items():
            if not self._setup.observing and pair not in self.explaining:
                count = len(found.sites.all)
                if not result.passed or rules_of(self._spec.tolerance, layers=False).auto:
                    result.quantised = result.quantised or QuantisedResult(count, 0, unseen(count))
                continue
            for each in found.rows():
                context.row("quantised", each)
            held = self._with_cost(pair, found.result())
            if result.quantised is None or held.wrong > result.quantised.wrong:
                result.quantised = held
            if held.wrong and rules_of(self._spec.tolerance, layers=self._setup.whole_graph).auto:
                result.passed = False

    def _with_cost(self, pair: Pair, held: QuantisedResult) -> QuantisedResult:
        explaining = self.explaining.get(pair)
        if explaining is None:
            return held
        assert self._setup.model is not None
        outputs = set(self._setup.model.cut.outputs)
        ends = {name: left for name, left in explaining.found.items() if name in outputs}
        name = max(ends, key=lambda each: ends[each].whole, default=None)
        worst = Left(0.0, 0.0, 0.0, 0.0, True) if name is None else ends[name]
        every = all(each.explained or each.whole <= _STRICT * each.bound for each in explaining.found.values())
        explained = name is not None and every and not held.wrong
        text = cost_text(name or "", worst, explained=explained, unknown=explaining.unknown)
        return replace(held, text=f"{held.text}{text}", explained=explained, cost=worst.whole, left=worst.left,
                       moved=worst.moved)  # fmt: skip

    def close(self) -> None:
        """Give everything back."""
        for each in self.explaining.values():
            each.close()


def _failed(row: LayerRow, why: str) -> LayerRow:
    """A row of codes that do not hold what their format could."""
    note = f"{row.note}; {why}" if row.note else why
    return replace(row, passed=False, metrics={**row.metrics, "simple": False}, finding="leap", note=note)


def _explainable(ledger: Ledger) -> bool:
    sides = (ledger.side, ledger.other)
    runs = all(isinstance(side, ModelSide) and side.spec.kind in _RUNS_GRAPHS for side in sides)
    return runs and ledger.originals is not None


def _note(found: Left) -> str:
    if found.left is None:
        return f"rel L2 {found.whole:.3g}; rounding the same tensors moves the float model by {found.moved:.2g}"
    if found.explained:
        return f"rel L2 {found.whole:.3g} is what rounding the weights costs: {found.left:.2g} without"
    return f"rel L2 {found.whole:.3g}, of which rounding the weights does not explain {found.left:.2g}"
