"""The comparison as a judge: a candidate runs on the suspect, fed with the reference's tensors."""

import re
import time
from collections.abc import Mapping
from typing import Any

import msgspec
from numpy.typing import NDArray

from layerwise._tool.backends.errors import LayerwiseError, MissingDependency
from layerwise._tool.backends.runner import Loadable, Runner, open_runner
from layerwise._tool.debugtools.compare.arithmetic.metrics import Comparison, worst
from layerwise._tool.debugtools.compare.sides.stream import of_cut
from layerwise._tool.debugtools.search.judges.conditioning import Rounding
from layerwise._tool.debugtools.search.judges.protocol import Artifact, Judgement, OneAtATime
from layerwise._tool.debugtools.search.judges.rules import InnerRules
from layerwise._tool.debugtools.search.judges.subject import Subject
from layerwise._tool.debugtools.search.rows import Numbers
from layerwise._tool.debugtools.search.strategies.protocol import Verdict

Array = NDArray[Any]
_VARIES = re.compile(r"'[^']*'|\b0x[0-9a-f]+\b|\d+|/\S+")
_SEVERAL = "TensorRT's parser refuses the model: "  # then a line for each node


class ComparisonJudge(OneAtATime):
    """Judges in this process, one candidate at a time; only the suspect runs.

    A candidate is bad if one of its outputs is off, by `InnerRules`; if it cannot be built or run it is skipped, unless
    that is the failure that is searched: then the same error is bad, and a candidate that runs is good.
    level: as `InnerRules` takes it.
    """

    def __init__(self, subject: Subject, error: str = "", level: float = 0.0) -> None:
        self._subject, self._error = subject, _kinds(error)
        self._rules = InnerRules(subject.setup.spec, level)
        self._spec = of_cut(subject.suspect.spec)

    def judge(self, artifact: Artifact | None) -> Judgement:
        assert artifact is not None
        started = time.perf_counter()
        verdict, measured, note = self._judged(artifact)
        return Judgement(verdict, "comparison", time.perf_counter() - started, measured, note)

    def _judged(self, artifact: Artifact) -> tuple[Verdict, Numbers, str]:
        if not artifact.gives:
            return Verdict.SKIP, Numbers(), "it makes no tensor that the reference has"
        subject = self._subject
        model = Loadable(data=artifact.build(), folder=subject.suspect.model.file.folder)
        try:
            with open_runner(self._spec, model, name=subject.suspect.name) as runner:
                feed = dict(artifact.feeds)
                made = runner.infer(feed).outputs
                if self._error:
                    return Verdict.GOOD, Numbers(), "it runs"
                return self._compared(artifact, runner, feed, made)
        except MissingDependency:
            raise
        except LayerwiseError as error:
            same = not self._error.isdisjoint(_kinds(str(error)))
            return (Verdict.BAD if same else Verdict.SKIP), Numbers(), str(error)

    def _compared(
        self, artifact: Artifact, runner: Runner, feed: Mapping[str, Array], made: Mapping[str, Array]
    ) -> tuple[Verdict, Numbers, str]:
        depths = self._depths(artifact)
        closest: Numbers | None = None
        rounding = Rounding(runner, feed)
        note = ""
        for name in artifact.gives:
            if name not in made:
                return Verdict.SKIP, Numbers(), f"it gives no value for {name}"
            result = self._rules.compare(name, made[name], self._subject.tensors.raw(name), depths[name])
            if result.passed is False:
                if not rounding.explains(result, name, made[name]):
                    return Verdict.BAD, measured(name, result), ""
                note = f"{name} is off by no more than rounded inputs move it"
            if not made[name].size:
                continue
            if closest is None or (result.rel_l2 or 0.0) > (closest.rel_l2 or 0.0):
                closest = measured(name, result)
        if closest is None:
            return Verdict.SKIP, Numbers(), f"nothing was compared: {', '.join(artifact.gives[:5])} without elements"
        return Verdict.GOOD, closest, note

    def _depths(self, artifact: Artifact) -> dict[str, int]:
        """Nodes in a row behind each tensor that the candidate makes."""
        cut, depths = self._subject.cut, dict[str, int]()
        for i in artifact.nodes:
            depth = 1 + max((depths.get(name, 0) for name in cut.reads[i]), default=0)
            depths.update((name, depth) for name in cut.nodes[i].output)
        return depths


def measured(name: str, result: Comparison) -> Numbers:
    """A comparison's numbers as a row has them."""
    found = Numbers(tensor=name, rel_l2=result.rel_l2, over=result.over, note=result.note)
    if result.totals is None:
        return found
    return msgspec.structs.replace(
        found, max_abs=worst(result.totals.abs), max_rel=worst(result.totals.rel), atol=result.rule.atol,
        rtol=result.rule.rtol,
    )  # fmt: skip


def _kinds(error: str) -> frozenset[str]:
    """What an error says, without what varies from candidate to candidate: names, numbers, paths."""
    told = error.removeprefix(_SEVERAL).splitlines() if error.startswith(_SEVERAL) else [error] if error else []
    return frozenset(_VARIES.sub("…", line) for line in told)
