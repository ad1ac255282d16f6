"""How far a tensor moves when what its node reads is moved by a rounding, or by as much as the sides are apart there.

A node that cancels (a mean taken off, a product with weights whose sums vanish) or whose function is steep makes small
differences of its inputs large, though both sides compute it right; so does a network that lets them grow a little at
every node, or a comparison that decides between near values. Nothing about the operator alone tells that. The node is
run by itself on what each side read: if that gives what each side has, the inputs' differences are all there is. Else
it is run on the reference's inputs, as they are and moved.
"""

import math
from collections import OrderedDict, deque
from collections.abc import Callable, Container, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from msgspec.structs import replace

from layerwise._tool.backends.arrays import Array, Feed
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.runner import Loadable, Runner, open_runner
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.tensors import dtype_name, to_onnx
from layerwise._tool.debugtools.compare.arithmetic.nudge import decided, nudged, scattered
from layerwise._tool.debugtools.compare.arithmetic.tolerance import unit_roundoff
from layerwise._tool.debugtools.compare.observing.canary import same_bits
from layerwise._tool.debugtools.compare.table.places import Places
from layerwise._tool.debugtools.compare.table.step import LUCK, MOVED

if TYPE_CHECKING:
    from layerwise._tool.surgery.cut.explode import Exploder
    from layerwise._tool.surgery.cut.segments import GraphCut

Told = TypeVar("Told")
KEPT = 32 << 20  # bytes of the reference's latest tensors
_TESTS, _CHECKS = 64, 256  # of an iteration
_NODES = 64  # that may be run again for one tensor
_STEEP = 4.0  # times as far as its inputs that a result moves; the rule for operators covers less


class Conditions:
    """Runs single nodes of a comparison's model again, in one iteration of one pair.

    feed: the inputs of the comparison's model; None where they are not known: then nothing is told.
    """

    def __init__(self, places: Places, feed: Mapping[str, Array] | None, limit: int = KEPT) -> None:
        self._places, self._limit, self._feed = places, limit, feed
        self._held: OrderedDict[str, tuple[Array, Array]] = OrderedDict()
        self._bytes, self._tests, self._checks = 0, _TESTS, _CHECKS

    def keep(self, name: str, suspect: Array, reference: Array, *, same: bool) -> None:
        """Take in both sides' values of a tensor; the oldest are given up for it. same: they have the same bits."""
        if self._feed is None or not isinstance(reference, np.ndarray) or not isinstance(suspect, np.ndarray):
            return
        pair = (reference, reference) if same else (suspect, reference)
        if _size(pair) > self._limit:
            return
        self._bytes += _size(pair) - (_size(self._held.pop(name)) if name in self._held else 0)
        self._held[name] = pair
        while self._bytes > self._limit:
            self._bytes -= _size(self._held.popitem(last=False)[1])

    def explained(
        self,
        name: str,
        pair: tuple[Array, Array],
        error: float,
        step: float,
        nudges: float = 1.0,
        *,
        fused: int = 1,
    ) -> float:
        """Return the relative L2 error that the condition of a tensor's node explains; infinity where both sides
        compute it right from what each of them read, 0 where nothing can be told.

        pair: the tensor on both sides. error: by how much they are apart in what the node reads. step: the error that
        one evaluation's own rounding explains; 0 of values that do not round. nudges: by how many roundings inputs are
        moved. fused: of how many nodes a backend may have made one, which are run together.
        """
        if not self._tests:
            return 0.0
        self._tests -= 1
        part = self._part(name, fused)
        if part is None:
            return 0.0
        return part.run(lambda run, types: _explained(run, part.read, types, pair, (error, step, nudges))) or 0.0

    def alone(
        self, name: str, pair: tuple[Array, Array], step: float, nudges: float, known: Container[str]
    ) -> tuple[float, float] | None:
        """By how much a tensor's node is off (relative L2) when it is run by itself on what each side read, on the side
        where that is more, and what rounding explains of it; None where it does, or where nothing can be told.

        pair, step, nudges: as `explained` takes them. known: the tensors from which `step` is counted.
        """
        graph = self._places.remade()
        otherwise = graph is not None and not graph.of_both and unit_roundoff([dtype_name(pair[1])])
        if otherwise or not self._checks:  # the other side's nodes round otherwise
            return None
        self._checks -= 1
        part = self._part(name, 1)
        if part is None or any(made in known for made in part.inner):
            return None
        return part.run(lambda run, types: _off(run, part.read, types, pair, step, nudges), threads=1)

    def _part(self, name: str, fused: int) -> "_Part | None":
        """The nodes that make a tensor from those that are held; None where they cannot be run. fused: as `explained`
        takes it.
        """
        graph = self._places.remade()
        if self._feed is None or graph is None or name not in graph.cut.maker:
            return None
        from layerwise._tool.surgery.cut.explode import Exploder  # it imports onnx, and most comparisons test nothing

        exploder = Exploder(graph.cut, set(self._held) - {name} - _made_by(graph.cut, name, fused))
        region = exploder.regions.of(name)
        values = {**{n: (array, array) for n, array in self._feed.items()}, **self._held}
        inner = {made for i in region.nodes for made in graph.cut.nodes[i].output} - {name}
        drawn = any(map(self._places.draws, (*inner, name)))
        if drawn or len(region.nodes) > _NODES or not all(_usable(values.get(n)) for n in region.feeds):
            return None
        return _Part(exploder, name, graph.folder, {n: values[n] for n in region.feeds}, frozenset(inner))


class _Part(NamedTuple):
    """Nodes that make tensor `name`. read: what they read, of both sides; inner: what else they make."""

    exploder: "Exploder"
    name: str
    folder: Path
    read: Mapping[str, tuple[Array, Array]]
    inner: frozenset[str]

    def run(self, told: Callable[[Runner, Mapping[str, Any]], Told], threads: int | None = None) -> Told | None:
        """What `told` says of a runner of the nodes, which takes what they read in these types; None if none opens.

        threads: as `RunnerSpec` has them; starting several takes longer than most nodes do.
        """
        spec = replace(_ALONE, threads=threads)
        pairs = self.read.values()
        for side in (1, 0) if any(one.dtype != other.dtype for one, other in pairs) else (1,):
            types = {n: arrays[side].dtype for n, arrays in self.read.items()}
            try:
                onnx_types = {n: to_onnx(dtype_name(arrays[side])) for n, arrays in self.read.items()}
                made = self.exploder.build([self.name], onnx_types)
                with open_runner(spec, Loadable(data=made.data, folder=self.folder), name="condition") as runner:
                    return told(runner, types)
            except LayerwiseError:
                continue
        return None


def _made_by(cut: "GraphCut", name: str, count: int) -> set[str]:
    """What the nearest nodes make that a tensor is made by: its own, and those before it."""
    found: set[str] = set()
    queue = deque([name])
    seen: set[int] = set()
    while queue and len(seen) < count:
        place = cut.maker.get(queue.popleft())
        if place is not None and place not in seen:
            seen.add(place)
            found.update(cut.nodes[place].output)
            queue.extend(cut.nodes[place].input)
    return found


def _size(pair: tuple[Array, Array]) -> int:
    return pair[1].nbytes + (pair[0].nbytes if pair[0] is not pair[1] else 0)


def _usable(pair: tuple[Array, Array] | None) -> bool:
    return pair is not None and all(isinstance(array, np.ndarray) for array in pair)


_ALONE = RunnerSpec(kind="onnxrt", graph_optimization_level="disable", options={"arena": False})


def _explained(
    runner: Runner,
    read: Mapping[str, tuple[Array, Array]],
    types: Mapping[str, Any],
    pair: tuple[Array, Array],
    sizes: tuple[float, float, float],
) -> float:
    """What `Conditions.explained` says. types: in which the node takes what both sides read; sizes: its last three."""
    error, step, times = sizes
    output, (suspects, references) = _outputs(runner), _feeds(read, types)
    still = output(references)
    few = MOVED + LUCK / math.sqrt(max(1, still.size))
    if not unit_roundoff([dtype_name(still)]):
        coarse = unit_roundoff(dtype_name(array) for arrays in read.values() for array in arrays)
        sides = ((pair[1], references), (pair[0], suspects))
        return math.inf if all(decided(found, feed, output, coarse) for found, feed in sides) else 0.0
    unit = 2 * times * unit_roundoff(map(dtype_name, references.values()))
    rounded = _moved(output, still, unit, references, lambda array, seed: nudged(array, seed, times))
    bound = max(step, few * rounded)
    if _agree(pair[1], still, bound) and _agree(pair[0], output(suspects), bound):
        return math.inf
    apart = 0.0
    if error:
        apart = _moved(output, still, error, references, lambda array, seed: scattered(array, error, seed))
    return few * max(rounded, apart)


def _off(
    runner: Runner,
    read: Mapping[str, tuple[Array, Array]],
    types: Mapping[str, Any],
    pair: tuple[Array, Array],
    step: float,
    times: float,
) -> tuple[float, float] | None:
    """What `Conditions.alone` says. types: in which the node takes what both sides read."""
    output, feeds = _outputs(runner), _feeds(read, types)
    made = [output(feed) for feed in feeds]
    off = max(map(_distance, pair, made))
    if off <= step:
        return None
    few = MOVED + LUCK / math.sqrt(max(1, made[1].size))
    times *= _coarser(read, types)
    moved = output({name: nudged(array, seed, times) for seed, (name, array) in enumerate(feeds[1].items())})
    bound = step + few * _distance(moved, made[1])
    return (off, bound) if off > bound else None


def _coarser(read: Mapping[str, tuple[Array, Array]], types: Mapping[str, Any]) -> float:
    """How many times as coarse as a node's own the type is in which one of the sides has what the node reads: a backend
    may have read it before it was rounded to that.
    """
    own = unit_roundoff(map(dtype_name, types.values()))
    held = unit_roundoff(dtype_name(array) for arrays in read.values() for array in arrays)
    return max(1.0, held / own) if own else 1.0


def _outputs(runner: Runner) -> Callable[[Mapping[str, Array]], Array]:
    def output(feed: Mapping[str, Array]) -> Array:
        (array,) = runner.infer(feed).outputs.values()
        return np.asarray(array)

    return output


def _feeds(read: Mapping[str, tuple[Array, Array]], types: Mapping[str, Any]) -> list[Feed]:
    """What the suspect and the reference read, in these types."""
    return [{n: arrays[side].astype(types[n], copy=False) for n, arrays in read.items()} for side in (0, 1)]


def _moved(
    output: Callable[[Mapping[str, Array]], Array],
    still: Array,
    size: float,
    feed: Mapping[str, Array],
    move: Callable[[Array, int], Array],
) -> float:
    """How far a result moves (relative L2) when inputs move by `size`; 0 if hardly farther than they do."""
    found = _distance(output({name: move(array, seed) for seed, (name, array) in enumerate(feed.items())}), still)
    return found if found >= _STEEP * size else 0.0


def _agree(one: Array, other: Array, bound: float) -> bool:
    """Whether two results are one within a relative L2 distance; where that is 0, equal."""
    if one.shape != other.shape:
        return False
    if not bound:
        return bool(np.array_equal(one, other))
    blank = np.isfinite(one) != np.isfinite(other)
    return not blank.any() and _distance(one, other) <= bound


def _distance(moved: Array, still: Array) -> float:
    """The relative L2 distance of two arrays; 0 where it is not a finite number."""
    if moved.shape != still.shape or same_bits(moved, still):
        return 0.0
    a, b = moved.astype(np.float64), still.astype(np.float64)
    with np.errstate(all="ignore"):
        finite = np.isfinite(a) & np.isfinite(b)
        squares = (float(np.square(part[finite]).sum()) for part in (a - b, b))
        distance = math.sqrt(next(squares) / (next(squares) or math.nan))
    return distance if math.isfinite(distance) else 0.0
