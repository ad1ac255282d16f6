"""The node that breaks a relation: every tensor of two runs is looked at, then the first nodes that differ alone.

A node is named only if it breaks the relation by itself: run alone, with what must be the same in its inputs bit for
bit the same, its outputs differ by more than rounding explains.
"""

import math
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct

from layerwise._tool.backends.arrays import Array, Feed
from layerwise._tool.backends.errors import LayerwiseError, MissingDependency
from layerwise._tool.backends.runner import Loadable, Runner
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.tensors import dtype_name, is_floating, to_onnx
from layerwise._tool.debugtools.checks.invariants.feeds import copied
from layerwise._tool.debugtools.checks.invariants.notes import note, shape_tensors
from layerwise._tool.debugtools.checks.invariants.sameness import Sameness, SameRows
from layerwise._tool.debugtools.checks.invariants.spec import Located
from layerwise._tool.debugtools.checks.invariants.views import LARGE, Difference, whole_difference
from layerwise._tool.debugtools.compare.arithmetic.nudge import nudged
from layerwise._tool.debugtools.compare.arithmetic.tolerance import rounding_bound, unit_roundoff
from layerwise._tool.debugtools.compare.memory import SEGMENT
from layerwise._tool.debugtools.compare.sides.stream import GraphStream, SessionPool, observing
from layerwise._tool.surgery.cut.segments import GraphCut, Segment

Open = Callable[[RunnerSpec, Loadable], Runner]
_TRIED = 16  # nodes that are run alone
_ALONE_DEPTH = 4  # of rounded steps in one node, long sums among them
_MOVING = frozenset({"Flatten", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})
"""Operators that only move elements: what one of them does to the rows another may seem to undo."""
SAME = 4.0
"""Units of rounding that the same kernels at the same places may differ by."""
_CONDITIONED = 4.0  # times the answer to one rounding of the inputs


class RunPair(Struct, frozen=True):
    """Two runs, and what must be the same in them. specs: the runner of each. outputs: those that differ.

    varied: the inputs that the relation is about; what does not come from them is left as it is. None: all of them.
    exact: the same kernels make it at the same places, so that it must be the same bit for bit.
    """

    feeds: tuple[Feed, Feed]
    specs: tuple[RunnerSpec, RunnerSpec]
    same: Sameness
    outputs: Sequence[str] = ()
    varied: Collection[str] | None = None
    exact: bool = False


class Found(Struct, frozen=True):
    """where: the node. breaks: whether an output differs in the runs that were observed, too."""

    where: Located | None = None
    breaks: bool = False
    reason: str = ""


class Locator:
    """Finds nodes of one graph. low: the types that tensors are rounded to; open_session: how parts are opened."""

    def __init__(self, cut: GraphCut, folder: Path, low: Sequence[str], open_session: Open) -> None:
        self.cut, self._folder, self._low, self._open = cut, folder, tuple(low), open_session
        self._of_shapes = shape_tensors(cut)
        self._read = {name for reads in cut.reads for name in reads} | set(cut.outputs)
        self._seen: dict[str, Difference] = {}
        self._judged: frozenset[str] = frozenset()
        self._mixed_rows: set[str] = set()

    def find(self, case: RunPair) -> Found:
        """The node that breaks the relation first; the reason where none can be looked for."""
        try:
            bad = self._bad_tensors(case)
            if not bad.intersection(case.outputs):
                return Found()
            for i in self._candidates(bad, case.outputs)[:_TRIED]:
                where = self._alone(i, case)
                if where is not None:
                    return Found(self._earlier(where, bad, case) or where, breaks=True)
        except MissingDependency:
            raise
        except LayerwiseError as error:
            return Found(breaks=True, reason=str(error))
        return Found(breaks=True)

    def moved(self, output: str, axis: int) -> Located | None:
        """The node that moves the rows of an output from where they must be (`axis`) to another axis; None if there is
        none. Of the case that was looked at last.
        """
        name = output
        while name in self.cut.maker:
            i = self.cut.maker[name]
            views = {read: self._seen[read].view for read in self.cut.reads[i] if read in self._seen}
            read, view = next(((each, view) for each, view in views.items() if view is not None), (None, None))
            node = self.cut.nodes[i]
            if read is None or view is None or view.axis == axis:
                text = f"which moves the batch away from axis {axis}"
                return Located(node.name, node.op_type, name, i, {read: axis} if read else {}, 0.0, text)
            name = read
        return None

    def again(self, where: Located, case: RunPair) -> Located | None:
        """The same node, if it breaks this relation as well."""
        self._judged = self._reached(case.varied)
        try:
            return self._alone(where.position, case)
        except LayerwiseError:
            return None

    def _bad_tensors(self, case: RunPair) -> set[str]:
        """The tensors in which something differs that must be the same, by more than rounding explains."""
        self._seen, self._judged, self._mixed_rows = {}, self._reached(case.varied), set()
        plan = self._plan(case.feeds[0])
        pool = SessionPool(keep=False)
        first, second = (
            GraphStream(self.cut, plan, spec, "layers", self._folder, copied(feed), pool, self._segment_session)
            for spec, feed in zip(case.specs, case.feeds, strict=True)
        )
        bad: set[str] = set()
        try:
            for mine, theirs in zip(first, second, strict=True):
                bad.update(name for name in mine if name in theirs and self._is_bad(name, mine, theirs, case))
        finally:
            pool.close()
        return bad

    def _plan(self, feed: Feed) -> list[Segment]:
        known = self.cut.estimates_for(feed)
        wanted = [name for name in self.cut.maker if name in self._read and not (name in known and known[name].opaque)]
        return self.cut.segments(wanted, SEGMENT, known)

    def _is_bad(self, name: str, mine: Feed, theirs: Feed, case: RunPair) -> bool:
        if name not in self._judged or not isinstance(mine[name], np.ndarray):
            return False
        self._seen[name] = found = case.same.test(mine[name], theirs[name])
        bad = found.rel > self._bound(mine[name], self.cut.depth[self.cut.maker[name]], case.exact)
        if bad and isinstance(case.same, SameRows) and _for_rows(mine[name], theirs[name], case.same.counts):
            self._mixed_rows.add(name)
        return bad

    def _segment_session(self, spec: RunnerSpec, model: Loadable, name: str) -> Runner:
        return self._open(spec, model)

    def _reached(self, varied: Collection[str] | None) -> frozenset[str]:
        """The tensors that come from these inputs, other than by their shapes, and these inputs."""
        if varied is None:
            return frozenset(self.cut.maker) | frozenset(self.cut.inputs)
        found = set(varied)
        for node, reads in zip(self.cut.nodes, self.cut.reads, strict=True):
            if not found.isdisjoint(reads):
                found.update(name for name in node.output if name and name not in self._of_shapes)
        return frozenset(found)

    def _bound(self, array: Array, depth: int, exact: bool) -> float:
        name = dtype_name(array)
        if exact:
            return SAME * unit_roundoff([name])
        return rounding_bound((name, *self._low), depth) if is_floating(name) else 0.0

    def _candidates(self, bad: set[str], outputs: Sequence[str]) -> list[int]:
        """The nodes behind the outputs that make bad tensors, those with none among their inputs first."""
        waiting = [name for name in outputs if name in bad]
        reached, first, later = set[str](), set[int](), set[int]()
        while waiting:
            name = waiting.pop()
            if name in reached:
                continue
            reached.add(name)
            i = self.cut.maker[name]
            before = [read for read in self.cut.reads[i] if read in bad]
            (later if before else first).add(i)
            waiting += before
        return [*sorted(first), *sorted(later)]

    def _earlier(self, where: Located, bad: set[str], case: RunPair) -> Located | None:
        """The first node behind a located one that broke the relation before it, though rows are seen again between
        them; only where both nodes only move elements.
        """
        if where.op not in _MOVING or not self._mixed_rows:
            return None
        behind = [i for i in self.cut.needed([where.tensor]) if i != where.position]
        tried = [
            i
            for i in behind
            if self.cut.nodes[i].op_type in _MOVING
            and self.cut.nodes[i].output[0] in self._mixed_rows
            and bad.isdisjoint(self.cut.reads[i])
            and not self._undone(i, bad, case)
        ]
        found = (self._alone(i, case) for i in tried[:_TRIED])
        return next((each for each in found if each is not None), None)

    def _undone(self, i: int, bad: set[str], case: RunPair) -> bool:
        """Whether rows are seen again, behind what a node made of them, as they were in what it read."""
        first, second = case.feeds
        before = {
            (case.same.test(first[name], second[name]) if name in first else self._seen[name]).view
            for name in self.cut.reads[i]
            if name in first or name in self._seen
        }
        behind = set(self.cut.nodes[i].output)
        for node, reads in zip(self.cut.nodes[i + 1 :], self.cut.reads[i + 1 :], strict=True):
            if behind.isdisjoint(reads):
                continue
            behind.update(bad.intersection(node.output))
            again = {self._seen[name].view for name in node.output if name in self._seen and name not in bad}
            if not before.isdisjoint(again):
                return True
        return False

    def _alone(self, i: int, case: RunPair) -> Located | None:
        """The node as what breaks the relation, None if it does not when it is run alone."""
        node = self.cut.nodes[i]
        weights = self.cut.initializers.keys() | self.cut.sparse.keys()
        names = tuple(dict.fromkeys(name for name in self.cut.reads[i] if name not in weights))
        mine, theirs = (self._values(names, *run) for run in zip(case.specs, case.feeds, strict=True))
        if any(name not in mine or name not in theirs for name in names):
            return None
        mixed = {name: self._mixed(name, mine[name], theirs[name], case.same) for name in names}
        segment = Segment((i,), names, tuple(name for name in node.output if name in self._read))
        made, again = self._run(segment, mine, case.specs[0]), self._run(segment, mixed, case.specs[1])
        nudge = {} if case.exact else {name: nudged(array) for name, array in mixed.items()}
        moved = self._run(segment, nudge, case.specs[1]) if nudge else {}
        worst = None
        for name in segment.gives:
            if name not in made or name not in again or name not in self._judged:
                continue
            found = case.same.test(made[name], again[name])
            limit = self._limit(made[name], again[name], moved.get(name), case.exact)
            if found.rel > limit and (worst is None or found.rel > worst.rel):
                axes = self._axes(names, mine, theirs, case.same)
                ranks = {each: mine[each].ndim for each in names}
                worst = Located(node.name, node.op_type, name, i, axes, found.rel, note(node, self.cut, axes, ranks))
        return worst

    def _limit(self, made: Array, again: Array, moved: Array | None, exact: bool) -> float:
        """What rounding explains of a node that is run alone. moved: what it makes when its inputs are rounded once."""
        bound = self._bound(made, _ALONE_DEPTH, exact)
        if exact or not bound or moved is None:
            return bound
        response = whole_difference(again, moved)
        return bound + (_CONDITIONED * response if math.isfinite(response) else 0.0)

    def _axes(self, names: Sequence[str], mine: Feed, theirs: Feed, same: Sameness) -> dict[str, int]:
        found = {name: same.test(mine[name], theirs[name]).view for name in names if name in self._judged}
        return {name: view.axis for name, view in found.items() if view is not None}

    def _mixed(self, name: str, mine: Array, theirs: Array, same: Sameness) -> Array:
        return same.mixed(mine, theirs) if name in self._judged else theirs

    def _values(self, names: Sequence[str], spec: RunnerSpec, feed: Feed) -> Feed:
        made = [name for name in names if name in self.cut.maker]
        found = {name: feed[name] for name in names if name in feed}
        if made:
            model = Loadable(data=self.cut.with_outputs(made), folder=self._folder)
            with self._open(observing(spec), model) as runner:
                found.update(runner.infer(copied({info.name: feed[info.name] for info in runner.inputs})).outputs)
        return found

    def _run(self, segment: Segment, feed: Feed, spec: RunnerSpec) -> Feed:
        data = self.cut.build(segment, {name: to_onnx(dtype_name(feed[name])) for name in segment.feeds})
        with self._open(observing(spec), Loadable(data=data, folder=self._folder)) as runner:
            return runner.infer(copied({name: feed[name] for name in segment.feeds})).outputs


def _for_rows(first: Array, second: Array, counts: tuple[int, int]) -> bool:
    """Whether an axis of two tensors is as long as there are rows, which are seen in every way there is."""
    lengths = zip(first.shape, second.shape, strict=False)
    return first.size <= LARGE and first.ndim == second.ndim and any(pair == counts for pair in lengths)
