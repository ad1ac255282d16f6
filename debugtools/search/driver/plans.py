"""Searches over the nodes of a subject: which one, over which nodes, and what a candidate of it stands for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from layerwise._tool.debugtools.search.judges.subject import Subject
from layerwise._tool.debugtools.search.spec import DebugSpec
from layerwise._tool.debugtools.search.strategies.flaky import FlakyBisect
from layerwise._tool.debugtools.search.strategies.hinted import HintedBisect
from layerwise._tool.debugtools.search.strategies.prefix import PrefixReduce
from layerwise._tool.debugtools.search.strategies.protocol import Candidate, Search
from layerwise._tool.debugtools.search.strategies.reduce import ReduceSearch

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
