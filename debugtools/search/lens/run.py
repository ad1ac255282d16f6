"""A lens job from beginning to end: every candidate measured, the prediction checked, a set chosen and proved."""

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.feeds.sources import make_feeds
from layerwise._tool.backends.jobs.journal.earlier_attempts import typed
from layerwise._tool.backends.model.reads import every_node
from layerwise._tool.backends.specs import RunnerSpec, read_spec
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.sides.setup import Setup
from layerwise._tool.debugtools.compare.sides.side import ModelSide
from layerwise._tool.debugtools.compare.spec import NO_FILES, MarkSpec
from layerwise._tool.debugtools.search.lens.choice import Chooser
from layerwise._tool.debugtools.search.lens.costs import UNITS, set_costs
from layerwise._tool.debugtools.search.lens.effects import Effects, some_sets
from layerwise._tool.debugtools.search.lens.errors import root_mean_square
from layerwise._tool.debugtools.search.lens.grouped import LEAST, GroupedEffects
from layerwise._tool.debugtools.search.lens.judging import Judging
from layerwise._tool.debugtools.search.lens.lens import Lens
from layerwise._tool.debugtools.search.lens.mixed_models import MixedModels
from layerwise._tool.debugtools.search.lens.predict import frontier
from layerwise._tool.debugtools.search.lens.proof import Proving
from layerwise._tool.debugtools.search.lens.rows import EffectRow, KeptRow, LensResult, SetRow
from layerwise._tool.debugtools.search.lens.sentences import concluded
from layerwise._tool.debugtools.search.lens.sets import alike, set_key, set_row
from layerwise._tool.debugtools.search.lens.spec import Bound, LensSpec
from layerwise._tool.debugtools.search.lens.writing import is_real
from layerwise._tool.surgery.cut.randomness import RANDOM_OPS
from layerwise._tool.surgery.cut.segments import GraphCut
from layerwise._tool.surgery.model.structure import node_label
from layerwise._tool.surgery.precision.conversion import labels
from layerwise._tool.surgery.quantise.arithmetic import LEAST_OPSET
from layerwise._tool.surgery.quantise.formats import QUANTISED_OPS

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext

_MOST = 0.9


def debug_lens(context: "JobContext") -> LensResult:
    """Measure what each node's low precision does to the outputs, by the LensSpec in `context.params`.

    Emits rows of the tables effects and sets. LayerwiseError for what the user can mend.
    """
    spec = read_spec(context.params, LensSpec, "what to measure")
    return context.resumed(lambda: concluded(_run(context, spec)))


def _run(context: "JobContext", spec: LensSpec) -> LensResult:
    given = [runner for runner in spec.compare.runners if runner.kind != "saved"] or [RunnerSpec(kind="onnxrt")]
    compare = replace(spec.compare, runners=given[:1], marks=MarkSpec(), observe="auto", statistics=False, **NO_FILES)
    setup = Setup(compare)
    try:
        (side,) = setup.model_sides
        if side.spec.kind not in ("onnxrt", "reference"):
            raise UsageError("the lens runs a model's graph with onnxruntime: give --onnxrt, or no runner")
        return LensRun(context, spec, setup, side).run()
    finally:
        setup.end()


class LensRun:
    """One lens as a job."""

    def __init__(self, context: "JobContext", spec: LensSpec, setup: Setup, side: ModelSide) -> None:
        self._context, self._spec, self._side = context, spec, side
        self._started = time.perf_counter()
        self._runs = 0
        made = make_feeds(setup.plan_feeds(context, side), side.model.inputs, context.warn)
        feeds = [dict(side.fit(feed, context.warn)) for feed in made]
        if not feeds:
            raise UsageError("there are no inputs to run the model on")
        if not (spec.compare.feeds.files or spec.compare.feeds.script) and spec.rounding.to not in ("fp16", "bf16"):
            context.warn("the inputs are made up, and ranges and effects are those of these: give real inputs with "
                         "--load-inputs or --data-loader-script")  # fmt: skip
        _check(side.model.cut)
        keep = labels(side.model.cut.nodes, spec.keep, spec.keep_types)
        nodes = enumerate(side.model.cut.nodes)
        self._kept = [KeptRow(i, node_label(node), node.op_type) for i, node in nodes if node_label(node) in keep]
        tolerance = spec.compare.tolerance if spec.bound and spec.bound.metric == "tolerance" else None
        self._lens = Lens(side.model, side.spec, spec.rounding, feeds, ops=spec.ops, keep=keep, tolerance=tolerance)

    def run(self) -> LensResult:
        """Measure and choose; the job's result."""
        lens = self._lens
        try:
            self._context.progress(0, len(lens.candidates), "nodes measured", "calibrating")
            lens.begin(at_once=not (self._spec.prove or self._grouped()))
            bound = self._spec.bound or Bound(value=math.inf)
            self._judging = Judging(bound, self._spec.compare.tolerance, lens)
            self._proving = Proving(self._context, lens, self._side.spec, self._judging)
            self._warn_of_the_rest()
            if self._spec.prove:
                return self._proved()
            if self._grouped():
                return self._surveyed()
            rows = self._effects()
            set_costs(list(rows.values()), self._spec.cost, self._spec.times, lens.form.bits, self._context.warn)
            sets = self._checks(rows)
            result = replace(self._result(rows, sets), runs=len(rows) + len(sets))
            return result if self._spec.bound is None else self._chosen(rows, result, sets)
        finally:
            lens.close()

    def _grouped(self) -> bool:
        """Whether groups tell enough: of FP16 and bfloat16 what is rounded depends on the neighbours."""
        spec, lens = self._spec, self._lens
        wanted = spec.bound is not None and not (spec.each or spec.split)
        return wanted and len(lens.candidates) >= LEAST and lens.form.kind != "half"

    def _surveyed(self) -> LensResult:
        """Measure groups, and alone what may have to be kept; choose. What was tried tells whether squares add."""
        found = self._groups(None)
        rows = found.rows()
        return self._chosen(rows, replace(self._result(rows, [found.whole]), runs=found.runs))

    def _groups(self, mixed: MixedModels | None) -> GroupedEffects:
        return GroupedEffects(self._context, self._spec, self._lens, self._judging.allowed(), mixed)

    def _chosen(
        self, rows: Mapping[int, EffectRow], result: LensResult, checks: Sequence[SetRow] = (),
        mixed: MixedModels | None = None,
    ) -> LensResult:  # fmt: skip
        """Choose; by mixed models where the one that is chosen by the switchboard does not keep the bound. checks: sets
        that tell whether squares add, besides those that are tried.
        """
        self._lens.chain.expect(1)
        chooser = Chooser(self._context, self._spec, self._lens, rows, self._judging, self._proving, mixed)
        chosen = chooser.choose(result)
        tries = [row for row in chooser.tries() if row.low]
        if tries or any(row.grouped for row in rows.values()):
            chosen = replace(chosen, **_adding([*checks, *tries], len(rows)))
        if chooser.lost and mixed is None:
            models = MixedModels(self._context, self._proving)
            found = self._groups(models)
            more = found.rows()
            return self._chosen(more, replace(chosen, passed=True, runs=chosen.runs + found.runs), (), models)
        return replace(chosen, seconds=time.perf_counter() - self._started)

    def _warn_of_the_rest(self) -> None:
        """What is not looked at, or cannot be relied on. UsageError where no output is left."""
        lens, warn = self._lens, self._context.warn
        lacking = [name for name in lens.chain.outputs if name not in lens.reference[0]]
        if len(lacking) == len(lens.chain.outputs):
            raise UsageError("none of the model's outputs is a tensor")
        if lacking:
            warn(f"outputs that are no tensors are not looked at: {', '.join(shown(name, 60) for name in lacking[:5])}")
        if not any(root_mean_square(array) for outputs in lens.reference for array in outputs.values()):
            warn("on these inputs no output of floats has a value other than 0 that is finite: no error can be told")
        if lens.unknown:
            warn(
                f"{lens.unknown} nodes are not looked at: inference does not know how many dimensions their inputs have"
            )
        drawn = [node.op_type for node in lens.model.cut.nodes if node.op_type in RANDOM_OPS]
        if drawn:
            warn(f"the model draws random numbers ({shown(drawn[0], 40)}): effects hold what changes from run to run")

    def _effects(self) -> dict[int, EffectRow]:
        lens, context = self._lens, self._context
        earlier = {row.i: row for row in typed(context.previous_rows("effects"), EffectRow)}
        rows = {one.i: earlier[one.i] for one in lens.candidates if one.i in earlier}
        effects = Effects(lens, split=self._spec.split)
        left = [one for one in lens.candidates if one.i not in rows]
        for row in lens.several(left, effects.row):
            context.progress(len(rows), len(lens.candidates), "nodes measured", row.node)
            set_costs([row], self._spec.cost if self._spec.cost != "time" else "nodes", None, lens.form.bits, str)
            rows[row.i] = row
            context.row("effects", row)
        return {one.i: rows[one.i] for one in lens.candidates}

    def _checks(self, rows: Mapping[int, EffectRow]) -> list[SetRow]:
        """Sets that the prediction is held against: all of them at once, and random ones where no choice tries any."""
        every = [one.i for one in self._lens.candidates if rows[one.i].effect is not None]
        count = self._spec.checks if len(every) > 1 and self._spec.bound is None else 0
        sets = [sorted(every), *(some_sets(every, count) if count else ())]
        earlier = {row.key: row for row in typed(self._context.previous_rows("sets"), SetRow) if row.what == "check"}
        left = {key: low for low in sets if (key := set_key(low)) not in earlier}
        for number, row in enumerate(self._lens.several(list(left.values()), self._check_of(rows), 2)):
            self._context.progress(number, len(left), "sets checked")
            self._context.row("sets", row)
            earlier[row.key] = row
        return [earlier[set_key(low)] for low in sets]

    def _check_of(self, rows: Mapping[int, EffectRow]) -> Callable[[Sequence[int]], SetRow]:
        return lambda low: set_row("check", low, rows, self._lens.measured(low))

    def _result(self, rows: Mapping[int, EffectRow], sets: Sequence[SetRow]) -> LensResult:
        lens, first = self._lens, sets[0]
        order = sorted(rows.values(), key=lambda row: -math.inf if row.effect is None else -row.effect)
        return LensResult(
            passed=True, search="precision", format=lens.form.name, candidates=len(rows),
            predicted_all=first.predicted, all_low=first.error, **_adding(sets, len(rows)),
            cost_unit=UNITS[self._spec.cost], real=is_real(lens), frontier=frontier(list(rows.values())),
            left_out=left_out(lens), worst=[row.node for row in order[:5]], checks=len(rows) + len(sets),
            seconds=time.perf_counter() - self._started,
        )  # fmt: skip

    def _proved(self) -> LensResult:
        """All candidates low at once, on the switchboard and as the mixed model; the rest is as it is."""
        lens = self._lens
        result = LensResult(
            search="precision", format=lens.form.name, candidates=len(lens.candidates), left_out=left_out(lens),
            cost_unit=UNITS[self._spec.cost], adds=None,
        )  # fmt: skip
        chooser = Chooser(self._context, self._spec, lens, {}, self._judging, self._proving)
        return replace(chooser.proved(result, self._kept), seconds=time.perf_counter() - self._started)


def _check(cut: GraphCut) -> None:
    """UsageError for a model that cannot be switched."""
    opset = next((entry.version for entry in cut.model.opset_import if entry.domain in ("", "ai.onnx")), 1)
    if opset < LEAST_OPSET:
        raise UsageError(f"this needs opset {LEAST_OPSET} or later, the model has {opset}: `convert --opset 17` first")
    if any(node.op_type in ("QuantizeLinear", "DequantizeLinear") for node in every_node(cut.nodes)):
        raise UsageError("the model is quantised already: it has QuantizeLinear or DequantizeLinear nodes")


def _adding(sets: Sequence[SetRow], candidates: int) -> dict[str, Any]:
    """Whether squares add, by the sets that were measured: fields of the result."""
    told = sorted(row.error / row.predicted for row in sets if row.error is not None and row.predicted)
    within = sum(map(alike, sets))
    adds = within >= _MOST * len(sets) if sets and candidates > 1 else None
    return {"adds": adds, "within": within, "sets": len(sets), "factor": told[len(told) // 2] if told else None}


def left_out(lens: Lens) -> dict[str, int]:
    """Operator -> how many nodes of it lie in bodies and functions, which cannot be switched."""
    model = lens.model.cut.model
    top = Counter(node.op_type for node in model.graph.node)
    inside = Counter(node.op_type for node in every_node(model.graph.node))
    for function in model.functions:
        inside.update(node.op_type for node in every_node(function.node))
    return {op: inside[op] - top[op] for op in QUANTISED_OPS if inside[op] > top[op]}
