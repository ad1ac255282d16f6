"""Locating from beginning to end: both sides walked through together, rows, suspects, the result."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from layerwise._tool.backends.arrays import Feed
from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.feeds.plan_text import explained
from layerwise._tool.backends.jobs.journal.earlier_attempts import typed
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.align.fingerprint import fingerprint
from layerwise._tool.debugtools.compare.aligning.when import align_sides
from layerwise._tool.debugtools.compare.memory import (
    Limits,
    keep_for_reuse,
    keep_nothing_back,
    limits,
    over_budget,
    usual_segment,
)
from layerwise._tool.debugtools.compare.observing.store import ArrayStore
from layerwise._tool.debugtools.compare.quantised.ledger import Ledger, ledger_of
from layerwise._tool.debugtools.compare.quantised.operators import holds_codes
from layerwise._tool.debugtools.compare.result import Saturated
from layerwise._tool.debugtools.compare.rows import LayerRow
from layerwise._tool.debugtools.compare.sides.engine import check_engine_side
from layerwise._tool.debugtools.compare.sides.saved_side import SavedSide
from layerwise._tool.debugtools.compare.sides.setup import Setup
from layerwise._tool.debugtools.compare.sides.side import ModelSide, Side
from layerwise._tool.debugtools.compare.sides.stream import SessionPool
from layerwise._tool.debugtools.compare.sides.torch import TorchSide
from layerwise._tool.debugtools.compare.table.pairs import Comparer
from layerwise._tool.debugtools.compare.table.places import Places
from layerwise._tool.debugtools.compare.truth.truths import Truths
from layerwise._tool.debugtools.locate.comparing_ahead import ComparingAhead, idle_threads
from layerwise._tool.debugtools.locate.dumped import read_dump
from layerwise._tool.debugtools.locate.executed import (
    can_tell,
    lost_by_fusing,
    observe_executed,
    plain_runs_differ,
    wanted,
)
from layerwise._tool.debugtools.locate.feeding import feeds_of
from layerwise._tool.debugtools.locate.findings import Findings
from layerwise._tool.debugtools.locate.formats import formats_of
from layerwise._tool.debugtools.locate.plan import LocatePlan
from layerwise._tool.debugtools.locate.reading import Reader
from layerwise._tool.debugtools.locate.rows import LocateResult
from layerwise._tool.debugtools.locate.spec import LocateSpec
from layerwise._tool.debugtools.locate.truth import LocalTruths
from layerwise._tool.debugtools.locate.walk import Met, Walk

if TYPE_CHECKING:
    from typing_extensions import Self

    from layerwise._tool.backends.jobs.context import JobContext

_ALIGNED_AGAIN = 3  # times
_FUSED = "what is fused loses it, and `debug locate --observe executed` looks there"
_FUSED_THERE = "what one of the two fuses loses it"


class LocateRun(ExitStack):
    """Holds what lives as long as the job's work. A context manager: leaving it closes sessions."""

    def __init__(self, context: "JobContext", spec: LocateSpec, setup: Setup) -> None:
        super().__init__()
        self.context, self.spec, self.setup = context, spec, setup
        self.started = time.perf_counter()
        self.suspect, self.reference = two_sides(setup.sides)
        check_engine_side(self.suspect, context.warn)
        for side in setup.sides:
            if isinstance(side, TorchSide):
                side.needs_operators()
        budget = spec.compare.memory_budget
        (keep_for_reuse if budget is None else keep_nothing_back)()
        keep = budget is None and setup.count() != 1
        self._pools = SessionPool(keep), SessionPool(keep)
        places = Places(setup.model, True, other_model(self.suspect, self.reference))
        self._comparer = Comparer(spec.compare, setup.sides, places, lambda *_: None)
        self._done = {row.key for row in typed(context.previous_rows("layers"), LayerRow)}
        self._plan: LocatePlan | None = None
        self.ledger: Ledger | None = None
        self._of_reference: Ledger | None = None
        self.findings = Findings(self.suspect, self.reference)

    def __enter__(self) -> "Self":
        self.callback(self.setup.end)
        for pool in self._pools:
            self.callback(pool.close)
        return self

    def run(self) -> LocateResult:
        """Run all iterations and return the job's result."""
        for number, feed in enumerate(feeds_of(self.context, self.setup, self.suspect, self.reference)):
            align_sides(self.context, self.setup, feed)
            feeds = self._fitted(feed)
            if number == 0 and isinstance(self.reference, SavedSide):
                read_dump(self.context, self.suspect, self.reference, feeds[0])
            if number == 0:
                self._align_again(feed, feeds)
                self._begin_ledger()
            if self.ledger is not None:
                self.ledger.fed(feeds[0])
            if number == 0 and wanted(self.spec.compare, self.suspect, self.reference):
                self._look_at_executed(feeds[0], "")
            with explained(self.suspect.hint):
                self._iteration(number, feeds)
            if number == 0 and self._fused_only(feeds):
                self._look_at_executed(feeds[0], "no node is at fault by itself, yet the outputs differ: ")
                self._iteration(number, feeds)
            quantised = self.ledger is not None and can_tell(self.spec.compare, self.suspect)
            if number == 0 and quantised and not self.findings.any():
                self._loses_by_fusing(feeds, _FUSED)
            if number == 0 and self._holds_codes and not self.findings.any():
                from layerwise._tool.debugtools.locate.saturation import plain_saturation

                self.findings.saturates(plain_saturation(self.suspect, self.reference, feeds))
        return self._result()

    def _align_again(self, feed: Feed, feeds: tuple[Feed, Feed]) -> None:
        """Where tensors were paired though their values differ: hold what each is on the reference's tensors against
        these. Behind a fault that tells which belong together.
        """
        aligner = self.setup.aligner
        for _ in range(_ALIGNED_AGAIN):
            if aligner is None or not aligner.unsure():
                return
            plan, local = LocatePlan(self.suspect, self.reference, feeds, self._limits()), {}
            with plan.walk(0, feeds, self._pools, self.context.artifacts / "waiting") as walk:
                for met in walk:
                    if met.local is not None:
                        local[met.tensor] = fingerprint(met.local)
            for pool in self._pools:
                pool.close()
            if not aligner.again(feed, local):
                return

    def _begin_ledger(self) -> None:
        """Where a side holds tensors in few bits: of the suspect, have their stages paired with the reference's."""
        found = ledger_of(self.suspect, self.reference, self.setup.model)
        if found is not None and found.side is self.suspect:
            self.ledger = self.findings.ledger = found
            found.pair()
        elif found is not None:
            self._of_reference = self.findings.ledger_of_reference = found

    def _fitted(self, feed: Feed) -> tuple[Feed, Feed]:
        warn = self.context.warn
        theirs = self.reference.fit(feed, warn) if isinstance(self.reference, ModelSide) else {}
        return self.suspect.fit(feed, warn), theirs

    def _fused_only(self, feeds: tuple[Feed, Feed]) -> bool:
        """Whether only what onnxruntime makes of the graph can explain that the outputs differ."""
        if self.ledger is not None or self.findings.any() or not can_tell(self.spec.compare, self.suspect):
            return False
        if self._of_reference is not None:
            return self._loses_by_fusing(feeds, _FUSED_THERE)
        return plain_runs_differ(self.suspect, self.reference, feeds, 0)

    def _loses_by_fusing(self, feeds: tuple[Feed, Feed], why: str) -> bool:
        """Where all that few bits lose is explained: whether plain runs lose more than the graph unfused."""
        lost = lost_by_fusing(self.suspect, self.reference, feeds, self.findings.output_errors)
        self.findings.lost_by_fusing = f"{lost}: {why}" if lost else ""
        return bool(lost)

    def _look_at_executed(self, feed: Feed, why: str) -> None:
        folder, what = self.context.artifacts / "executed", "optimised graph"
        if self.suspect.spec.kind == "trt":
            what = "engine"
            self._look_into_engine(feed, folder)
        else:
            observe_executed(self.suspect, feed, folder)
            if self.ledger is not None:
                self.ledger.see_executed()
        counts = f"{len(self.suspect.made)} of {len(self.suspect.model.cut.maker)} tensors"
        name = shown(self.suspect.name, 80)
        self.context.log(f"{why}looking at the {what} of {name}, which makes {counts}")
        for pool in self._pools:
            pool.close()  # of another plan's segments
        self._plan = None

    def _look_into_engine(self, feed: Feed, folder: Path) -> None:
        """Have the suspect observed as its engine runs; rows of table `engine`."""
        from layerwise._tool.debugtools.engines.node_map.trace import EngineTrace

        trace = EngineTrace(self.suspect, folder, self._limits().waiting)
        self.callback(trace.close)
        self.suspect.observe(trace.begin(feed))
        self.findings.engine = trace.layers
        for layer in trace.layers:
            self.context.row("engine", layer)
        nodes = {i for layer in trace.layers for i in layer.nodes}
        by_value = f", {len(trace.by_value)} by their values" if trace.by_value else ""
        self.context.log(
            f"the engine has {len(trace.layers)} layers for {len(nodes)} of {len(self.suspect.model.cut.nodes)} nodes; "
            f"{len(trace.tensors)} tensors were recognised{by_value}, {len(trace.unknown)} were not"
        )

    def _iteration(self, number: int, feeds: tuple[Feed, Feed]) -> None:
        if self._plan is None:
            self._plan = LocatePlan(self.suspect, self.reference, feeds, self._limits())
        plan, mode = self._plan, self._mode()
        with ExitStack() as stack:
            threads = idle_threads() if self.spec.compare.memory_budget is None else 0
            ahead = stack.enter_context(ComparingAhead(self._comparer, threads))
            spill = self.context.artifacts / "waiting"
            walk = stack.enter_context(plan.walk(number, feeds, self._pools, spill, ahead.look if threads else None))
            truths = self._truths(number, feeds, stack) if self.spec.compare.truth else None
            cut = self.suspect.model.cut
            reader = Reader(
                number, self._comparer, ahead.compared, plan, walk, cut, mode, self.spec.bodies, truths, self.ledger,
                formats_of(self._of_reference, plan.points.values()), self._saturation(plan, walk, feeds[1]),
            )  # fmt: skip
            for done, met in enumerate(walk, 1):
                row, suspect = reader.read(met)
                if row.key not in self._done:
                    self.context.row("layers", row)
                self.findings.add(row, suspect)
                self.context.progress(done, len(plan.points), "tensors", met.name)
        self.findings.walked(walk.stopped, len(plan.points))
        self.findings.saturates(reader.saturated)
        for pool in self._pools:
            pool.forget()

    def _saturation(
        self, plan: LocatePlan, walk: Walk, feed: Feed
    ) -> Callable[[Met, float, float], Saturated | None] | None:
        """What tells whether kernels saturate; None where no side multiplies codes. feed: the reference's."""
        if not self._holds_codes:
            return None
        from layerwise._tool.debugtools.locate.saturation import SaturationTests

        names = {tensor: point.name for tensor, point in plan.points.items()}
        tests = SaturationTests(self.suspect, self.reference, names)
        return lambda met, error, noise: tests.told(met, walk, error, noise, feed)

    @cached_property
    def _holds_codes(self) -> bool:
        return holds_codes(self.suspect) or holds_codes(self.reference)

    def _truths(self, number: int, feeds: tuple[Feed, Feed], stack: ExitStack) -> LocalTruths:
        """The truths of one iteration."""
        assert self._plan is not None
        store = ArrayStore(self._limits().waiting // 2, self.context.artifacts / "truth")
        stack.callback(store.close)
        names = [point.name for point in self._plan.points.values()]
        truths = Truths(self.suspect, self.reference, names, store, lambda array: array)
        truths.begin(number, feeds)
        given = {self.reference.own(self.suspect.common(own)): array for own, array in feeds[0].items()}
        return LocalTruths(truths, given)

    def _limits(self) -> Limits:
        """A third of a comparison's segments under a budget: regions are run beside both sides."""
        budget = self.spec.compare.memory_budget
        usual = usual_segment([self.suspect.spec, self.reference.spec])
        allowed = limits(budget, usual=usual)
        return allowed if budget is None else replace(allowed, segment=max(1, allowed.segment // 3))

    def _mode(self) -> str:
        if isinstance(self.reference, SavedSide):
            return "saved"
        return "executed" if self.suspect.observed.executed else "every"

    def _result(self) -> LocateResult:
        over = over_budget(self.spec.compare.memory_budget, "a single node or the process itself")
        for text in filter(None, [*self.findings.unmatched(), over]):
            self.context.warn(text)
        for each in self.ledger.rows() if self.ledger is not None else ():
            self.context.row("quantised", each)
        rows = self.findings.rows(self.spec.top)
        for row in rows:
            self.context.row("suspects", row)
        seconds = time.perf_counter() - self.started
        return self.findings.result(rows, seconds, [side.name for side in self.setup.sides])


def two_sides(sides: list[Side]) -> tuple[ModelSide, Side]:
    """The suspect and the reference. UsageError if they are not two sides of which the first runs a model."""
    if len(sides) != 2:
        raise UsageError(
            f"locating takes two sides, a suspect and a reference; there are {len(sides)}: "
            "give --reference-model GOOD.onnx, --load-outputs golden.json (of one runner) or a second runner"
        )
    if not isinstance(sides[0], ModelSide):
        raise UsageError("the first side, the suspect, must run a model: give a runner such as --onnxrt")
    return sides[0], sides[1]


def other_model(suspect: ModelSide, reference: Side) -> ModelSide | None:
    """The reference, if it is another model than the suspect's."""
    return reference if isinstance(reference, ModelSide) and reference.model is not suspect.model else None
