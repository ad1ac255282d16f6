"""One comparison from beginning to end: sessions, iterations, files, the result."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from layerwise._tool.backends.arrays import Array, Feed
from layerwise._tool.backends.feeds.sources import make_feeds
from layerwise._tool.backends.jobs.journal.earlier_attempts import typed
from layerwise._tool.backends.results.inference import IterationResult
from layerwise._tool.backends.tensors import dtype_name
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.aligning.when import align_sides, strange_files
from layerwise._tool.debugtools.compare.arithmetic.comparison import Comparison
from layerwise._tool.debugtools.compare.conclusion import conclusion
from layerwise._tool.debugtools.compare.memory import over_budget, peak
from layerwise._tool.debugtools.compare.observing.iteration import Observer
from layerwise._tool.debugtools.compare.observing.store import in_sequence
from layerwise._tool.debugtools.compare.pairing.counterparts import RenamedOutputs
from layerwise._tool.debugtools.compare.plots import Plots
from layerwise._tool.debugtools.compare.quantised.when import Saturation, quantised_pairs
from layerwise._tool.debugtools.compare.result import CompareResult
from layerwise._tool.debugtools.compare.rows import InputsRow, LayerRow, NotCompared, RunRow, TensorInfo
from layerwise._tool.debugtools.compare.sides.feeds import common_feeds, same_feeds
from layerwise._tool.debugtools.compare.sides.marks import idle_exclusions, shown_outputs
from layerwise._tool.debugtools.compare.sides.notes import RunnerNotes
from layerwise._tool.debugtools.compare.sides.setup import Setup
from layerwise._tool.debugtools.compare.sides.side import ModelSide, Side
from layerwise._tool.debugtools.compare.sides.torch import TorchSide, example_feeds, tells_inputs
from layerwise._tool.debugtools.compare.table.comparison import Enough, RowContext, Validator
from layerwise._tool.debugtools.compare.table.layer_rows import ObservedRows
from layerwise._tool.debugtools.compare.table.output_rows import plain_rows
from layerwise._tool.debugtools.compare.table.pairs import Comparer, Listener
from layerwise._tool.debugtools.compare.table.pieces import settled, tell_dumps, tell_joined
from layerwise._tool.debugtools.compare.table.places import Places
from layerwise._tool.debugtools.compare.table.saving import Outcome, Savers, check_average
from layerwise._tool.debugtools.compare.table.sink import RowSink
from layerwise._tool.debugtools.compare.truth.pairs import PairTruths

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext
    from layerwise._tool.backends.tensors import TensorInfo as ModelTensor
    from layerwise._tool.debugtools.compare.observing.on_device import OnDevice
    from layerwise._tool.debugtools.compare.quantised.pairs import QuantisedPairs


def run_comparison(context: "JobContext", setup: Setup, only: Listener | None = None) -> CompareResult:
    """Run all iterations of a comparison and return the job's result; the setup is closed.

    only: takes the rows in place of the journal and the files; it may raise Enough.
    """
    with ExitStack() as stack:
        stack.callback(setup.end)
        return ComparisonRun(context, setup, stack, only).run()


class ComparisonRun:
    """One comparison; what it opens is closed with the stack."""

    def __init__(self, context: "JobContext", setup: Setup, stack: ExitStack, only: Listener | None = None) -> None:
        spec = setup.spec
        self.context, self.spec, self.setup, self._stack = context, spec, setup, stack
        self.started = time.perf_counter()
        self._notes = RunnerNotes(context)
        check_average(spec)
        self.sides, self.model_sides, self.pairs = setup.sides, setup.model_sides, setup.pairs
        metrics = ["script"] if spec.compare_script else list(spec.metrics)
        self._quantised: QuantisedPairs | None = None
        self._saturation = Saturation(self.sides)
        self.outcome = Outcome([side.name for side in self.sides], self.pairs, metrics, spec.feeds.iterations == 0)
        savers = stack.enter_context(Savers(spec, self.sides))
        validator = Validator(context) if spec.validate else None
        self.shared = RowContext(context, spec, setup.model, self.sides, self.pairs, savers, validator)
        device = self._device() if setup.observing else None
        other = next((side for side in self.model_sides if side.model is not setup.model), None)
        places = Places(setup.model if self.pairs else None, setup.whole_graph, other)
        plots = stack.enter_context(Plots(spec))
        self.sink = RowSink(context, spec, self.sides, self.outcome, self.shared.left_out, plots, self._host)
        self._may_begin = setup.observing and only is None
        self.comparer = Comparer(spec, self.sides, places, only or self._emit, device, self._saturation.ask)
        keep = spec.memory_budget is None and setup.count() != 1
        observer = Observer(self.sides, self.pairs, keep, context.artifacts / "waiting", device)
        stack.callback(observer.close)
        folder = context.artifacts / "truth"
        truths = PairTruths(spec.truth, self.sides, self.pairs, folder, lambda array: self.comparer.arrays(array)[0])
        self.truths = stack.enter_context(truths)
        self._turns = observer.turns
        self.observed = ObservedRows(self.shared, setup.marks, self.comparer, observer, self.truths)
        stack.callback(self.observed.close)

    def run(self) -> CompareResult:
        """Run all iterations and return the job's result."""
        self._resume()
        try:
            for number, (feed, results) in enumerate(self._plain_results()):
                self._iteration(number, feed, results)
        except Enough:
            self.context.log("stopped at the first failure")
            self.shared.savers.finish_all(self._mode)
        return self._result()

    def _mode(self, index: int) -> str:
        """How layers of a side are observed; "" if none are."""
        side = self.sides[index]
        return self.shared.observed(side) if self.observed.plan and isinstance(side, ModelSide) else ""

    def _device(self) -> "OnDevice | None":
        """How layers are compared on the GPU; None on machines and for runners without one, nothing loaded there."""
        if all(name.lower() == "cpu" for side in self.model_sides for name in side.spec.providers):
            return None
        from layerwise._tool.debugtools.compare.observing.on_device import on_device

        device = on_device(self.spec, self.sides, self.pairs, self.context.log)
        if device is not None:
            self._stack.callback(device.close)
        return device

    def _feeds(self) -> Iterator[Feed]:
        own = next((side for side in self.model_sides if not side.own_model), next(iter(self.model_sides), None))
        feeds = None
        if own is not None:
            similar = not self.spec.strict_names
            made = example_feeds(self.spec.feeds, self.sides, own, similar, self.context)
            if made is None:
                spec = self.setup.plan_feeds(self.context, own)
                made = iter(make_feeds(spec, self._inputs(own), self.context.warn, similar=similar))
            feeds = same_feeds(self.context, self.spec.feeds, made)
        for feed in common_feeds(self.sides, feeds, self._uneven):
            if self.setup.observing or strange_files(self.setup):
                self.setup.check_opened()
                align_sides(self.context, self.setup, feed)
                if self.setup.observing:
                    self.setup.open_next()
            self._begin_quantised(feed)
            yield feed

    def _inputs(self, own: ModelSide) -> "Sequence[ModelTensor] | None":
        """The inputs that feeds are made for: as the graph declares them in full, or else as its session has them; None
        of a module that does not tell.
        """
        if not tells_inputs(own):
            return None
        if self.setup.observing and own.spec.kind == "onnxrt":  # what goes before the plain runs need not wait for them
            declared = own.model.inputs
            if all(info.shape and all(isinstance(dim, int) and dim > 0 for dim in info.shape) for info in declared):
                return declared
        return own.runner.inputs

    def _begin_quantised(self, feed: Feed) -> None:
        """Where a side holds tensors in few bits: have them paired with what they hold."""
        if self._quantised is None:
            unfused = self.setup.observing and all(self.shared.layer_mode(pair) == "every" for pair in self.pairs)
            self._quantised = quantised_pairs(self.setup, self.context.artifacts / "rounded", unfused=unfused)
            if self._quantised is not None:
                self._stack.callback(self._quantised.close)
                self.comparer.settles = self._quantised.settles
        if self._quantised is not None:
            self._quantised.begin(feed)

    def _uneven(self, done: int, text: str) -> None:
        self.shared.left_out.add(NotCompared("", "iterations", text, iteration=done))

    def _plain_results(self) -> Iterator[tuple[Feed, list[IterationResult]]]:
        if self.spec.sequential:
            folder = self.context.artifacts / "results"
            yield from in_sequence(self.sides, self._feeds(), self._plain, folder)
            return
        for number, feed in enumerate(self._feeds()):
            if number == 0 and self._may_begin and self._quantised is None:
                self._begin_comparing(number, feed)
                if self.observed.begin(feed):
                    self.sink.hold()
            yield feed, [self._plain(side, number, feed) for side in self.sides]

    def _plain(self, side: Side, number: int, feed: Feed) -> IterationResult:
        if not isinstance(side, ModelSide):
            return side.plain(number, feed)
        fitted = side.fit(feed, self.context.warn)
        if self.sink.holds:
            self.observed.meanwhile(side.opening())
        if number == 0:
            self._notes.fallbacks(side)
            if side.session_owner is not None and self.comparer.places.any_random():
                side.session_owner = None  # one session draws other numbers in its next run
        runner = side.runner
        with self._turns.alone():
            for _ in range(self.spec.warm_up if number == 0 else 0):
                runner.infer(fitted)
            result = side.plain(number, fitted)
        self._notes.builds(side)
        if self.setup.one_at_a_time and self.setup.last_use(side):
            (side.session_owner or side).close()
        return result

    def _iteration(self, number: int, feed: Feed, results: list[IterationResult]) -> None:
        shared = self.shared
        if number == 0:
            tell_dumps(shared)
        results = settled(shared, number, feed, results)
        self.outcome.iteration(number)
        if not self.sink.holds:
            self._begin_comparing(number, feed)
        shared.savers.feed(number, feed)
        self.context.row("inputs", InputsRow(number, _described(feed)))
        for side, result in zip(self.sides, results, strict=True):
            self._tell_run(number, side, result)
        self.sink.release()
        if self.setup.observing:
            self.observed.iteration(number, feed, results)
        else:
            plain_rows(shared, self.comparer, number, results)
        for side, result in zip(self.sides, results, strict=True):
            shared.savers.finish(number, side.index, result.runtime, self._mode(side.index))
        tell_joined(shared)
        if number == 0:
            self._warn_unknown(results)

    def _begin_comparing(self, number: int, feed: Feed) -> None:
        self.comparer.begin((row for row in self.shared.done.values() if row.iteration == number), feed)

    def _tell_run(self, number: int, side: Side, result: IterationResult) -> None:
        outputs = _described(result.outputs)
        self.context.row("runs", RunRow(number, side.name, side.index, result.runtime, outputs))
        plain = isinstance(side, ModelSide) and not (self.setup.observing and self.shared.observed(side) == "marked")
        if plain or (self.shared.validator and not isinstance(side, ModelSide)):
            for name in shown_outputs(self.spec.marks, result.outputs):
                self.shared.keep(number, side, name, result.outputs[name])

    def _warn_unknown(self, results: Sequence[IterationResult]) -> None:
        """Tolerances and exclusions for tensors that are not compared are mostly typing errors."""
        names = {name for result in results for name in result.outputs}
        plan = self.observed.plan
        names.update(name for wanted in (plan.wanted.values() if plan else ()) for name in wanted)
        idle = [] if self.setup.observing else idle_exclusions(self.spec.marks, names)
        for text in (*self.comparer.tolerances.unknown_names(names), *idle):
            self.context.warn(text)

    def _emit(self, row: LayerRow, result: Comparison, a: Array, b: Array) -> None:
        row = self.truths.told(row)
        if self._quantised is not None:
            row = self._quantised.held(row, *self.comparer.arrays(a, b))
        self.sink.take(row, result, a, b)

    def _host(self, *tensors: Array) -> tuple[Array, ...]:
        return self.comparer.arrays(*tensors)

    def _resume(self) -> None:
        """Rows that an earlier attempt of the job finished are not made again, unless files are made with them."""
        for row in typed(self.context.previous_rows("layers"), LayerRow):
            self.shared.done[row.key] = row
            self.sink.count(row)

    def _result(self) -> CompareResult:
        accuracy = self.sink.accuracy.results()
        if self.spec.save_accuracy:
            accuracy.save(self.spec.save_accuracy)
        result = self.outcome.result(time.perf_counter() - self.started)
        if self.spec.check_average:
            result.averages = self.sink.accuracy.averages()
            result.passed = accuracy.passed and not self.outcome.bare()
        if self.shared.validator:
            result.valid = self.shared.validator.verdict()
            result.passed = result.passed and result.valid
        result.peak_memory = peak()
        if text := over_budget(self.spec.memory_budget, "the plain run or a single node"):
            self.context.warn(text)
        result.truth = self.outcome.truth.result()
        result.canary = self.observed.canary.report()
        plan = self.observed.plan
        result.skipped = plan.skipped if plan else []
        result.unmatched = plan.unmatched if plan else []
        result.nothing_compared, result.not_compared = self._nothing_compared(), list(self.shared.left_out)
        if self._quantised is not None:
            self._quantised.tell(self.context, result)
        result.saturated = self._saturation.first
        for side in self.sides:
            if isinstance(side, TorchSide) and side.limit:
                self.context.warn(f"{shown(side.name, 80)}: {side.limit}")
        result.conclusion = conclusion(result, self.spec)
        return result

    def _nothing_compared(self) -> list[str]:
        """Tell what was not compared, and return a sentence for each pair that has no verdict therefore."""
        left, bare = self.shared.left_out, self.outcome.bare()
        for text in left.warnings() if len(bare) < len(self.pairs) else ():
            self.context.warn(text)
        nothing = [left.nothing([side.name for side in self.sides], pair) for pair in bare]
        for text in nothing:
            self.context.log(text, "error")
        return nothing


def _described(arrays: Mapping[str, Array]) -> list[TensorInfo]:
    """Names, types and shapes; those of a file without reading its arrays."""
    kinds = arrays.described() if isinstance(arrays, RenamedOutputs) else _kinds(arrays)
    return [TensorInfo(*kind) for kind in kinds]


def _kinds(arrays: Mapping[str, Array]) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    for name, array in arrays.items():
        yield name, dtype_name(array), array.shape
