"""Rows of graph outputs, from the plain runs, and of all marked tensors, streamed."""

from collections.abc import Container, Mapping, Sequence, Set
from functools import partial

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.names import similar_name
from layerwise._tool.backends.results.inference import IterationResult
from layerwise._tool.backends.runner import element_of
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.memory import Limits, give_back, limits, resident, usual_segment
from layerwise._tool.debugtools.compare.observing.canary import Canary
from layerwise._tool.debugtools.compare.observing.iteration import (
    ObservationPlan,
    Observer,
    check_budget,
    make_plan,
    markable,
)
from layerwise._tool.debugtools.compare.observing.run_ahead import Ahead, pair_size
from layerwise._tool.debugtools.compare.pairing.counterparts import Counterparts, RenamedOutputs, counterparts
from layerwise._tool.debugtools.compare.pairing.left_out import NO_VALUE
from layerwise._tool.debugtools.compare.rows import NotCompared, Pair, Reason
from layerwise._tool.debugtools.compare.sides.marks import excluded, marked_tensors, shown_outputs
from layerwise._tool.debugtools.compare.sides.side import ModelSide, SavedSide, Side
from layerwise._tool.debugtools.compare.spec import MarkSpec
from layerwise._tool.debugtools.compare.table.comparison import Feed, RowContext
from layerwise._tool.debugtools.compare.table.missing import not_given, nothing_in_common
from layerwise._tool.debugtools.compare.table.pairs import Comparer
from layerwise._tool.debugtools.compare.table.pieces import but_refused, note_unclear
from layerwise._tool.debugtools.compare.truth.pairs import PairTruths

Outputs = Mapping[str, Array]


def plain_rows(shared: RowContext, comparer: Comparer, number: int, results: Sequence[IterationResult]) -> None:
    """Compare all outputs of one iteration. UsageError if a pair has none in common."""
    processed = [_processed(comparer, side, result) for side, result in zip(shared.sides, results, strict=True)]
    for pair in shared.pairs:
        first, second = processed[pair[0]], processed[pair[1]]
        if not shared.spec.strict_names:
            second = _similar(shared, pair, first, second)
        found = paired(shared, pair, first, second)
        if first and second and not found.any():
            raise UsageError(nothing_in_common(shared.sides, pair, first, second))
        comparer.begin_pair(pair, first, second)
        output_rows(shared, comparer, number, pair, (found, first, second), ready=True)


def _similar(shared: RowContext, pair: Pair, first: Outputs, second: Outputs) -> Outputs:
    """The second run's outputs by the names of the first's; a warning for each that is another name."""
    side, names = shared.sides[pair[1]], list(second)
    taken = {
        name: similar_name(name, names, place)
        for place, name in enumerate(first)
        if name not in side.declared and not element_of(name)
    }
    others = {name: own for name, own in taken.items() if own is not None and own != name}
    for name, own in others.items():
        shared.warn_once(
            f"Output names did not match exactly. Assuming {shown(side.name, 80)} output: {shown(own, 80)} corresponds "
            f"to output: {shown(name, 80)} (--strict-names does not)"
        )
        side.naming.add(name, own)
    side.declared = frozenset(map(side.common, side.declared))
    used = set(others.values())
    return RenamedOutputs(second, {name: name for name in names if name not in used} | others) if others else second


def paired(shared: RowContext, pair: Pair, first: Outputs, second: Outputs) -> Counterparts:
    """Which outputs of two runs belong together. What a user's function makes of them is known by its names alone."""
    declared = [frozenset[str]() if shared.spec.postprocess_script else shared.sides[i].declared for i in pair]
    return but_refused(shared, pair, counterparts(first, second, (declared[0], declared[1])))


def output_rows(
    shared: RowContext,
    comparer: Comparer,
    number: int,
    pair: Pair,
    outputs: tuple[Counterparts, Outputs, Outputs],
    *,
    ready: bool = False,
    observed: Container[str] | None = None,
) -> None:
    """Compare the outputs of one pair, and note what is not compared. ready: outputs are postprocessed.

    observed: tensors that are compared where they are observed, not here; None: nothing is observed.
    """
    found, first, second = outputs
    mode = shared.plain_mode(pair)
    chosen = frozenset(shown_outputs(shared.spec.marks, (*found.common, *(each.name for each in found.uneven))))
    for name in found.common:
        if observed is not None and name in observed:
            continue
        if name not in chosen:
            note_unwanted(shared, number, pair, name)
        elif (number, pair, name) not in shared.done:
            comparer.row(number, pair, name, mode, first[name], second[name], ready=ready)
    for each in found.uneven:
        if each.name in chosen and (number, pair, each.name) not in shared.done:
            comparer.uneven(number, pair, each, mode)
    _missing(shared, number, pair, found, observed)


def note_unwanted(shared: RowContext, number: int, pair: Pair, name: str) -> None:
    """Note an output that the user does not want to see."""
    reason: Reason = "excluded" if excluded(shared.spec.marks, name) else "not marked"
    shared.left_out.add(NotCompared(name, reason, f"{reason}, as asked for", pair, number))


def _missing(shared: RowContext, number: int, pair: Pair, found: Counterparts, observed: Container[str] | None) -> None:
    marks, left = shared.spec.marks, shared.left_out
    for names, having, lacking in zip(found.alone, pair, reversed(pair), strict=True):
        if observed is not None and isinstance(shared.sides[having], SavedSide):
            continue  # a file may hold layers that nobody marked
        for name in shown_outputs(marks, names):
            if observed is None or name not in observed:
                left.add(NotCompared(name, "no counterpart", not_given(shared.sides[lacking]), pair, number))
    for name in shown_outputs(marks, found.absent):
        left.add(NotCompared(name, "no value", NO_VALUE, pair, number))


def _processed(comparer: Comparer, side: Side, result: IterationResult) -> Mapping[str, Array]:
    if not comparer.postprocess:
        return result.outputs
    return comparer.postprocess.outputs(result.outputs, side.name, result.runtime)


class ObservedRows:
    """Observes iterations. The plan is made with the first one's shapes and serves all."""

    def __init__(
        self, shared: RowContext, marks: MarkSpec, comparer: Comparer, observer: Observer, truths: PairTruths
    ) -> None:
        self._truths = truths
        self._shared, self._marks, self._comparer, self._observer = shared, marks, comparer, observer
        self.canary = Canary(shared.spec.metrics)
        self.plan: ObservationPlan | None = None
        self._outputs: frozenset[str] = frozenset()
        self._at_once = {side.index for side in shared.model_sides if shared.observed(side) == "marked"}

    def iteration(self, number: int, feed: Feed, results: Sequence[IterationResult]) -> None:
        """Compare all marked tensors of one iteration; `results`: its plain runs."""
        shared = self._shared
        feeds = {side.index: side.fit(feed, shared.context.warn) for side in shared.model_sides}
        if self.plan is None:
            self.plan = self._make_plan(feed, feeds)
        plan, outputs = self.plan, [result.outputs for result in results]
        told: set[tuple[Pair, str]] = set()
        self._truths.begin(number, feeds, [row for row in shared.done.values() if row.iteration == number])

        def tap(index: int, name: str, array: Array) -> None:
            self._truths.keep(index, name, array)
            if name in plan.shown and (name not in outputs[index] or index in self._at_once):
                shared.keep(number, shared.sides[index], name, array)

        total, allowed = plan.compared(shared.pairs), self._limits()
        tensors = self._observer.run(plan, number, feeds, allowed.waiting, tap, partial(note_unclear, shared, number))
        with Ahead(tensors, allowed.ahead, pair_size) as pairs:
            for done, (pair, name, a, b) in enumerate(pairs, 1):
                plain = [outputs[i] for i in pair]
                if all(name in found for found in plain):
                    observed = self._comparer.arrays(a, b)
                    self._output(number, pair, name, (plain[0][name], plain[1][name]), (observed[0], observed[1]))
                    told.add((pair, name))
                elif (number, pair, name) not in shared.done:
                    self._comparer.row(number, pair, name, shared.layer_mode(pair), a, b)
                self._truths.done(pair, name)
                shared.context.progress(done, total, "tensors", name)
        self._rest(number, outputs, told)

    def _output(
        self, number: int, pair: Pair, name: str, plain: tuple[Array, Array], observed: tuple[Array, Array]
    ) -> None:
        """A graph output: its row is the plain run's, what was observed is for the canary; or the other way round."""
        shared = self._shared
        moved = self._moved(pair, name, plain, observed)
        assert self.plan is not None
        if name not in self.plan.shown:
            note_unwanted(shared, number, pair, name)
            return
        if (number, pair, name) in shared.done:
            return
        marked = shared.marked(pair)
        chosen, other = (observed, plain) if marked else (plain, observed)
        mode = shared.layer_mode(pair) if marked else shared.plain_mode(pair)
        result = self._comparer.row(number, pair, name, mode, *chosen)
        if moved and not self._comparer.postprocess:
            self.canary.verdicts(name, result.passed, other, result.rule)

    def _moved(self, pair: Pair, name: str, plain: tuple[Array, Array], observed: tuple[Array, Array]) -> bool:
        """True if observing moved the output on a side of the pair; random numbers move in any case."""
        moved = False
        if self._comparer.places.random(name):
            return False
        depth = self._comparer.places.place(name).depth
        for index, before, now in zip(pair, plain, observed, strict=True):
            side = self._shared.sides[index]
            if isinstance(side, ModelSide):
                moved |= not self.canary.check(name, side.name, before, now, depth)
        return moved

    def _rest(self, number: int, outputs: Sequence[Mapping[str, Array]], told: set[tuple[Pair, str]]) -> None:
        """Graph outputs that were not observed (such as a graph input handed through)."""
        shared = self._shared
        assert self.plan is not None
        for index in self._at_once:
            for name in shown_outputs(shared.spec.marks, outputs[index]):
                if name not in self.plan.wanted[index]:
                    shared.keep(number, shared.sides[index], name, outputs[index][name])
        for pair in shared.pairs:
            first, second = outputs[pair[0]], outputs[pair[1]]
            names = {name for owner, name in told if owner == pair}
            found = paired(shared, pair, first, second)
            output_rows(shared, self._comparer, number, pair, (found, first, second), observed=names)
            if number == 0 and any(isinstance(shared.sides[index], ModelSide) for index in pair):
                self._note_layers(pair, first.keys() | second.keys())

    def _note_layers(self, pair: Pair, outputs: Set[str]) -> None:
        """Marked tensors other than `outputs` that a side of the pair does not give."""
        shared, plan = self._shared, self.plan
        assert plan is not None
        given = [frozenset(plan.wanted[index]) for index in pair]
        for name in sorted(plan.shown - (given[0] & given[1]) - outputs):
            side = shared.sides[pair[0] if name not in given[0] else pair[1]]
            layer = isinstance(side, ModelSide)
            if name in plan.opaque and name not in self._outputs:
                shared.left_out.add(NotCompared(name, "not a tensor", "not a tensor", pair, layer=True))
            elif name not in plan.opaque:
                reason: Reason = "whole numbers" if name in side.naming.idle else "no counterpart"
                shared.left_out.add(NotCompared(name, reason, not_given(side, name), pair, layer=layer))

    def _make_plan(self, feed: Feed, feeds: Mapping[int, Feed]) -> ObservationPlan:
        shared = self._shared
        assert shared.model is not None
        if shared.observe == "executed":
            self._executed(feeds)
        elif shared.observe == "every":
            self._tell_unfused()
        cut = shared.model.cut
        self._tell_random(cut.outputs)
        names = marked_tensors(self._marks, cut)
        if self._at_once and self._marks.everything:
            names = markable(names, cut)
        if shared.spec.memory_budget is not None:
            give_back()
        shapes = {name: array.shape for name, array in feed.items()}
        allowed = self._limits()
        beside = 3 if shared.spec.truth and shared.spec.memory_budget is not None else 1  # a node in FP64
        made = [name for name in cut.outputs if name in cut.maker]
        self._outputs = frozenset(made)
        bounded = shared.spec.memory_budget is not None
        segments = self._observer.segments(max(1, allowed.segment // beside) if bounded else None)
        plan = make_plan(shared.sides, names, made, shapes, segments, self._at_once)
        self._truths.plan(plan.wanted, allowed.waiting // beside)
        if self._at_once:
            self._tell_at_once(plan.at_once)
        return plan

    def _limits(self) -> Limits:
        shared = self._shared
        usual = usual_segment(side.spec for side in shared.model_sides)
        return limits(shared.spec.memory_budget, resident(), usual=usual)

    def _tell_at_once(self, nbytes: int) -> None:
        spec = self._shared.spec
        check_budget(nbytes, spec.memory_budget, resident())
        why = ", as those of the saved outputs were" if spec.observe == "auto" else ""
        self._shared.context.log(
            f"layers are observed in one session with all marked tensors as outputs{why}: "
            f"about {nbytes / 1e6:.0f} MB at once"
        )

    def _executed(self, feeds: Mapping[int, Feed]) -> None:
        """Let every onnxruntime side be observed in the graph that it really runs."""
        from layerwise._tool.debugtools.compare.sides.executed import Print, executed_graph, original_prints

        prints: dict[int, dict[str, Print]] = {}
        for side in [each for each in self._shared.model_sides if each.spec.kind == "onnxrt"]:
            feed = feeds[side.index]
            if id(side.model) not in prints:
                prints[id(side.model)] = original_prints(side, feed)
            folder = self._shared.context.artifacts / "executed"
            side.graph = executed_graph(side, folder, prints[id(side.model)], feed)
            counts = f"{len(side.made)} of the model's {len(side.model.cut.maker)} tensors"
            self._shared.context.log(f"{shown(side.name, 80)} really makes {counts}; the rest is fused away")

    def _tell_random(self, outputs: Sequence[str]) -> None:
        """Two runs draw differently, whoever looks."""
        drawn = [(name, source) for name in outputs if (source := self._comparer.places.random(name))]
        if drawn:
            name, source = drawn[0]
            told = f"{shown(name, 120)} comes from random numbers ({shown(str(source), 120)})"
            more = f", and {len(drawn) - 1} outputs more do" if len(drawn) > 1 else ""
            self._shared.context.warn(f"{told}{more}: the canary does not watch what is drawn anew in each run")

    def _tell_unfused(self) -> None:
        """Observed unfused, sides that differ in nothing but their optimisation do not differ at all."""
        for pair in self._shared.pairs:
            if self._shared.alike_unfused(pair):
                self._shared.context.warn(
                    "layers are observed unfused, where these runners do not differ; only their outputs can. "
                    "To see what optimisation does to the layers, observe the executed graphs"
                )
