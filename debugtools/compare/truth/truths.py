"""The truth of each tensor of one pair of sides, from the tensors that both have made so far.

The truth of a tensor is what the reference's graph gives in FP64 of the tensors that make it: one layer, or the region
of nodes between tensors that both sides have. It is taken twice, of the values that the reference had and of those that
the suspect had. So an error that came in with the inputs is in neither number, and each side answers for what it
computed itself. Weights are the reference's, as they are.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
from msgspec import UNSET, structs

from layerwise._tool.backends.arrays import Array, Feed
from layerwise._tool.backends.dumps.ranks import Unclear
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.tensors import dtype_name, is_floating
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.wording import in_words
from layerwise._tool.debugtools.compare.observing.canary import same_bits
from layerwise._tool.debugtools.compare.observing.store import ArrayStore
from layerwise._tool.debugtools.compare.rows import LayerRow, Truth
from layerwise._tool.debugtools.compare.sides.saved_side import SavedSide
from layerwise._tool.debugtools.compare.sides.side import ModelSide, Side
from layerwise._tool.debugtools.compare.truth.deviation import ROUNDOFF, Deviation, Unit, coarsest, deviation
from layerwise._tool.debugtools.compare.truth.evaluation import DoubleGraph, NoTruth
from layerwise._tool.debugtools.compare.truth.precision import QUANTIZING, Kinds, correctly_rounded, roundings
from layerwise._tool.debugtools.compare.truth.whole import whole_numbers
from layerwise._tool.surgery.cut.explode import Region, Regions
from layerwise._tool.surgery.cut.randomness import Randomness

if TYPE_CHECKING:
    from layerwise._tool.surgery.cut.segments import GraphCut

IN_QUESTION = 2.0
"""Times what rounding explains from which on it is tried how far rounding the inputs moves the result."""
_ELEMENTS = 16  # that are moved at least, in one try or several


class Truths:
    """Takes in the tensors of a suspect and of a reference, and tells how far both are from the truth.

    names: the tensors (the comparison's names) that both sides have. store: for those that are still needed; closed by
    the caller. host: brings a tensor to the host.
    """

    def __init__(
        self, suspect: Side, reference: Side, names: Iterable[str], store: ArrayStore, host: Callable[[Array], Array]
    ) -> None:
        self._sides, self._store, self._host = (suspect, reference), store, host
        self._lock = Lock()
        self._cut, self.why = _graph(reference)
        self._feeds: tuple[Feed, Feed] = ({}, {})
        self._iteration = 0
        self._explained: dict[str, float] = {}
        self._uses: Counter[tuple[int, str]] = Counter()
        if self._cut is None or not isinstance(reference, ModelSide):
            return
        self._names = [name for name in names if reference.own(name) in self._cut.maker]
        self._regions = Regions(self._cut, [reference.own(name) for name in self._names])
        self._double = DoubleGraph(self._cut, reference.model.file.folder)
        self._kinds = Kinds(suspect, self._names), Kinds(reference, self._names)
        self._randomness = Randomness(self._cut)
        self._readers = Counter(name for each in self._names for name in {each, *self._read(each)})

    def begin(self, iteration: int, feeds: tuple[Feed, Feed]) -> None:
        """Start an iteration. feeds: inputs of the suspect and of the reference, by their own names."""
        self._iteration, self._feeds = iteration, feeds
        self._store.close()  # of what an iteration left that was not compared to its end
        self._explained.clear()
        if self._cut is not None:
            self._uses = Counter({(side, name): count for name, count in self._readers.items() for side in (0, 1)})

    def keep(self, side: int, name: str, array: Array) -> None:
        """Take in a tensor of the suspect (0) or the reference (1)."""
        with self._lock:
            if self._uses[side, name] > 0:
                self._store.put((side, name), array)

    def recall(self, row: LayerRow) -> None:
        """Take in a row that an earlier attempt of the job made."""
        if row.truth is not UNSET and row.truth.accumulated and row.rel_l2:
            self._explained[row.tensor] = (row.rel_l2 / row.truth.accumulated) ** 2

    def done(self, name: str) -> None:
        """Nobody asks for the truth of a tensor any more; to be said once of each that was compared."""
        if self._cut is not None and self._sides[1].own(name) in self._cut.maker:
            self._release(name)

    def of(self, name: str, accumulated: float | None) -> Truth:
        """Return how far both sides are from the truth of a tensor that both have made.

        accumulated: the relative L2 difference of both sides.
        """
        try:
            theirs = {own: array for own, (_, array) in self.fed(name).items()}
            mine = {own: self._as_theirs(0, own) for own in theirs}
            return self.measure(name, (self._held(0, name), self._held(1, name)), (mine, theirs), accumulated)
        except NoTruth as no:
            return Truth(why=str(no))

    def fed(self, name: str) -> dict[str, tuple[str, Array]]:
        """What the reference had for each tensor that the region of `name` reads. NoTruth.

        By the name in its own graph: the comparison's name, and the value.
        """
        if self._cut is None:
            raise NoTruth(self.why)
        if self._sides[1].own(name) not in self._cut.maker:
            raise NoTruth("no node of the reference makes it")
        return {own: (self._sides[1].common(own), self._as_theirs(1, own)) for own in self._region(name).feeds}

    def measure(
        self, name: str, tensors: tuple[Array, Array], feeds: tuple[Feed, Feed], accumulated: float | None
    ) -> Truth:
        """The same for given tensors, and given inputs (the reference's names) of their region. NoTruth."""
        region = self._region(name)
        self._explain(name, region, ROUNDOFF["int8"] if self._quantizes(region) else 0.0)
        self._check(region)
        if dtype_name(tensors[1]) == "string":
            raise NoTruth("it holds text")
        if len({tensor.shape for tensor in tensors}) > 1:
            raise NoTruth("the sides' shapes differ")
        alike = all(same_bits(feeds[0][own], feeds[1][own]) for own in region.feeds)
        own, asked = self._sides[1].own(name), feeds[1:] if alike else feeds
        laid = self._sides[1].naming.laid
        truths = [laid(name, values[own]) for values in self._evaluate(region, asked)]
        if any(truth.shape != tensors[0].shape for truth in truths):
            raise NoTruth(f"in FP64 its shape is {truths[0].shape}, not {tensors[0].shape}")
        units = [self._unit(side, name, tensors[side], feeds[side], region) for side in (0, 1)]
        if not is_floating(dtype_name(tensors[1])) or not is_floating(dtype_name(tensors[0])):
            return self._whole(region, tensors, (truths[0], truths[-1]), units)
        off = [deviation(tensors[side], truths[-side], units[side].kind) for side in (0, 1)]
        found = [self._times(region, name, off[side], truths[-side], feeds[side], units[side]) for side in (0, 1)]
        explained = self._explain(name, region, units[0].scatter + off[0].floor)
        ratio = None if accumulated is None else accumulated / explained
        return Truth(found[0], found[1], ratio, units[0].kind)

    def _read(self, name: str) -> list[str]:
        """The comparison's names of what a tensor's region reads."""
        return [self._sides[1].common(own) for own in self._region(name).feeds]

    def _region(self, name: str) -> Region:
        return self._regions.of(self._sides[1].own(name))

    def _check(self, region: Region) -> None:
        assert self._cut is not None
        random = next((i for i in region.nodes if self._randomness.draws(self._cut.nodes[i])), None)
        if random is not None:
            raise NoTruth(f"{shown(self._cut.nodes[random].op_type, 40)} draws random numbers")

    def _quantizes(self, region: Region) -> bool:
        assert self._cut is not None
        return self._cut.nodes[region.nodes[-1]].op_type in QUANTIZING

    def _held(self, side: int, name: str) -> Array:
        each = self._sides[side]
        if isinstance(each, SavedSide):
            if each.has(name):
                return _fetched(each, self._iteration, name)
            raise NoTruth(f"{shown(name, 80)} is not among the saved outputs")
        with self._lock:
            if (side, name) not in self._store:
                word = ("suspect", "reference")[side]
                raise NoTruth(f"the {word} does not give {shown(name, 80)} before it")
            return self._host(self._store.get((side, name)))

    def _as_theirs(self, side: int, own: str) -> Array:
        """What a side had for a tensor of the reference's graph, in the reference's layout."""
        return self._sides[1].naming.unlaid(self._sides[1].common(own), self._fed(side, own))

    def _fed(self, side: int, own: str) -> Array:
        """What a side had for a tensor that the reference's graph calls `own`."""
        assert self._cut is not None
        name = self._sides[1].common(own)
        if own in self._cut.maker:
            return self._held(side, name)
        mine = self._sides[side].own(name)
        if mine in self._feeds[side]:
            return self._feeds[side][mine]
        if isinstance(self._sides[side], SavedSide) and own in self._feeds[1]:
            return self._feeds[1][own]
        raise NoTruth(f"its input {shown(name, 80)} is not known")

    def _evaluate(self, region: Region, feeds: tuple[Feed, ...]) -> list[dict[str, Array]]:
        try:
            return self._double.evaluate(region.nodes, feeds)
        except LayerwiseError as error:
            raise NoTruth(in_words(error, 160)) from None

    def _unit(self, side: int, name: str, tensor: Array, feed: Feed, region: Region) -> Unit:
        """What rounding explains, the truth's weights among it, which were rounded to the reference's type.

        The types of the inputs count: onnxruntime may have kept them wider than it gives them.
        """
        assert self._cut is not None
        dequantizes = any(self._cut.nodes[i].op_type == "DequantizeLinear" for i in region.nodes)
        kinds, weights = self._kinds[side].of(name, dtype_name(tensor), dequantizes=dequantizes)
        _, truths = self._kinds[1].of(name, "", dequantizes=True)
        kinds += [*weights, *truths, *(dtype_name(array) for array in feed.values())]
        if self._quantizes(region):  # the steps are part of the truth, what rounds before them is not
            kinds = [kind for kind in kinds if kind != "int8"]
        steps = roundings(self._cut.nodes[i] for i in region.nodes)
        blocks = self._kinds[side].blocks
        return Unit(coarsest(kinds), steps + len(weights), self._double.longest, blocks=blocks)

    def _times(self, region: Region, name: str, found: Deviation, truth: Array, feed: Feed, unit: Unit) -> float:
        """How many times what rounding explains a tensor is off; the condition is asked where it is in question."""
        assert self._cut is not None
        if math.isinf(found.scatter):
            raise NoTruth("in FP64 it is zero everywhere: there is nothing to relate an error to")
        nodes = [self._cut.nodes[i] for i in region.nodes]
        if found.broken or found.times(unit) <= IN_QUESTION or correctly_rounded(nodes):
            return found.times(unit)
        tries = math.ceil(_ELEMENTS / max(1, truth.size))  # of single elements one says little
        squares = 0.0
        for seed in range(tries):
            (made,) = self._evaluate(region, (_rounded(feed, unit, seed),))
            moved = self._sides[1].naming.laid(name, made[self._sides[1].own(name)])
            if moved.shape != truth.shape:
                return found.times(unit)
            squares += deviation(moved, truth, unit.kind).scatter ** 2
        return found.times(structs.replace(unit, moved=math.sqrt(squares / tries)))

    def _whole(
        self, region: Region, tensors: tuple[Array, Array], truths: tuple[Array, Array], units: list[Unit]
    ) -> Truth:
        assert self._cut is not None
        last, quantized = self._cut.nodes[region.nodes[-1]].op_type, self._quantizes(region)
        found = [
            whole_numbers(x, truth, unit, quantized=quantized, alone=len(region.nodes) == 1, op=last)
            for x, truth, unit in zip(tensors, truths, units, strict=True)
        ]
        why = next((each for each in found if isinstance(each, str)), "")
        numbers = [None if isinstance(each, str) else each for each in found]
        return Truth(numbers[0], numbers[1], None, "int8" if quantized else "", why)

    def _explain(self, name: str, region: Region, unit: float) -> float:
        """Note what rounding explains of the sides' difference at a tensor, and return it, as a relative L2 error.

        It is the root of the sum of squares of the units along the worst way to here; unit: that of the region alone.
        """
        before = max((self._explained.get(self._sides[1].common(own), 0.0) for own in region.feeds), default=0.0)
        self._explained[name] = before + unit**2
        return math.sqrt(self._explained[name])

    def _release(self, name: str) -> None:
        with self._lock:
            for each in {name, *self._read(name)}:
                for side in (0, 1):
                    self._uses[side, each] -= 1
                    if self._uses[side, each] <= 0:
                        self._store.drop((side, each))


def _graph(reference: Side) -> "tuple[GraphCut | None, str]":
    if not isinstance(reference, ModelSide):
        return None, "the reference is saved outputs, which have no graph"
    try:
        return reference.model.cut, ""
    except LayerwiseError as error:
        return None, str(error)


def _rounded(feed: Feed, unit: Unit, seed: int) -> Feed:
    """The floating tensors of a feed with every element moved by one rounding, up or down, in FP64.

    No two tensors move alike, which would hide that one is subtracted from the other.
    """
    drawn, moved = np.random.default_rng(seed), dict(feed)
    for name, array in feed.items():
        if is_floating(dtype_name(array)):
            signs = drawn.integers(0, 2, array.shape) * 2 - 1
            with np.errstate(all="ignore"):
                moved[name] = array.astype(np.float64) * (1 + unit.roundoff * signs)
    return moved


def _fetched(side: SavedSide, iteration: int, name: str) -> Array:
    try:
        return side.fetch(iteration, name)
    except Unclear as error:
        raise NoTruth(str(error)) from None
