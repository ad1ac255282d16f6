"""The relations between the rows of a batch, and between runs of the same feed."""

import msgspec
from msgspec import Struct

from layerwise._tool.backends.arrays import Feed
from layerwise._tool.backends.errors import LayerwiseError, MissingDependency
from layerwise._tool.backends.tensors import dtype_name
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.checks.invariants.axes import dim_key
from layerwise._tool.debugtools.checks.invariants.feeds import (
    FEWER,
    OTHER,
    Tried,
    copied,
    distinct,
    row_count,
    take,
)
from layerwise._tool.debugtools.checks.invariants.locate import RunPair
from layerwise._tool.debugtools.checks.invariants.outputs import RelationJudge, Worst, only, refusal
from layerwise._tool.debugtools.checks.invariants.sameness import SameRows, Whole
from layerwise._tool.debugtools.checks.invariants.spec import RelationRow
from layerwise._tool.debugtools.checks.invariants.state import State
from layerwise._tool.debugtools.checks.invariants.subject import OutputAxis
from layerwise._tool.debugtools.checks.invariants.views import Pairs, whole_difference
from layerwise._tool.debugtools.compare.arithmetic.tolerance import unit_roundoff

OTHERS, ALONE, EQUAL, PERMUTED = "other rows", "alone", "equal rows", "permuted rows"
REPEATED, THREADS, SHAPE = "repeated runs", "threads", "another shape"
_SEEN = 100.0  # units of rounding
ROW_RELATIONS = (OTHERS, PERMUTED, EQUAL, ALONE)


class Probe(Struct, frozen=True):
    """Two batches of the rows of a feed, and the places of both that must give the same. same_kernels: they stand
    at the same places of batches of the same length.
    """

    first: list[int]
    second: list[int]
    pairs: Pairs
    same_kernels: bool = False


def probes(relation: str, rows: int) -> list[Probe]:
    """The batches that show a relation, of a feed with so many rows (two at least)."""
    every = list(range(rows))
    if relation == OTHERS:
        ends = dict.fromkeys((0, rows // 2, rows - 1))
        one = [[(row + 1) % rows if row == changed else row for row in every] for changed in ends]
        all_but_first = [0, *(1 + row % (rows - 1) for row in every[1:])]
        others = (*one, all_but_first) if rows > 2 else one
        return [Probe(every, other, [(row, row) for row in every if other[row] == row], True) for other in others]
    if relation == PERMUTED:
        turned = [*every[1:], 0]
        return [Probe(every, turned, [(row, place) for place, row in enumerate(turned)])]
    if relation == EQUAL:
        return [Probe([0] * rows, [0] * rows, [(0, row) for row in every[1:]])]
    return [Probe(every, [row], [(row, 0)]) for row in (0, rows - 1)]


class Relations:
    """Checks the relations of one model."""

    def __init__(self, judge: RelationJudge) -> None:
        self.judge, self.subject = judge, judge.subject
        self._alike: bool | None = None

    def between_rows(self, relation: str) -> RelationRow:
        """The row of one of ROW_RELATIONS."""
        why = self._no_rows()
        if not why and relation == ALONE and self.subject.batch.fixed is not None:
            why = f"the model takes batches of {self.subject.batch.fixed} alone"
        if why:
            return RelationRow(relation, "not checked", why)
        lost = next((axis for axis in self.subject.axes if axis.lost), None)
        if relation == OTHERS and lost is not None:
            return self._lost(lost)
        return self._rows(relation, self.subject.feed, probes(relation, self.subject.rows))

    def another_shape(self) -> RelationRow:
        """Whether a row depends on the others, where batch and sequences have other lengths."""
        why = self._no_rows()
        if why:
            return RelationRow(SHAPE, "not checked", why)
        if self.subject.spec.feeds.files or self.subject.spec.feeds.script:
            return RelationRow(SHAPE, "not checked", "the inputs are given: their lengths are what is run")
        found = self._with_lengths(OTHER)
        refused = found.status == "not checked" and found.where is None
        return self._with_lengths(msgspec.structs.replace(self.subject.tried, rows=FEWER)) if refused else found

    def _with_lengths(self, tried: Tried) -> RelationRow:
        feed = self.subject.feed_of(tried)
        if all(feed[name].shape == array.shape for name, array in self.subject.feed.items()):
            why = "the lengths are given" if self.subject.spec.feeds.shapes else "all lengths are fixed"
            return RelationRow(SHAPE, "not checked", why)
        lengths = ", ".join(f"{'x'.join(map(str, array.shape)) or 'scalar'}" for array in list(feed.values())[:4])
        rows = row_count(feed, self.subject.batch)
        tries = [*probes(OTHERS, rows), *(probes(ALONE, rows) if self.subject.batch.fixed is None else ())]
        return self._rows(SHAPE, feed, tries, f"with inputs of {lengths}")

    def _no_rows(self) -> str:
        """Why relations between rows cannot be checked, "" if they can."""
        subject = self.subject
        if not subject.batch.axes:
            return "nothing tells which axis is the batch: state it (--batch-axis INPUT:AXIS)"
        if subject.rows < 2:
            told = f"the model does not run with more: {subject.refusal}" if subject.refusal else "the model takes one"
            return f"there is one row ({told})" if subject.rows else "the inputs differ in their number of rows"
        if not distinct(subject.feed, subject.batch):
            return "the inputs have equal rows: nothing would be seen (--val-range, --load-inputs give others)"
        if not self.judge.checked() and not any(axis.lost for axis in subject.axes):
            drawn = [f"{name!r} comes from {node}" for name, node in subject.random.items()]
            return f"random numbers: {drawn[0]}" if drawn else "no output has a batch axis"
        if self._all_alike():
            return "the outputs are the same for other inputs: nothing would be seen (--val-range, --load-inputs)"
        return ""

    def _all_alike(self) -> bool:
        """Whether batches of different rows give the same, however they differ."""
        if self._alike is None:
            subject = self.subject
            rows = list(range(subject.rows))
            batches = ([0] * len(rows), [1] * len(rows)), (rows, [*rows[1:], 0])
            self._alike = all(self._same_results(*pair) for pair in batches)
        return self._alike

    def _same_results(self, rows: list[int], others: list[int]) -> bool:
        feeds = (take(self.subject.feed, self.subject.batch, each) for each in (rows, others))
        first, second = map(self.subject.infer, feeds)
        allowed = {name: _SEEN * unit_roundoff([dtype_name(first[name])]) for name in self.judge.steady()}
        return all(whole_difference(first[name], second[name]) <= bound for name, bound in allowed.items())

    def _rows(self, relation: str, feed: Feed, tried: list[Probe], text: str = "") -> RelationRow:
        """The row of a relation: of the first probe that it does not stand, else of the one with the largest error."""
        worst = RelationRow(relation, "not checked", "nothing was run")
        for probe in tried:
            found = self._probe(relation, feed, probe, text)
            if found.status != "obeyed":
                return found
            if worst.status != "obeyed" or found.rel > worst.rel:
                worst = found
        return worst

    def _probe(self, relation: str, feed: Feed, probe: Probe, text: str) -> RelationRow:
        subject = self.subject
        case = self._case(feed, probe)
        try:
            runs = subject.infer(case.feeds[0]), subject.infer(case.feeds[1])
        except MissingDependency:
            raise
        except LayerwiseError as error:
            return refusal(relation, error, f"{len(probe.second)} rows" if relation != SHAPE else "other lengths")
        axes = {axis.name: axis.axis for axis in self.judge.checked()}
        return self.judge.conclude(relation, self.judge.worst(runs, case, axes), case, text=text)

    def _case(self, feed: Feed, probe: Probe, outputs: tuple[str, ...] = ()) -> RunPair:
        subject, batch = self.subject, self.subject.batch
        feeds = take(feed, batch, probe.first), take(feed, batch, probe.second)
        same = SameRows((len(probe.first), len(probe.second)), probe.pairs, within=probe.first == probe.second)
        exact = probe.same_kernels and self.judge.deterministic
        return RunPair(feeds, (subject.spec.runner,) * 2, same, outputs, frozenset(batch.axes), exact)

    def repeated(self) -> RelationRow:
        """Whether the same feed gives the same outputs again, other feeds in between."""
        subject = self.subject
        steady = self.judge.steady()
        if not steady:
            return RelationRow(REPEATED, "not checked", self._drawn())
        between = take(subject.feed, subject.batch, [*range(1, subject.rows), 0]) if subject.rows > 1 else subject.feed
        first = subject.infer(subject.feed)
        subject.infer(between)
        runs = first, subject.infer(subject.feed)
        case = RunPair((subject.feed,) * 2, (subject.spec.runner,) * 2, Whole())
        worst = self.judge.worst(runs, case, only(steady))
        self.judge.deterministic = worst.rel == 0.0
        if worst.failing:
            return self._stateful(worst, [subject.feed, between, subject.feed])
        return RelationRow(REPEATED, "obeyed", "", worst.output, worst.rel, worst.bound)

    def _stateful(self, worst: Worst, feeds: list[Feed]) -> RelationRow:
        self.judge.unsteady = True
        text = "the session keeps something between runs"
        where = State(self.subject, feeds).keeper(worst.output)
        return RelationRow(REPEATED, "broken", text, worst.output, worst.rel, worst.bound, where=where)

    def _lost(self, output: OutputAxis) -> RelationRow:
        """The row for an output that has no rows where it is declared to have them."""
        subject, declared = self.subject, self.subject.declared[output.name]
        for probe in probes(OTHERS, subject.rows):
            case = self._case(subject.feed, probe, (output.name,))
            found = self.judge.locator.find(case)
            if found.where is not None:
                break
        axis = next(at for at in range(len(declared.shape or ())) if dim_key(declared, at) == subject.batch.key)
        where = found.where or (self.judge.locator.moved(output.name, axis) if output.axis is not None else None)
        return RelationRow(OTHERS, "broken", f"{shown(output.name, 80)!r}: {output.lost}", output.name, where=where)

    def threads(self) -> RelationRow:
        """Whether one thread and several give the same, but for rounding."""
        subject, runner = self.subject, self.subject.spec.runner
        if runner.kind != "onnxrt":
            return RelationRow(THREADS, "not checked", "the number of threads is onnxruntime's alone")
        if any(name.lower() != "cpu" for name in runner.providers):
            return RelationRow(THREADS, "not checked", "the model does not run on the CPU alone")
        steady = self.judge.steady()
        if not steady:
            return RelationRow(THREADS, "not checked", self._drawn())
        one, several = (msgspec.structs.replace(runner, threads=count) for count in (1, max(2, runner.threads or 0)))
        runs = tuple(subject.session(spec).infer(copied(subject.feed)).outputs for spec in (several, one))
        case = RunPair((subject.feed,) * 2, (several, one), Whole())
        worst = self.judge.worst((runs[0], runs[1]), case, only(steady))
        return self.judge.conclude(THREADS, worst, case, text=f"1 and {several.threads} threads", rows=False)

    def _drawn(self) -> str:
        return f"random numbers: {next(iter(self.subject.random.values()), 'no output')}"
