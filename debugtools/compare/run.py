"""One comparison from beginning to end: sessions, iterations, rows, files, the result."""

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import msgspec
from numpy.typing import NDArray

from backends.errors import UsageError
from backends.feeds import make_feeds
from backends.results import IterationResult
from backends.tensors import dtype_name
from backends.text import shown
from debugtools.compare.canary import Canary
from debugtools.compare.comparing import Comparer
from debugtools.compare.layers import Places, Row
from debugtools.compare.marks import any_marks, marked_tensors, shown_outputs
from debugtools.compare.memory import give_back, keep_nothing_back, limits, peak, resident
from debugtools.compare.metrics import Comparison
from debugtools.compare.models import Model
from debugtools.compare.observe import Observer, Plan, make_plan
from debugtools.compare.outcome import Key, Outcome, row_key
from debugtools.compare.plots import Plots
from debugtools.compare.saving import Accuracy, Savers, check_average
from debugtools.compare.sequence import in_sequence
from debugtools.compare.sides import ModelSide, SavedSide, Side, make_sides
from debugtools.compare.spec import CompareSpec
from debugtools.compare.stream import observing
from debugtools.compare.validate import Validator

if TYPE_CHECKING:
    from backends.jobs.context import JobContext

Array = NDArray[Any]
Feed = Mapping[str, Array]
Pair = tuple[int, int]


class _Enough(Exception):
    """The first failure was met, and the user wants no more."""


class ComparisonRun:
    """Holds what lives as long as the comparison. A context manager: leaving it closes sessions and files."""

    def __init__(self, context: "JobContext", spec: CompareSpec) -> None:
        self.context, self.spec = context, spec
        self.started = time.perf_counter()
        self._stack = ExitStack()
        if not spec.runners:
            raise UsageError("there is nothing to run: name at least one runner, such as --onnxrt")
        check_average(spec)
        if spec.memory_budget is not None:
            keep_nothing_back()
        path = spec.model or next((runner.model for runner in spec.runners if runner.model), None)
        self.model = Model(path, spec.model_options) if path else None
        self.sides = make_sides(spec, self.model)
        self.pairs: list[Pair] = [(i, i + 1) for i in range(len(self.sides) - 1)]
        self.model_sides = [side for side in self.sides if isinstance(side, ModelSide)]
        asked = spec.observe in ("every", "executed")
        self.observing = any_marks(spec.marks) or asked
        everything = asked and not any_marks(spec.marks)
        self.marks = msgspec.structs.replace(spec.marks, everything=True) if everything else spec.marks
        self.metrics = ["script"] if spec.compare_script else list(spec.metrics)
        self.outcome = Outcome([side.name for side in self.sides], self.pairs, self.metrics)
        self.accuracy = Accuracy(self.metrics, spec.check_average)
        self.canary = Canary(spec.metrics)
        self.plots = Plots(spec)
        self.validator = Validator(context) if spec.validate else None
        self.done: dict[Key, Row] = {}
        self.plan: Plan | None = None

    def __enter__(self) -> Self:
        for side in self.sides:
            self._stack.callback(side.close)
        self.savers = self._stack.enter_context(Savers(self.spec, self.sides))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    # The course of it

    def run(self) -> dict[str, Any]:
        """Run all iterations and return the job's result."""
        self._open_sessions()
        self.places = Places(self.model.cut if self.model and self.pairs else None)
        self.comparer = Comparer(self.spec, self.sides, self.places, self._emit)
        self._resume()
        keep = self.spec.memory_budget is None and self._count() != 1
        self.observer = Observer(self.sides, self.pairs, keep, self.context.artifacts / "waiting")
        self._stack.callback(self.observer.close)
        try:
            for number, (feed, results) in enumerate(self._plain_results()):
                self._iteration(number, feed, results)
        except _Enough:
            self.context.log("stopped at the first failure")
        return self._result()

    def _open_sessions(self) -> None:
        """Open the plain runs' sessions side by side, unless memory counts for more."""
        spec = self.spec
        self.one_at_a_time = spec.memory_budget is not None or (self.observing and self._count() == 1)
        if not self.one_at_a_time and not spec.sequential and len(self.model_sides) > 1:
            with ThreadPoolExecutor(len(self.model_sides)) as pool:
                list(pool.map(lambda side: side.open(), self.model_sides))

    def _tell_fallbacks(self, side: ModelSide) -> None:
        fallen = side.runner.fallbacks()
        if fallen:
            told = ", ".join(fallen[:10]) + (f" and {len(fallen) - 10} more" if len(fallen) > 10 else "")
            self.context.warn(f"{shown(side.name, 80)}: {len(fallen)} nodes run on another provider: {told}")

    def _count(self) -> int | None:
        """How many iterations there will be, None if only the source of the inputs knows."""
        return self.spec.feeds.iterations or (None if self.spec.feeds.files or self.spec.feeds.script else 1)

    def _feeds(self) -> Iterator[Feed]:
        saved = [side.iterations for side in self.sides if isinstance(side, SavedSide)]
        if not self.model_sides:
            return iter([{}] * min(saved))
        own = next((side for side in self.model_sides if not side.own_model), self.model_sides[0])
        feeds = iter(make_feeds(self.spec.feeds, own.runner.inputs, self.context.warn))
        return islice(feeds, min(saved)) if saved else feeds

    def _plain_results(self) -> Iterator[tuple[Feed, list[IterationResult]]]:
        if self.spec.sequential:
            folder = self.context.artifacts / "results"
            yield from in_sequence(self.sides, self._feeds(), self._plain, folder)
            return
        for number, feed in enumerate(self._feeds()):
            yield feed, [self._plain(side, number, feed) for side in self.sides]

    def _plain(self, side: Side, number: int, feed: Feed) -> IterationResult:
        if not isinstance(side, ModelSide):
            return side.plain(number, feed)
        fitted = side.fit(feed, self.context.warn)
        if number == 0:
            self._tell_fallbacks(side)
            for _ in range(self.spec.warm_up):
                side.runner.infer(fitted)
        result = side.plain(number, fitted)
        if self.one_at_a_time:
            side.close()
        return result

    # One iteration

    def _iteration(self, number: int, feed: Feed, results: list[IterationResult]) -> None:
        self.outcome.iteration(number)
        self.comparer.begin(row for row in self.done.values() if row["iteration"] == number)
        self.savers.feed(number, feed)
        self.context.row("inputs", {"iteration": number, "inputs": _described(feed)})
        for side, result in zip(self.sides, results, strict=True):
            self._tell_run(number, side, result)
        if self.observing and self.model:
            self._observed(number, feed, results)
        else:
            self._plain_rows(number, results, [])
        for side, result in zip(self.sides, results, strict=True):
            self.savers.finish(number, side.index, result.runtime)
        if number == 0:
            self._warn_unknown(results)

    def _warn_unknown(self, results: Sequence[IterationResult]) -> None:
        """Tolerances for tensors that are not compared are mostly typing errors."""
        names = {name for result in results for name in result.outputs}
        names.update(name for wanted in (self.plan.wanted.values() if self.plan else ()) for name in wanted)
        for text in self.comparer.tolerances.unknown_names(names):
            self.context.warn(text)

    def _tell_run(self, number: int, side: Side, result: IterationResult) -> None:
        row = {"iteration": number, "runner": side.name, "index": side.index, "runtime": result.runtime}
        self.context.row("runs", row | {"outputs": _described(result.outputs)})
        for name in shown_outputs(self.spec.marks, result.outputs):
            if isinstance(side, ModelSide) and (self.savers.outputs_wanted or self.validator):
                self.savers.output(number, side.index, side.own(name), result.outputs[name])
                self._validate(number, side, name, result.outputs[name])

    def _validate(self, number: int, side: Side, name: str, array: Array) -> None:
        if self.validator and not self.validator.check(number, side.name, name, array) and self.spec.fail_fast:
            raise _Enough

    def _plain_rows(self, number: int, results: Sequence[IterationResult], known: Sequence[str]) -> None:
        """Rows of the graph outputs, from the plain runs."""
        processed = [
            self.comparer.postprocess.outputs(result.outputs, side.name, result.runtime)
            if self.comparer.postprocess
            else result.outputs
            for side, result in zip(self.sides, results, strict=True)
        ]
        for pair in self.pairs:
            first, second = processed[pair[0]], processed[pair[1]]
            self.comparer.begin_pair(pair, first, second)
            names = [name for name in shown_outputs(self.spec.marks, first) if name in second]
            if not names:
                raise UsageError(_nothing_in_common(self.sides, pair, first, second))
            for name in names:
                if name not in known and (number, pair, name) not in self.done:
                    mode = "saved" if self._saved(pair) else "plain"
                    self.comparer.row(number, pair, name, mode, first[name], second[name], ready=True)

    def _mode(self, pair: Pair) -> str:
        if self._saved(pair):
            return "saved"
        return "executed" if self.spec.observe == "executed" else "every"

    def _saved(self, pair: Pair) -> bool:
        return any(isinstance(self.sides[i], SavedSide) for i in pair)

    def _observed(self, number: int, feed: Feed, results: list[IterationResult]) -> None:
        """Rows of all marked tensors; those of graph outputs come from the plain runs."""
        assert self.model is not None
        feeds = {side.index: side.fit(feed, self.context.warn) for side in self.model_sides}
        if self.plan is None:
            self.plan = self._make_plan(feed, feeds)
        plan, told = self.plan, set()
        total = plan.compared(self.pairs)

        def tap(index: int, name: str, array: Array) -> None:
            side = self.sides[index]
            if name not in results[index].outputs and name in plan.shown:
                self.savers.output(number, index, side.own(name), array)
                self._validate(number, side, name, array)

        waiting = limits(self.spec.memory_budget, resident()).waiting
        for done, (pair, name, a, b) in enumerate(self.observer.run(plan, number, feeds, waiting, tap), 1):
            outputs = [results[i].outputs for i in pair]
            if all(name in found for found in outputs):
                moved = self._canary(pair, name, (outputs[0][name], outputs[1][name]), (a, b))
                if name in plan.shown:
                    self._plain_row(number, pair, name, outputs, moved, (a, b))
                    told.add((pair, name))
            elif (number, pair, name) not in self.done:
                self.comparer.row(number, pair, name, self._mode(pair), a, b)
            self.context.progress(done, total, "tensors", name)
        self._rest(number, results, told)

    def _executed(self, feeds: Mapping[int, Feed]) -> None:
        """Let every onnxruntime side be observed in the graph that it really runs."""
        from debugtools.compare.executed import executed_graph, original_prints

        prints: dict[int, Any] = {}
        for side in self.model_sides:
            if side.spec.kind != "onnxrt":
                continue
            feed = feeds[side.index]
            if id(side.model) not in prints:
                prints[id(side.model)] = original_prints(side, feed)
            folder = self.context.artifacts / "executed"
            side.graph = executed_graph(side, folder, prints[id(side.model)], feed)
            counts = f"{len(side.made)} of the model's {len(side.model.cut.maker)} tensors"
            self.context.log(f"{shown(side.name, 80)} really makes {counts}; the rest is fused away")

    def _tell_unfused(self) -> None:
        """Observed unfused, sides that differ in nothing but their optimisation do not differ at all."""
        for first, second in ((self.sides[a], self.sides[b]) for a, b in self.pairs):
            if not (isinstance(first, ModelSide) and isinstance(second, ModelSide)) or first.spec == second.spec:
                continue
            if first.model is second.model and observing(first.spec) == observing(second.spec):
                self.context.warn(
                    "layers are observed unfused, where these runners do not differ; only their outputs can. "
                    "To see what optimisation does to the layers, observe the executed graphs"
                )

    def _make_plan(self, feed: Feed, feeds: Mapping[int, Feed]) -> Plan:
        assert self.model is not None
        if self.spec.observe == "executed":
            self._executed(feeds)
        else:
            self._tell_unfused()
        names = marked_tensors(self.marks, self.model.cut)
        if self.spec.memory_budget is not None:
            give_back()
        shapes = {name: array.shape for name, array in feed.items()}
        segment = limits(self.spec.memory_budget, resident()).segment
        outputs = [name for name in self.model.cut.outputs if name in self.model.cut.maker]
        return make_plan(self.sides, names, outputs, shapes, segment)

    def _canary(self, pair: Pair, name: str, plain: tuple[Array, Array], observed: tuple[Array, Array]) -> bool:
        """True if observing moved the output on a side of the pair."""
        moved = False
        depth = self.places.place(name).depth
        for index, before, now in zip(pair, plain, observed, strict=True):
            side = self.sides[index]
            if isinstance(side, ModelSide):
                moved |= not self.canary.check(name, side.name, before, now, depth)
        return moved

    def _plain_row(
        self,
        number: int,
        pair: Pair,
        name: str,
        outputs: Sequence[Mapping[str, Array]],
        moved: bool,
        observed: tuple[Array, Array],
    ) -> None:
        if (number, pair, name) in self.done:
            return
        mode = "saved" if self._saved(pair) else "plain"
        result = self.comparer.row(number, pair, name, mode, outputs[0][name], outputs[1][name])
        if moved and not self.comparer.postprocess:
            self.canary.verdicts(name, result.passed, observed, result.rule)

    def _rest(self, number: int, results: Sequence[IterationResult], told: set[tuple[Pair, str]]) -> None:
        """Graph outputs that were not observed (such as a graph input handed through)."""
        for pair in self.pairs:
            first, second = results[pair[0]].outputs, results[pair[1]].outputs
            for name in shown_outputs(self.spec.marks, first):
                if name in second and (pair, name) not in told and (number, pair, name) not in self.done:
                    self.comparer.row(number, pair, name, "plain", first[name], second[name])

    # Rows and the result

    def _emit(self, row: Row, result: Comparison, a: Array, b: Array) -> None:
        self.context.row("layers", row)
        self.outcome.add(row)
        first, second = (self.sides[i].name for i in row["pair"])
        if self.spec.save_accuracy or self.spec.check_average:
            self.accuracy.add(row["iteration"], (first, second), row["tensor"], result)
        self.plots.draw(row, (first, second), a, b)
        if self.spec.fail_fast and result.passed is False:
            raise _Enough

    def _resume(self) -> None:
        """Rows that an earlier attempt of the job finished are not made again."""
        if self.spec.save_accuracy or self.spec.check_average:
            return
        for row in self.context.previous_rows("layers"):
            self.done[row_key(row)] = row
            self.outcome.add(row)

    def _peak(self) -> int:
        used, budget = peak(), self.spec.memory_budget
        if budget is not None and used > 1.1 * budget:
            self.context.warn(
                f"the memory budget of {_megabytes(budget)} was not kept: {_megabytes(used)} were used, "
                "which the plain run or a single node needs"
            )
        return used

    def _result(self) -> dict[str, Any]:
        self.accuracy_results = self.accuracy.results()
        if self.spec.save_accuracy:
            self.accuracy_results.save(self.spec.save_accuracy)
        result = self.outcome.result(time.perf_counter() - self.started)
        if self.spec.check_average:
            result["passed"] = self.accuracy_results.passed
        if self.validator:
            result["valid"] = self.validator.valid
            result["passed"] = result["passed"] and self.validator.valid
        result["peak_memory"] = self._peak()
        result["canary"] = self.canary.report()
        result["skipped"] = self.plan.skipped if self.plan else []
        result["unmatched"] = self.plan.unmatched if self.plan else []
        return result


def _megabytes(count: int) -> str:
    return f"{count / 1e6:.0f} MB"


def _described(arrays: Mapping[str, Array]) -> list[dict[str, Any]]:
    stored = getattr(arrays, "described", None)
    if stored is not None:
        found: list[dict[str, Any]] = stored()
        return found
    return [{"name": name, "dtype": dtype_name(array), "shape": list(array.shape)} for name, array in arrays.items()]


def _nothing_in_common(
    sides: Sequence[Side], pair: Pair, first: Mapping[str, Array], second: Mapping[str, Array]
) -> str:
    lists = [", ".join(shown(name, 60) for name in list(found)[:10]) or "none" for found in (first, second)]
    return (
        f"no outputs in common: {shown(sides[pair[0]].name, 80)} gives {lists[0]}; "
        f"{shown(sides[pair[1]].name, 80)} gives {lists[1]}. Names must match exactly; map others with --rename"
    )
