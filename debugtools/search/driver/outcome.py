"""What a reduction or a bisection has come to: found sets verified, told in words."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.search.driver.files import Best
from layerwise._tool.debugtools.search.driver.loop import SearchLoop, SearchPlan
from layerwise._tool.debugtools.search.driver.verify import Verifier, is_bad
from layerwise._tool.debugtools.search.judges.protocol import Judgement
from layerwise._tool.debugtools.search.judges.subject import Subject
from layerwise._tool.debugtools.search.rows import Culprits, NodeSearchResult
from layerwise._tool.debugtools.search.strategies.bisect import BisectResult
from layerwise._tool.debugtools.search.strategies.flaky import FlakyResult
from layerwise._tool.debugtools.search.strategies.prefix import PrefixResult
from layerwise._tool.debugtools.search.strategies.protocol import Verdict
from layerwise._tool.debugtools.search.strategies.reduce import ReduceResult

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext

_TRY = {
    "comparison": "Give the inputs that show it (--load-inputs), tighter tolerances (--atol, --rtol, --tolerance auto)"
    ", or look at every tensor: layerwise run … --mark-all.",
    "command": "See what the command printed; --fail-code and --fail-regex decide what counts as a failure.",
    "person": "",
}


class SearchOutcome:
    """by: who judges."""

    def __init__(self, context: "JobContext", what: str, by: str, started: float) -> None:
        self._context, self._what, self._by, self._started = context, what, by, started

    def not_reproduced(self, original: Judgement) -> NodeSearchResult:
        """The whole model does not fail, or nobody can say."""
        if original.verdict is Verdict.GOOD:
            text = f"The original model passes: there is no failure to search for. {_TRY[self._by]}"
        else:
            text = f"Whether the original model fails cannot be told: {original.note or 'it was skipped'}."
        return self._result([], original.verdict, text.strip(), False)

    def result(
        self, plan: SearchPlan, loop: SearchLoop, subject: Subject, verifier: Verifier, best: Best, replay: Path | None
    ) -> NodeSearchResult:
        """Verify and write what the search has come to."""
        told = plan.search.result()
        if isinstance(told, ReduceResult | PrefixResult):
            found, text = self._reduced(told, plan, verifier, best)
        else:
            found, text = self._bisected(told, plan, subject, verifier, best)
        if self._by == "command" and not loop.passed:
            self._context.warn("every candidate failed, the smallest too: does the check fail for another reason?")
        verified = bool(found) and all(map(is_bad, found))
        min_good = best.save_good()
        result = self._result(found, Verdict.BAD, text, verified)
        replayed = str(replay) if replay else None
        return replace(result, checks=loop.checks, cached=loop.cached, replay=replayed, min_good=min_good)

    def _result(self, found: Sequence[Culprits], original: str, text: str, verified: bool) -> NodeSearchResult:
        return NodeSearchResult(
            passed=bool(found) and verified, search=self._what, by=self._by, found=list(found), original=original,
            verified=verified, summary=text, seconds=time.perf_counter() - self._started,
        )  # fmt: skip

    def _reduced(
        self, told: ReduceResult | PrefixResult, plan: SearchPlan, verifier: Verifier, best: Best
    ) -> tuple[list[Culprits], str]:
        if isinstance(told, ReduceResult):
            sets, minimal = list(told.sets), True
            if not sets and best.found is not None:
                sets, minimal = [told.best], False
        else:
            sets, minimal = ([told.best] if best.found is not None else []), len(told.best) == 1
        if not sets:
            return [], self._nothing(plan)
        sets.sort(key=len)
        found = []
        for number, nodes in enumerate(sets, 1):
            path = best.path if number == 1 else best.path.with_name(f"{best.path.stem}_{number}{best.path.suffix}")
            found.append(verifier.found(number, [plan.order[k] for k in nodes], path, minimal))
        more = " There are more: mend these, then search again." if plan.enough() and not plan.search.done else ""
        return found, _told(found) + ("" if minimal else self._further(found[0])) + more

    def _further(self, found: Culprits) -> str:
        return f" Perhaps it can be reduced further: reduce {shown(found.path)} again, with --mode ddmin."

    def _nothing(self, plan: SearchPlan) -> str:
        skipped = any(state == "skipped" for state, _ in plan.search.band())
        if self._by != "comparison":
            return "No part of the model fails on its own: nothing smaller than the whole was found."
        if skipped:
            return "The whole differs, but parts of it cannot be judged: no smaller failing part was found."
        return (
            "The outputs differ by more than the tolerance, but no node by more than rounding explains: the difference "
            "adds up on the way. Loosen the tolerance, or see where it grows: layerwise run … --mark-all."
        )

    def _bisected(
        self, told: BisectResult | FlakyResult, plan: SearchPlan, subject: Subject, verifier: Verifier, best: Best
    ) -> tuple[list[Culprits], str]:
        first = told.first_bad
        if first is None:
            return [], self._nothing(plan)
        i = plan.order[first]
        found = verifier.found(1, [i], best.path, True)
        text = _told([found])
        if not is_bad(found):
            found = self._with_all_before(first, i, plan, subject, verifier, best)
            text = f"{_name(found)} is the first node after which the model fails, but only with what comes before it."
        if isinstance(told, FlakyResult):
            rates = {"false_good": told.false_good, "false_bad": told.false_bad}
            found = replace(found, probability=told.probability, **rates)
            text += f" Probability {told.probability:.4f}."
        else:
            skipped = [subject.describe(plan.order[k]) for k in told.skipped]
            found = replace(found, skipped=skipped, monotone=told.monotone)
            if skipped:
                text += f" {len(skipped)} nodes before it could not be judged: any of them may be the first."
        return [found], text

    def _with_all_before(
        self, first: int, i: int, plan: SearchPlan, subject: Subject, verifier: Verifier, best: Best
    ) -> Culprits:
        """The node does not fail alone: what fails is everything up to it."""
        nodes = list(plan.order[: first + 1])
        found = verifier.found(2, nodes, best.path, False)
        return replace(found, nodes=[subject.describe(i)], with_all_before=len(nodes))


def _told(found: Sequence[Culprits]) -> str:
    parts = "; ".join(_name(each) for each in found[:5]) + (f"; and {len(found) - 5} more" if len(found) > 5 else "")
    if len(found) == 1 and len(found[0].nodes) > 1:
        text = f"{len(found[0].nodes)} nodes fail together: {parts}."
    else:
        text = f"{'One culprit' if len(found) == 1 else f'{len(found)} independent culprits'}: {parts}."
    wrong = [each for each in found if not is_bad(each)]
    if wrong:
        text += " Tried once more, " + ("it" if len(found) == 1 else "some of them") + " did not fail: "
        text += wrong[0].note or "the fault may come and go."
    return text


def _name(found: Culprits) -> str:
    nodes = found.nodes
    names = ", ".join(f"{shown(node.node, 80)} ({shown(node.op, 40)})" for node in nodes[:5])
    return names + (f" and {len(nodes) - 5} more" if len(nodes) > 5 else "")
