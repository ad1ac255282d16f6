"""The failure as the user sees it: both sides run as configured, their outputs compared by the user's tolerances.

As a judge its sessions are opened anew each time: what changes from build to build shows.
"""

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from msgspec import to_builtins

from layerwise._tool.backends.arrays import Feed
from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.feeds.sources import make_feeds
from layerwise._tool.backends.results.inference import IterationResult
from layerwise._tool.debugtools.compare.aligning.when import align_sides
from layerwise._tool.debugtools.compare.pairing.left_out import compared
from layerwise._tool.debugtools.compare.rows import LayerRow
from layerwise._tool.debugtools.compare.sides.feeds import common_feeds, same_feeds
from layerwise._tool.debugtools.compare.sides.models import OpaqueModel
from layerwise._tool.debugtools.compare.sides.setup import Setup
from layerwise._tool.debugtools.compare.sides.side import ModelSide, Side
from layerwise._tool.debugtools.compare.sides.torch import TorchSide
from layerwise._tool.debugtools.compare.table.comparison import RowContext
from layerwise._tool.debugtools.compare.table.output_rows import plain_rows
from layerwise._tool.debugtools.compare.table.pairs import Comparer
from layerwise._tool.debugtools.compare.table.places import Places
from layerwise._tool.debugtools.compare.table.saving import Savers, severity
from layerwise._tool.debugtools.search.judges.protocol import Artifact, Judge, Judgement
from layerwise._tool.debugtools.search.rows import Numbers
from layerwise._tool.debugtools.search.strategies.protocol import Verdict

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


_MEASURED = ("tensor", "max_abs", "max_rel", "rel_l2", "over", "atol", "rtol", "note")


class Original:
    """Two sides over all their inputs.

    suspect, reference: the first and the last side; error: what the suspect said when it could not run.
    """

    def __init__(self, context: "JobContext", setup: Setup) -> None:
        self.context, self.setup = context, setup
        self.suspect, self.reference = ends(setup)
        if isinstance(self.suspect, TorchSide):
            raise UsageError(
                "parts of a PyTorch module are no models of their own: give an ONNX model as the first side; "
                "`debug locate` takes a module"
            )
        for side in setup.model_sides:
            side.similar_inputs = setup.spec.align != "names"
        self.error = ""
        self._rows: list[LayerRow] = []
        places = Places(setup.model, setup.whole_graph)
        self._comparer = Comparer(setup.spec, setup.sides, places, lambda row, *_: self._take(row))
        savers = Savers(setup.spec, setup.sides)
        self._shared = RowContext(context, setup.spec, setup.model, setup.sides, setup.pairs, savers, None)

    def feeds(self) -> Iterator[tuple[int, Feed]]:
        """The inputs of each iteration, by the comparison's names."""
        own = self.suspect
        inputs = own.runner.inputs if isinstance(own.model, OpaqueModel) else own.model.inputs
        spec = self.setup.plan_feeds(self.context, own)
        made = same_feeds(self.context, spec, iter(make_feeds(spec, inputs, self.context.warn)))
        feeds = common_feeds(self.setup.sides, made, lambda _, text: self.context.warn(text))
        for number, feed in enumerate(feeds):
            if self._are_strangers():
                align_sides(self.context, self.setup, feed)
            yield number, feed

    def _are_strangers(self) -> bool:
        """Whether the sides run two models that have no output in common by its name."""
        models = [side.model for side in (self.suspect, self.reference) if isinstance(side, ModelSide)]
        if len(models) < 2 or models[0] is models[1] or not all(model.has_graph for model in models):
            return False
        return set(models[0].cut.outputs).isdisjoint(map(self.reference.common, models[1].cut.outputs))

    def judge(self, number: int, feed: Feed) -> Judgement:
        """Bad if an output differs, or if the suspect cannot run what the reference can; `measured`: the worst one.

        A skip where nothing was compared; its note says why.
        """
        started = time.perf_counter()
        judgement = self._judged(number, feed)
        return replace(judgement, seconds=time.perf_counter() - started)

    def _judged(self, number: int, feed: Feed) -> Judgement:
        self._rows.clear()
        self._shared.left_out.clear()
        self.error = ""
        reference = self._run(self.reference, number, feed)
        try:
            suspect = self._run(self.suspect, number, feed)
        except LayerwiseError as error:
            self.error = str(error)
            return Judgement(Verdict.BAD, "comparison", measured=Numbers(iteration=number), note=self.error)
        plain_rows(self._shared, self._comparer, number, [suspect, reference])
        rows = [row for row in self._rows if compared(row)]
        if not rows:
            names = [side.name for side in self.setup.sides]
            return Judgement(Verdict.SKIP, "comparison", note=self._shared.left_out.nothing(names, self.setup.pairs[0]))
        bad = [row for row in rows if row.passed is False]
        worst = to_builtins(max(bad or rows, key=severity))
        found = {key: worst[key] for key in _MEASURED if worst.get(key) is not None}
        measured = Numbers(**found, iteration=number)
        return Judgement(Verdict.BAD if bad else Verdict.GOOD, "comparison", measured=measured)

    def _take(self, row: LayerRow) -> None:
        self._rows.append(row)
        self._shared.left_out.row(row)

    def _run(self, side: Side, number: int, feed: Feed) -> IterationResult:
        if not isinstance(side, ModelSide):
            return side.plain(number, feed)
        return side.plain(number, side.fit(feed, self.context.warn))


def stronger(before: Judgement | None, now: Judgement) -> Judgement:
    """The later of two iterations' verdicts, but for one that compares nothing: it does not undo what another says."""
    return before if before is not None and now.verdict is Verdict.SKIP else now


def ends(setup: Setup) -> tuple[ModelSide, Side]:
    """The suspect and the reference of a comparison. UsageError unless the first side runs a model."""
    if len(setup.sides) > 2:
        raise UsageError(f"a search takes two sides, the suspect first; {len(setup.sides)} were given")
    suspect = setup.sides[0]
    if not isinstance(suspect, ModelSide):
        raise UsageError("the first side is the suspect: it must run a model, not be read from a file")
    return suspect, setup.sides[-1]


class RerunJudge(Judge):
    """Bad if any iteration fails by the user's tolerances. LayerwiseError if no iteration compares anything."""

    def __init__(self, context: "JobContext", setup: Setup) -> None:
        self._setup, self._original = setup, Original(context, setup)

    def judge(self, artifact: Artifact | None) -> Judgement:
        started = time.perf_counter()
        found: Judgement | None = None
        for number, feed in self._original.feeds():
            found = stronger(found, self._original.judge(number, feed))
            if found.verdict is Verdict.BAD:
                break
        self._setup.close()
        if found is None or found.verdict is Verdict.SKIP:
            raise LayerwiseError(found.note if found else "nothing was compared: there are no inputs")
        return replace(found, seconds=time.perf_counter() - started)
