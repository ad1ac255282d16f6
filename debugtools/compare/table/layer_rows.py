"""Rows of graph outputs, from the plain runs, and of all marked tensors, streamed."""

from collections.abc import Mapping, Sequence, Set
from functools import cached_property, partial
from typing import TYPE_CHECKING

from layerwise._tool.backends.arrays import Array, Feed
from layerwise._tool.backends.limits.memory import resident
from layerwise._tool.backends.results.inference import IterationResult
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.memory import SEGMENT, Limits, give_back, limits, usual_segment
from layerwise._tool.debugtools.compare.observing.canary import Canary
from layerwise._tool.debugtools.compare.observing.iteration import (
    ObservationPlan,
    Observer,
    Tap,
    check_budget,
    make_plan,
    markable,
)
from layerwise._tool.debugtools.compare.observing.run_ahead import Ahead, pair_size
from layerwise._tool.debugtools.compare.observing.run_ahead import Pair as Observed
from layerwise._tool.debugtools.compare.rows import NotCompared, Pair, Reason
from layerwise._tool.debugtools.compare.sides.marks import marked_tensors, shown_outputs
from layerwise._tool.debugtools.compare.sides.side import ModelSide
from layerwise._tool.debugtools.compare.spec import MarkSpec
from layerwise._tool.debugtools.compare.table.comparison import RowContext
from layerwise._tool.debugtools.compare.table.missing import not_given
from layerwise._tool.debugtools.compare.table.output_rows import note_unwanted, output_rows, paired
from layerwise._tool.debugtools.compare.table.pairs import Comparer
from layerwise._tool.debugtools.compare.table.pieces import note_unclear
from layerwise._tool.debugtools.compare.truth.pairs import PairTruths

if TYPE_CHECKING:
    from concurrent.futures import Future

    from layerwise._tool.backends.runner import Runner


_SESSIONS = 2  # of a side: the plain run's and what observes


class ObservedRows:
    """Observes iterations. The plan is made with the first one's shapes and serves all."""

    def __init__(
        self, shared: RowContext, marks: MarkSpec, comparer: Comparer, observer: Observer, truths: PairTruths
    ) -> None:
        self._truths = truths
        self._shared, self._marks, self._comparer, self._observer = shared, marks, comparer, observer
        self.canary = Canary(shared.spec.metrics)
        self.plan: ObservationPlan | None = None
        self._begun: Ahead[Observed] | None = None
        self._told: set[tuple[Pair, str]] = set()
        self._outputs: frozenset[str] = frozenset()
        self._at_once = {side.index for side in shared.model_sides if shared.observed(side) == "marked"}

    def begin(self, feed: Feed) -> bool:
        """Begin to observe the first iteration, whose plain runs are still to come, where that does not depend on them
        and takes no memory to speak of: its sessions open beside theirs. Whether it has begun.
        """
        shared = self._shared
        if not self.before_plain or self.plan is not None:
            return False
        feeds = {side.index: side.fit(feed, shared.context.warn) for side in shared.model_sides}
        self.plan = self._make_plan(feed, feeds)
        if self._has_room({name: array.shape for name, array in feed.items()}):
            self._begun = self._ahead(0, feeds, lambda *_: None)
            self._begun.start()
        return self._begun is not None

    def _has_room(self, shapes: Mapping[str, Sequence[int]]) -> bool:
        """Whether sessions that observe may open while those of the plain runs do: on the host those of small segments,
        on a GPU of whole models, where all weights take half of what is free.
        """
        device, sides = self._comparer.device, self._shared.model_sides
        if device is None:
            cuts = {id(side.model.cut): side.model.cut for side in sides}
            return all(cut.none_above(SEGMENT, cut.estimates(shapes)) for cut in cuts.values())
        weights = sum(ref.nbytes for side in sides for ref in side.model.file.weights().values())
        return _SESSIONS * weights <= device.free() // 2

    def meanwhile(self, opening: "Future[Runner]") -> None:
        """Compare what is there already until a session is open; the rows come before those of the plain runs."""
        begun = self._begun
        if begun is None:
            return
        opening.add_done_callback(lambda _: begun.wake())
        for pair, name, a, b in begun.until(opening.done, lambda item: item[1] in self._outputs):
            self._layer(0, pair, name, a, b)

    def _layer(self, number: int, pair: Pair, name: str, a: Array, b: Array) -> None:
        if (number, pair, name) not in self._shared.done and (pair, name) not in self._told:
            self._comparer.row(number, pair, name, self._shared.layer_mode(pair), a, b)
        self._told.add((pair, name))

    @cached_property
    def before_plain(self) -> bool:
        """Whether layers can be observed before the plain runs: in sessions of their own, nothing of them is kept."""
        shared, spec = self._shared, self._shared.spec
        held = spec.truth or spec.save_heatmaps or spec.save_error_plots or shared.keeps
        if spec.memory_budget is not None or spec.sequential or spec.compare_script or held:
            return False
        on_cpu = all(side.backend == ("onnxrt", "cpu") and side.model is shared.model for side in shared.model_sides)
        on_gpu = self._comparer.device is not None and {s.backend for s in shared.model_sides} == {("onnxrt", "cuda")}
        return (on_cpu or on_gpu) and len(shared.model_sides) == len(shared.sides) and shared.observe == "every"

    def close(self) -> None:
        """End what was begun and is not wanted any more."""
        begun, self._begun = self._begun, None
        if begun is not None:
            with begun:
                pass

    def _ahead(self, number: int, feeds: Mapping[int, Feed], tap: Tap) -> "Ahead[Observed]":
        assert self.plan is not None
        allowed = self._limits()
        refused = partial(note_unclear, self._shared, number)
        tensors = self._observer.run(self.plan, number, feeds, allowed.waiting, tap, refused)
        return Ahead(tensors, allowed.ahead, pair_size, self._comparer.look)

    def _taken(self) -> "Ahead[Observed] | None":
        """What was begun; not if it has failed, which may be for the memory that sessions may take to open."""
        if self._begun is not None and self._begun.failed:
            self.close()
        begun, self._begun = self._begun, None
        return begun

    def iteration(self, number: int, feed: Feed, results: Sequence[IterationResult]) -> None:
        """Compare all marked tensors of one iteration; `results`: its plain runs."""
        shared = self._shared
        feeds = {side.index: side.fit(feed, shared.context.warn) for side in shared.model_sides}
        if self.plan is None:
            self.plan = self._make_plan(feed, feeds)
        plan, outputs = self.plan, [result.outputs for result in results]
        self._truths.begin(number, feeds, [row for row in shared.done.values() if row.iteration == number])

        def tap(index: int, name: str, array: Array) -> None:
            self._truths.keep(index, name, array)
            if name in plan.shown and (name not in outputs[index] or index in self._at_once):
                shared.keep(number, shared.sides[index], name, array)

        total = plan.compared(shared.pairs)
        with self._taken() or self._ahead(number, feeds, tap) as pairs:
            for pair, name, a, b in pairs:
                plain = [outputs[i] for i in pair]
                if all(name in found for found in plain):
                    observed = self._comparer.arrays(a, b)
                    self._output(number, pair, name, (plain[0][name], plain[1][name]), (observed[0], observed[1]))
                    self._told.add((pair, name))
                else:  # an output of one side alone too, such as what a network's own marks add
                    self._layer(number, pair, name, a, b)
                self._truths.done(pair, name)
                shared.context.progress(len(self._told), total, "tensors", name)
        self._rest(number, outputs)
        self._told.clear()

    def _output(
        self, number: int, pair: Pair, name: str, plain: tuple[Array, Array], observed: tuple[Array, Array]
    ) -> None:
        """A graph output: its row is the plain run's, what was observed is for the canary; or the other way round."""
        shared = self._shared
        assert self.plan is not None
        if name not in self.plan.shown:
            self._moved(pair, name, plain, observed)
            note_unwanted(shared, number, pair, name)
            return
        if (number, pair, name) in shared.done:
            self._moved(pair, name, plain, observed)
            return
        marked = shared.marked(pair)
        chosen, other = (observed, plain) if marked else (plain, observed)
        mode = shared.layer_mode(pair) if marked else shared.plain_mode(pair)
        seen = None if marked else (shared.layer_mode(pair), *observed)
        result = self._comparer.row(number, pair, name, mode, *chosen, observed=seen)
        if self._moved(pair, name, plain, observed) and not self._comparer.postprocess:
            self.canary.verdicts(name, chosen, other, result.rule)

    def _moved(self, pair: Pair, name: str, plain: tuple[Array, Array], observed: tuple[Array, Array]) -> bool:
        """True if observing moved the output on a side of the pair; random numbers move in any case."""
        moved = False
        if self._comparer.places.random(name):
            return False
        place, explained = self._comparer.places.place(name), self._comparer.enlarged(pair, name)
        for index, before, now in zip(pair, plain, observed, strict=True):
            side = self._shared.sides[index]
            if isinstance(side, ModelSide):
                moved |= not self.canary.check(name, side.name, before, now, place.depth, place.types, explained)
        return moved

    def _rest(self, number: int, outputs: Sequence[Mapping[str, Array]]) -> None:
        """Graph outputs that were not observed (such as a graph input handed through)."""
        shared = self._shared
        assert self.plan is not None
        for index in self._at_once:
            for name in shown_outputs(shared.spec.marks, outputs[index]):
                if name not in self.plan.wanted[index]:
                    shared.keep(number, shared.sides[index], name, outputs[index][name])
        for pair in shared.pairs:
            first, second = outputs[pair[0]], outputs[pair[1]]
            names = {name for owner, name in self._told if owner == pair}
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
        return limits(shared.spec.memory_budget, usual=usual)

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
