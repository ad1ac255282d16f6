"""The comparison as a judge: a candidate runs on the suspect, fed with the reference's tensors.

What the user sets for outputs (an absolute 1e-5 by default) says nothing of a tensor of another scale. An inner tensor
is judged by the bound that its dtype implies (debugtools.compare.arithmetic.tolerance), unless the user gave it an atol
or rtol, by name or for all tensors. The bound is eight times the one of the layer table:

    rtol = 128 u sqrt(depth)        atol = rtol * rms(reference)        depth: nodes in a row within the candidate

7.6e-6 for one float32 node, which single elements of clean nodes stay below: in DenseNet-121, ResNet-50 and Inception
v2 on the CPU the worst of 1,595 nodes came to 0.34 of it, and the worst of 450 larger cuts, optimised against not, to
1.06. The tensor as a whole is judged by what rounding explains of the candidate's steps, as in the layer table and in
`debug locate` (debugtools.compare.table.rounding). A tolerance of the user's that is tighter blames nobody: what
rounding explains passes in any case. Where a candidate is beyond it because it magnifies rounding, not as it computes
wrongly, its inputs tell: moved by a few units in the last place, they move the output as far.
"""

import math
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, cast

import msgspec
import numpy as np
from msgspec.structs import replace

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import LayerwiseError, MissingDependency
from layerwise._tool.backends.runner import Loadable, Runner, open_runner
from layerwise._tool.backends.tensors import dtype_name, is_floating
from layerwise._tool.debugtools.compare.arithmetic.comparison import Comparison
from layerwise._tool.debugtools.compare.arithmetic.metrics import compare_arrays
from layerwise._tool.debugtools.compare.arithmetic.tolerance import UNIT_ROUNDOFF, Rule, Tolerances, unit_roundoff
from layerwise._tool.debugtools.compare.arithmetic.totals import worst
from layerwise._tool.debugtools.compare.quantised.coarsest import rounded_to
from layerwise._tool.debugtools.compare.sides.stream import of_cut
from layerwise._tool.debugtools.compare.spec import MetricName
from layerwise._tool.debugtools.compare.table.between import Step
from layerwise._tool.debugtools.compare.table.rounding import Made, StepRule
from layerwise._tool.debugtools.compare.table.step import LUCK, MOVED, lost_below, scale_of, scale_of_array
from layerwise._tool.debugtools.search.judges.protocol import Artifact, Judge, Judgement
from layerwise._tool.debugtools.search.judges.subject import Subject
from layerwise._tool.debugtools.search.rows import Numbers
from layerwise._tool.debugtools.search.strategies.protocol import Verdict

_WIDER = 64  # in depth: eight times the bound
_TWICE = 2.0
_FREE_OF_SCALE = frozenset({"simple", "cosine_similarity", "psnr", "snr"})


class InnerRules:
    """Compares inner tensors of a subject by its comparison's rules, made fit for them.

    level: relative error that most of the suspect's nodes have by themselves, 0 for one that computes as its types do.
    """

    def __init__(self, subject: Subject, level: float = 0.0) -> None:
        self._subject, self._level = subject, level
        spec = subject.setup.spec
        self._rule = StepRule(len({side.backend for side in subject.setup.sides}) == 1)
        suspect = subject.suspect.spec
        self._optimised = suspect.kind == "onnxrt" and suspect.graph_optimization_level != "disable"
        self._tolerances = Tolerances(msgspec.structs.replace(spec.tolerance, auto=True))
        self._metrics = cast(Sequence[MetricName], [m for m in spec.metrics if m in _FREE_OF_SCALE] or ["simple"])

    def compare(self, artifact: Artifact, name: str, a: Array, depth: int) -> Comparison:
        """Compare a candidate's output with the reference's; depth: nodes in a row behind it in the candidate."""
        reference = self._subject.tensors.raw(name)
        result = self._elements(artifact, name, a, reference, depth)
        if result.rule.auto and result.passed and result.rel_l2:
            self._whole(artifact, result, reference, depth)
        return result

    def _whole(self, artifact: Artifact, result: Comparison, reference: Array, depth: int) -> None:
        """Judge the relative L2 error by what rounding in the candidate's nodes explains."""
        nodes = [self._subject.cut.nodes[i] for i in artifact.nodes]
        types = [*result.dtypes, *(kind for node in nodes for kind in rounded_to(node))]
        types += [dtype_name(array) for array in artifact.feeds.values()]
        if not unit_roundoff(types):
            return
        level = _TWICE * self._level * math.sqrt(depth)
        made = Made(tuple(Step(node, self._subject.cut.initializers, str, last=False) for node in nodes), depth)
        bound = partial(self._rule.bound, made, types, scale=scale_of(result))
        longer = math.sqrt(depth)  # what each step adds is handed on by those behind it
        least = level + lost_below(reference, types) * longer
        if (result.rel_l2 or 0.0) <= least + longer * bound(terms=1):
            return
        read = [scale_of_array(array) for array in artifact.feeds.values() if is_floating(dtype_name(array))]
        explained = bound(terms=made.terms(self._subject.shape, reference.size), read=read, optimised=self._optimised)
        result.rule = replace(result.rule, bound=least + longer * explained)
        if not (result.rel_l2 or 0.0) <= (result.rule.bound or 0.0):
            result.verdicts = dict.fromkeys(result.verdicts, False)

    def _elements(self, artifact: Artifact, name: str, a: Array, reference: Array, depth: int) -> Comparison:
        rule, types = self._tolerances.rule(name), self._stated(artifact)
        unit = unit_roundoff((dtype_name(a), dtype_name(reference), *types))
        wider = max(_WIDER, round((_TWICE * self._level / unit) ** 2)) if unit else _WIDER
        judged = partial(compare_arrays, a, reference, metrics=self._metrics, depth=wider * depth, types=types)
        result = judged(rule)
        if result.passed is False and not rule.auto:
            bound = judged(replace(rule, auto=True))
            return bound if bound.passed else result
        return result

    def _stated(self, artifact: Artifact) -> list[str]:
        """What a candidate's graph rounds to where the reference runs the same one; what it alone states may be the
        fault.
        """
        cut = self._subject.cut
        if self._subject.differ:
            return []
        read = {name for i in artifact.nodes for name in cut.reads[i] if name in cut.initializers}
        found = [kind for i in artifact.nodes for kind in rounded_to(cut.nodes[i])]
        return [*found, *sorted({dtype_name(cut.initializers[name].data_type) for name in read})]


STEP = 16
"""Units roundoff by which inputs are moved."""
LARGE = 0.1
"""Relative L2 error that is never put down to rounding."""


class Rounding:
    """Whether an error is a fault or rounding that the candidate magnifies: it is run again, when somebody asks.

    The inputs are moved by a few units roundoff of their dtype, each up or down at random, and all up. Where that moves
    the output by as much as it is off, nothing can be concluded from the error: correct evaluations are as far off (the
    idea of stochastic arithmetic: Vignes 1974; Parker, "Monte Carlo Arithmetic", 1997).
    """

    def __init__(self, runner: Runner, feed: Mapping[str, Array]) -> None:
        self._runner, self._feed = runner, feed
        self._known: list[Mapping[str, Array]] = []

    def explains(self, error: Comparison, name: str, made: Array) -> bool:
        """Whether output `name`, which came out as `made`, is off by no more than rounded inputs move it.

        Where no single element is beyond its tolerances, inputs that are rounded once count, as in `debug locate`.
        """
        if error.rel_l2 is None or not error.rel_l2 <= LARGE:
            return False
        once = (MOVED + LUCK / math.sqrt(max(1, made.size))) / STEP
        least, times = (0.0, 1.0) if error.over else (error.rule.bound or 0.0, once)
        return any(error.rel_l2 <= least + times * _distance(again[name], made) for again in self._runs())

    def _runs(self) -> Iterator[Mapping[str, Array]]:
        yield from self._known
        for number in range(len(self._known), 2):
            self._known.append(self._runner.infer(moved(self._feed, at_random=number == 0)).outputs)
            yield self._known[-1]


def moved(feed: Mapping[str, Array], *, at_random: bool) -> dict[str, Array]:
    """The feed with each floating value moved by a few units roundoff: at random, the same each time, or all up."""
    random = np.random.default_rng(0) if at_random else None
    return {name: _moved(array, random) for name, array in feed.items()}


def _moved(array: Array, random: np.random.Generator | None) -> Array:
    name = dtype_name(array)
    if not is_floating(name) or name not in UNIT_ROUNDOFF:
        return array
    steps: Any = random.integers(0, 2, array.shape, np.int8) * 2 - 1 if random is not None else 1
    with np.errstate(all="ignore"):
        wide: Array = array.astype(np.float64) * (1 + STEP * UNIT_ROUNDOFF[name] * steps)
        there = wide.astype(array.dtype)
    return np.where(np.isfinite(there), there, array)  # the largest value of a type stays one


def _distance(again: Array, made: Array) -> float:
    found = compare_arrays(again, made, Rule(), metrics=()).rel_l2
    return 0.0 if found is None or found != found else found


_VARIES = re.compile(r"'[^']*'|\b0x[0-9a-f]+\b|\d+|/\S+")
_SEVERAL = "TensorRT's parser refuses the model: "  # then a line for each node


class ComparisonJudge(Judge):
    """Judges in this process, one candidate at a time; only the suspect runs.

    A candidate is bad if one of its outputs is off, by `InnerRules`; if it cannot be built or run it is skipped, unless
    that is the failure that is searched: then the same error is bad, and a candidate that runs is good.
    level: as `InnerRules` takes it.
    """

    def __init__(self, subject: Subject, error: str = "", level: float = 0.0) -> None:
        self._subject, self._error = subject, _kinds(error)
        self._rules = InnerRules(subject, level)
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
            result = self._rules.compare(artifact, name, made[name], depths[name])
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
