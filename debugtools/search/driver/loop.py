"""The loop of a search: candidates asked, judged, written down, told; undone and resumed.

Searches over the nodes of a subject: which one, over which nodes, and what a candidate of it stands for.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from layerwise._tool.debugtools.search.driver.files import Files
from layerwise._tool.debugtools.search.driver.history import Replay, VerdictRows, replay_key
from layerwise._tool.debugtools.search.judges.protocol import Artifact, Auto, Judge, Judgement, Undo
from layerwise._tool.debugtools.search.judges.subject import Subject
from layerwise._tool.debugtools.search.rows import BandRow, CandidateRow
from layerwise._tool.debugtools.search.spec import DebugSpec
from layerwise._tool.debugtools.search.strategies.bisect import HintedBisect
from layerwise._tool.debugtools.search.strategies.flaky import FlakyBisect
from layerwise._tool.debugtools.search.strategies.prefix import PrefixReduce
from layerwise._tool.debugtools.search.strategies.protocol import Candidate, Search, Verdict
from layerwise._tool.debugtools.search.strategies.reduce import ReduceSearch

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


MOST_CULPRITS = 20


@dataclass(frozen=True)
class SearchPlan:
    """A search over indices 0..m-1. order: index -> position of the node; nodes: what a candidate is made of.

    enough: whether what is found suffices, though the search could go on.
    """

    search: Search[Any]
    order: Sequence[int]
    nodes: Callable[[Candidate], Sequence[int]]
    enough: Callable[[], bool] = lambda: False

    @property
    def over(self) -> bool:
        """Whether nothing more is to be asked."""
        return self.search.done or self.enough()


MakePlan = Callable[[], SearchPlan]


def reduce_plan(
    subject: Subject, spec: DebugSpec, hints: Sequence[int], width: int, seconds: Sequence[float] | None
) -> MakePlan:
    """How to begin a reduction, again after an undo. hints: positions of likely culprits; seconds: of each item."""
    if spec.mode == "ddmin":
        return lambda: _ddmin(subject, hints, width, seconds)
    return lambda: _polygraphy(subject, spec, width)


def bisect_plan(
    subject: Subject, spec: DebugSpec, hints: Sequence[int], width: int, seconds: Sequence[float] | None
) -> MakePlan:
    """How to begin a bisection over prefixes of the topological order. seconds: expected, of each item."""
    order, flaky = subject.items, spec.flaky
    guess = order.index(min(hints)) if hints and min(hints) in order else None

    def begin() -> SearchPlan:
        search: Search[Any] = HintedBisect(len(order), seconds, width, guess)
        if flaky is not None:
            search = FlakyBisect(len(order), flaky.false_good, flaky.false_bad, 1 - spec.confidence, seconds)
        return SearchPlan(search, order, lambda candidate: order[: (candidate.position or 0) + 1])

    return begin


def _ddmin(subject: Subject, hints: Sequence[int], width: int, seconds: Sequence[float] | None) -> SearchPlan:
    order = subject.items
    index = {node: k for k, node in enumerate(order)}
    search = ReduceSearch(range(len(order)), seconds, [index[i] for i in hints if i in index], width)
    return SearchPlan(
        search,
        order,
        lambda candidate: [order[k] for k in candidate.items],
        lambda: len(search.result().sets) >= MOST_CULPRITS,
    )


def _polygraphy(subject: Subject, spec: DebugSpec, width: int) -> SearchPlan:
    """Constant nodes are weights here, as they are there."""
    cut = subject.cut
    order = [i for i, node in enumerate(cut.nodes) if node.op_type != "Constant"]
    index = {node: k for k, node in enumerate(order)}

    def before(k: int) -> list[int]:
        names = [name for name in cut.nodes[order[k]].output if name]
        return [index[i] for i in cut.needed(names) if i in index]

    def after(base: Sequence[int], k: int) -> list[int]:
        roots = set(cut.reads[order[k]]) - cut.initializers.keys()
        kept = {order[k]}
        for j in base:
            i = order[j]
            if any(name in roots or cut.maker.get(name) in kept for name in cut.reads[i]):
                kept.add(i)
        return [j for j in base if order[j] in kept]

    phases = [name for name, on in (("outputs", spec.reduce_outputs), ("inputs", spec.reduce_inputs)) if on]
    mode = "linear" if spec.mode == "linear" else "bisect"
    search = PrefixReduce(len(order), mode, before=before, after=after, phases=phases, width=width)  # type: ignore[arg-type]
    return SearchPlan(search, order, lambda candidate: [order[k] for k in candidate.items])


class CandidateHandler:
    """What a kind of search does with its candidates; as it is, for the same thing again and again: no model, no cache.

    cached: equal content gets an equal verdict.
    """

    cached = False

    def __init__(self, context: "JobContext", replay: Replay, files: Files) -> None:
        self._context, self._replay, self._files = context, replay, files

    def artifact(self, plan: SearchPlan, candidate: Candidate, iteration: int) -> Artifact | None:
        """What is tried: a model, or None where the same thing is tried again."""
        return None

    def asked(self, plan: SearchPlan, candidate: Candidate, artifact: Artifact | None) -> None:
        """A candidate is about to be judged."""
        self._context.row("band", BandRow([*plan.search.band()]))

    def known(self, candidate: Candidate, iteration: int) -> Verdict | None:
        """A verdict that a replay file has."""
        return self._replay.find(candidate, iteration)

    def told(
        self, plan: SearchPlan, candidate: Candidate, artifact: Artifact | None, judgement: Judgement, iteration: int
    ) -> None:
        """A verdict has fallen, and is on file."""
        self._replay.add(candidate, iteration, None, judgement.verdict)
        self._replay.save()
        self._files.take(judgement, replay_key(candidate.phase, iteration))

    def retold(self, plan: SearchPlan, candidate: Candidate, verdict: Verdict, iteration: int) -> None:
        """A verdict of before is told again."""
        self._replay.add(candidate, iteration, None, verdict)

    def restart(self) -> None:
        """The search begins anew: what was told so far counts for nothing until it is told again."""
        self._replay.clear()


class SearchLoop:
    """Drives one search to its end. machine: what judges once a person lets the machine finish."""

    def __init__(
        self, context: "JobContext", make: MakePlan, handler: CandidateHandler, judge: Judge, history: VerdictRows,
        machine: Callable[[], Judge | None] | None = None,
    ) -> None:  # fmt: skip
        self._context, self._make, self._handler, self._judge = context, make, handler, judge
        self._history, self._machine = history, machine
        self.checks = self.cached = 0
        self._numbers: Counter[str] = Counter()
        self._iterations: dict[str, int] = {}
        self.plan = self._begin()

    @property
    def passed(self) -> int:
        """How many candidates were good."""
        return sum(row.verdict is Verdict.GOOD for row in self._history.rows)

    def run(self) -> SearchPlan:
        """Ask until the search is done; the plan as it is then."""
        self._progress("")
        while not self.plan.over:
            try:
                if self._judge.parallel > 1:
                    self._several()
                elif not self._one():
                    break
            except Undo:
                if not self._history.undo():
                    self._context.warn("there is no answer of yours to take back")
                self.plan = self._begin()
                self._progress("")
            except Auto:
                self._let_machine()
        return self.plan

    def _begin(self) -> SearchPlan:
        """A new plan, told all that the history has."""
        plan = self._make()
        self._numbers.clear()
        self._iterations.clear()
        self._handler.restart()
        for row in self._history.rows:
            candidate = next((c for c in plan.search.ask() if c.key == row.key), None)
            if candidate is not None:
                iteration = self._number(candidate)
                plan.search.tell(candidate, row.verdict)
                self._handler.retold(plan, candidate, row.verdict, iteration)
        return plan

    def _one(self) -> bool:
        candidate = next(iter(self.plan.search.ask()), None)
        if candidate is None:
            return False
        artifact = self._handler.artifact(self.plan, candidate, self._number(candidate))
        judgement = self._known(candidate, artifact)
        if judgement is None:
            self._handler.asked(self.plan, candidate, artifact)
            judgement = self._judge.judge(artifact)
        self._settle(candidate, artifact, judgement)
        return True

    def _several(self) -> None:
        """Keep as many candidates in flight as the judge takes; verdicts are told as they come."""
        flying: dict[Future[Judgement], tuple[Candidate, Artifact | None]] = {}
        pool = ThreadPoolExecutor(self._judge.parallel, "judge")
        try:
            while not self.plan.over:
                self._launch(pool, flying)
                if not flying:
                    return
                landed, _ = wait(flying, return_when=FIRST_COMPLETED)
                for future in landed:
                    self._settle(*flying.pop(future), future.result())
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            self._judge.stop()
            pool.shutdown(wait=True)

    def _launch(
        self, pool: ThreadPoolExecutor, flying: dict[Future[Judgement], tuple[Candidate, Artifact | None]]
    ) -> None:
        keys = {candidate.key for candidate, _ in flying.values()}
        for candidate in self.plan.search.ask():
            if candidate.key in keys or len(flying) >= self._judge.parallel:
                continue
            artifact = self._handler.artifact(self.plan, candidate, self._number(candidate))
            judgement = self._known(candidate, artifact)
            if judgement is not None:
                self._settle(candidate, artifact, judgement)
                return self._launch(pool, flying)
            self._handler.asked(self.plan, candidate, artifact)
            flying[pool.submit(self._judge.judge, artifact)] = candidate, artifact
        return None

    def _known(self, candidate: Candidate, artifact: Artifact | None) -> Judgement | None:
        """A verdict that needs no judge: a replay's, or the one on the same content."""
        replayed = self._handler.known(candidate, self._number(candidate))
        if replayed is not None:
            return Judgement(replayed, "replay")
        found = self._history.cached(artifact.key) if artifact and self._handler.cached else None
        return None if found is None else replace(found, by="cache", seconds=0.0)

    def _settle(self, candidate: Candidate, artifact: Artifact | None, judgement: Judgement) -> None:
        """Take a verdict in; it is on file before anything follows from it."""
        about = artifact.about if artifact else CandidateRow(candidate.key, candidate.phase)
        content = artifact.key if artifact and self._handler.cached else ""
        self._history.add(about, judgement, content)
        self._handler.told(self.plan, candidate, artifact, judgement, self._number(candidate))
        self.plan.search.tell(candidate, judgement.verdict)
        if judgement.by in ("cache", "replay"):
            self.cached += 1
        else:
            self.checks += 1
        self._progress(about.node or "")

    def _progress(self, node: str) -> None:
        told = self.plan.search.progress()
        total = None if told.remaining is None else told.judged + round(told.remaining)
        self._context.progress(told.judged, total, "checks", node)

    def _let_machine(self) -> None:
        machine = self._machine() if self._machine else None
        if machine is None:
            self._context.warn("the machine cannot judge: no two sides were given")
            return
        self._judge = machine

    def _number(self, candidate: Candidate) -> int:
        """The number of a question within its phase, from 0."""
        if candidate.key not in self._iterations:
            self._iterations[candidate.key] = self._numbers[candidate.phase]
            self._numbers[candidate.phase] += 1
        return self._iterations[candidate.key]
