"""Whether a tensor is off since kernels for uint8 times int8 saturate where the suspect, or the reference, makes it."""

from collections.abc import Iterable, Mapping
from functools import cached_property

from layerwise._tool.backends.arrays import Array, Feed
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.debugtools.compare.arithmetic.metrics import compare_arrays
from layerwise._tool.debugtools.compare.arithmetic.tolerance import Rule
from layerwise._tool.debugtools.compare.quantised.saturating import (
    Saturating,
    affected,
    is_cause,
    product_label,
    products,
)
from layerwise._tool.debugtools.compare.result import FAR, Saturated
from layerwise._tool.debugtools.compare.sides.side import ModelSide, Side
from layerwise._tool.debugtools.locate.executed import plain_outputs
from layerwise._tool.debugtools.locate.part import LocalRuns, Part
from layerwise._tool.debugtools.locate.tensor_error import relative_l2
from layerwise._tool.debugtools.locate.walk import Met, Walk
from layerwise._tool.surgery.cut.explode import Exploder

_LEAST = 1e-3  # of relative L2 error, from which on it is looked at
_TRIES = 200  # nodes in all, each of which opens a session


class SaturationTests:
    """names: tensors that both sides have, by the suspect's observed graph, with the comparison's names."""

    def __init__(self, suspect: ModelSide, reference: Side, names: Mapping[str, str]) -> None:
        self._names, self._tries = names, _TRIES
        self._suspect, self._reference = suspect, reference
        self._mine = _PreciseRuns(suspect, names) if affected(suspect) else None
        self._theirs = None
        if affected(reference):
            own = map(reference.own, names.values())
            self._theirs = _PreciseRuns(reference, [reference.made[name] for name in own if name in reference.made])

    def told(self, met: Met, walk: Walk, error: float, noise: float, feed: Mapping[str, Array]) -> Saturated | None:
        """What saturates, if that is most of the error that a tensor has on the reference's inputs (relative L2).

        noise: what formats explain of it. feed: the reference's inputs, by its names.
        """
        if met.local is None or error <= max(noise, _LEAST) or self._tries <= 0:
            return None
        wrong: list[tuple[Side, _PreciseRuns, str]] = []
        mine: Array | None = met.local
        theirs: Array | None = met.reference
        if self._mine is not None and self._mine.multiplies(met.tensor):
            wrong.append((self._suspect, self._mine, met.tensor))
            mine = walk.alone(met.tensor, walk.inputs(met.tensor), self._mine.runs)
        own = self._reference.own(met.name)
        if self._theirs is not None and self._theirs.multiplies(own):
            wrong.append((self._reference, self._theirs, own))
            theirs = self._precise_reference(self._theirs, met, own, walk, feed)
        self._tries -= len(wrong)
        if not wrong or mine is None or theirs is None or mine.shape != theirs.shape:
            return None
        left = relative_l2(mine, theirs)[0]
        if not is_cause(error, left):
            return None
        runs, tensor = wrong[0][1:]
        names = [side.name for side, _, _ in wrong]
        return Saturated(met.name, error, left, len(runs.products), runs.label(tensor), names, wrong[0][0].index)

    def _precise_reference(
        self, runs: "_PreciseRuns", met: Met, own: str, walk: Walk, feed: Mapping[str, Array]
    ) -> Array | None:
        """A tensor of the reference, `own` there, on what the reference has; None where that is not there any more."""
        known = dict(feed)
        for name in runs.feeds(own):
            kept = known.get(name) if name in known else self._kept(name, walk)
            if kept is None:
                return None
            known[name] = kept
        ((_, made),) = runs.runs.run([own], known, ())
        return None if made is None or isinstance(made, str) else self._reference.naming.laid(met.name, made)

    def _kept(self, own: str, walk: Walk) -> Array | None:
        """A tensor of the reference in its own layout, None where that is not there any more."""
        naming = self._reference.naming
        found = ((name, walk.reference.kept(name)) for name in naming.commons(own))
        return next((naming.unlaid(name, kept) for name, kept in found if kept is not None), None)


def plain_saturation(suspect: ModelSide, reference: Side, feeds: tuple[Feed, Feed]) -> Saturated | None:
    """What saturates in the sides' runs as they are configured, of outputs that it drives apart: the optimiser makes
    such products of nodes that are right by themselves. feeds: as each side takes them.
    """
    if not affected(suspect) and not affected(reference):
        return None
    asked = Saturating([suspect, reference])
    try:
        mine, theirs = plain_outputs(suspect, reference, feeds, 0)
    except LayerwiseError:
        return None
    given = {suspect.common(name): array for name, array in feeds[0].items()}
    for name in mine.keys() & theirs.keys():
        arrays = mine[name], theirs[name]
        result = compare_arrays(*arrays, Rule(auto=True), metrics=("simple",))
        if (result.rel_l2 or 0.0) > FAR:
            asked.ask((0, 1), name, arrays, result, given, lambda *tensors: tensors)
    return next(iter(asked.found.values()), None)


class _PreciseRuns:
    """Regions of a side, run by kernels that do not saturate."""

    def __init__(self, side: ModelSide, cuts: Iterable[str]) -> None:
        part = Part.observed(side)
        self._cut, self._exploder = part.cut, Exploder(part.cut, list(cuts))
        self.runs = LocalRuns(part, self._exploder, precise=True)

    @cached_property
    def products(self) -> frozenset[int]:
        return frozenset(products(self._cut))

    def multiplies(self, tensor: str) -> bool:
        """Whether a tensor's region multiplies so."""
        return tensor in self._cut.maker and not self.products.isdisjoint(self._exploder.regions.of(tensor).nodes)

    def feeds(self, tensor: str) -> tuple[str, ...]:
        """What its region reads."""
        return self._exploder.feeds([tensor])

    def label(self, tensor: str) -> str:
        """The first node there that multiplies so."""
        return product_label(self._cut, self._exploder.regions.of(tensor).nodes)
