"""How far a tensor moves when what its node reads is moved by a rounding, or by as much as the sides are apart there.

A node that cancels (a mean taken off, a product with weights whose sums vanish) or whose function is steep makes small
differences of its inputs large, though both sides compute it right. Nothing about the operator alone tells that: the
node is run by itself on the reference's inputs, as they are and moved.
"""

import math
from collections import OrderedDict
from collections.abc import Mapping

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.runner import Loadable, Runner, open_runner
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.tensors import dtype_name, to_onnx
from layerwise._tool.debugtools.compare.arithmetic.tolerance import unit_roundoff
from layerwise._tool.debugtools.compare.table.places import Places
from layerwise._tool.debugtools.compare.table.step import LUCK, MOVED

KEPT = 32 << 20  # bytes of the reference's latest tensors
_TESTS = 64  # of an iteration
_NODES = 64  # that may be run again for one tensor
_STEEP = 4.0  # times as far as its inputs that a result moves; the rule for operators covers less


class Conditions:
    """Runs single nodes of a comparison's model again, in an iteration that `begin` starts."""

    def __init__(self, places: Places, limit: int = KEPT) -> None:
        self._places, self._limit = places, limit
        self._feed: Mapping[str, Array] | None = None
        self._held: OrderedDict[str, Array] = OrderedDict()
        self._bytes = self._tests = 0

    def begin(self, feed: Mapping[str, Array]) -> None:
        """Start an iteration. feed: the inputs of the comparison's model."""
        self._feed, self._tests = feed, _TESTS
        self._held.clear()
        self._bytes = 0

    def keep(self, name: str, array: Array) -> None:
        """Take in the reference's value of a tensor; the oldest are given up for it."""
        if self._feed is None or not isinstance(array, np.ndarray) or array.nbytes > self._limit:
            return
        self._bytes += array.nbytes - (self._held.pop(name).nbytes if name in self._held else 0)
        self._held[name] = array
        while self._bytes > self._limit:
            self._bytes -= self._held.popitem(last=False)[1].nbytes

    def explained(self, name: str, error: float) -> float:
        """Return the relative L2 error that the condition of a tensor's node explains; 0 where that cannot be told.

        error: by how much the sides are apart in what the node reads.
        """
        graph = self._places.remade()
        if self._feed is None or graph is None or not self._tests or name not in graph.cut.maker:
            return 0.0
        self._tests -= 1
        from layerwise._tool.surgery.cut.explode import Exploder  # it imports onnx, and most comparisons test nothing

        exploder = Exploder(graph.cut, set(self._held) - {name})
        region = exploder.regions.of(name)
        values = {**self._feed, **self._held}
        drawn = any(self._places.draws(made) for i in region.nodes for made in graph.cut.nodes[i].output)
        if drawn or len(region.nodes) > _NODES or not all(isinstance(values.get(n), np.ndarray) for n in region.feeds):
            return 0.0
        feed = {n: values[n] for n in region.feeds}
        try:
            made = exploder.build([name], {n: to_onnx(dtype_name(array)) for n, array in feed.items()})
            with open_runner(_ALONE, Loadable(data=made.data, folder=graph.folder), name="condition") as runner:
                moved, size = _moved(runner, feed, error)
        except LayerwiseError:
            return 0.0
        return (MOVED + LUCK / math.sqrt(max(1, size))) * moved


_ALONE = RunnerSpec(kind="onnxrt", graph_optimization_level="disable", options={"arena": False})


def _moved(runner: Runner, feed: Mapping[str, Array], error: float) -> tuple[float, int]:
    """How far the one output moves (relative L2), 0 if hardly farther than what it is made from; how many elements."""
    from layerwise._tool.debugtools.compare.arithmetic.nudge import nudged, scattered

    def output(moved: Mapping[str, Array]) -> Array:
        (array,) = runner.infer(moved).outputs.values()
        return np.asarray(array)

    still = output(feed)
    if not unit_roundoff([dtype_name(still)]):
        return 0.0, still.size
    unit = unit_roundoff(map(dtype_name, feed.values()))
    tries = [(2 * unit, {name: nudged(array, seed) for seed, (name, array) in enumerate(feed.items())})]
    if error:
        tries.append((error, {name: scattered(array, error, seed) for seed, (name, array) in enumerate(feed.items())}))
    moves = [(size, _distance(output(each), still)) for size, each in tries]
    return max((moved for size, moved in moves if moved >= _STEEP * size), default=0.0), still.size


def _distance(moved: Array, still: Array) -> float:
    """The relative L2 distance of two arrays; 0 where it is not a finite number."""
    a, b = moved.astype(np.float64), still.astype(np.float64)
    with np.errstate(all="ignore"):
        finite = np.isfinite(a) & np.isfinite(b)
        distance = float(np.linalg.norm((a - b)[finite]) / np.linalg.norm(b[finite]))
    return distance if math.isfinite(distance) else 0.0
