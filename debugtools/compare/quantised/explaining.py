"""What few bits explain of how far a quantised model is off: its float original is run beside it with the same tensors
rounded.

Weights alone explain it exactly: what both then still differ by is no matter of the weights. Behind rounded activations
both differ for values that lie between two codes, so there the size of the error tells: the model may be off `_ALIKE`
times as far as rounding moves its original, and the two be `_APART` times that apart.
"""

import math
from collections.abc import Container, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.tensors import dtype_name, is_floating
from layerwise._tool.debugtools.compare.arithmetic.comparison import Comparison
from layerwise._tool.debugtools.compare.arithmetic.metrics import compare_arrays
from layerwise._tool.debugtools.compare.arithmetic.tolerance import Rule, rounding_bound, rounds_like
from layerwise._tool.debugtools.compare.memory import WAITING, usual_segment
from layerwise._tool.debugtools.compare.observing.store import ArrayStore
from layerwise._tool.debugtools.compare.quantised.coarsest import coarsest_types
from layerwise._tool.debugtools.compare.quantised.grid import Grid
from layerwise._tool.debugtools.compare.quantised.ledger import Ledger
from layerwise._tool.debugtools.compare.quantised.left import Left
from layerwise._tool.debugtools.compare.quantised.operators import DYNAMIC, INTEGER, OPERATORS, SAME
from layerwise._tool.debugtools.compare.quantised.rounded import RoundedGraph
from layerwise._tool.debugtools.compare.quantised.sites import Site
from layerwise._tool.debugtools.compare.sides.side import ModelSide
from layerwise._tool.debugtools.compare.sides.stream import GraphStream, SessionPool

if TYPE_CHECKING:
    from layerwise._tool.surgery.cut.segments import GraphCut

INTEGER_KERNELS = frozenset({*OPERATORS, *INTEGER, DYNAMIC})
_ALIKE, _APART = 2.0, 1.5
_NEXT_TO_NOTHING = 1e-3  # of a tensor's error, where it cancels so that rounding is more than its own
_CODES = rounds_like("int8")
_COARSE = 2  # accuracy_level: 2 is FP16, 3 bfloat16, 4 INT8
_FEW = 8
_KERNELS = 0.3  # of a tensor's error at most that kernels that round activations may add


class Explaining:
    """ledger: of a quantised side and its float original, both run by onnxruntime. weights_alone: it holds nothing else
    in few bits. Close it.
    """

    def __init__(self, ledger: Ledger, folder: Path, budget: int | None) -> None:
        assert isinstance(ledger.other, ModelSide)
        assert ledger.originals is not None
        self._side, self._other, self._folder = ledger.side, ledger.other, folder
        mine, theirs = self._side.model.cut, self._other.model.cut
        self._ledger, self._mine = ledger, mine
        names = self._other.naming
        stages = {own: [self._side.own(name) for name in names.commons(own)] for own in theirs.maker}
        self._graph = RoundedGraph(theirs, mine, ledger.originals, stages)
        self._graph.hold([site for site, row in ledger.weights() if row.other and not row.word])
        self._graph.pass_through(list(self._counterparts()))
        sites = ledger.sites.all
        self._sites = {stage: site for site in self._graph.activations
                       for stage in (site.tensor, *ledger.sites.dequantised(site))}  # fmt: skip
        known = {site.tensor for site in self._graph.weights}
        self._touched = _behind(mine, (site.i for site in sites))
        self._loose = _behind(mine, (site.i for site in sites if site.role != "weight"), INTEGER_KERNELS)
        unknown = [site for site in sites if site.role == "weight" and site.tensor not in known]
        if self._loose:  # where nothing is exact, single constants do not matter
            unknown = [site for site in unknown if math.prod(site.shape) >= _FEW]
        self._doubtful = _behind(mine, (site.i for site in unknown))
        self.weights_alone = not self._loose
        self._types = coarsest_types(theirs)
        self._level, self._fused = _rounds_activations(mine), _fuses(self._side, mine)
        self._limit = usual_segment([self._other.spec]) if budget is None else max(1, budget // 8)
        self._pool = SessionPool(keep=False)
        self._store = ArrayStore(WAITING if budget is None else budget // 8, folder)
        self._coming: Iterator[Mapping[str, Array]] = iter(())
        self.unknown = self._graph.unknown
        self.found: dict[str, Left] = {}

    def begin(self, feed: Mapping[str, Array], names: Iterable[str]) -> None:
        """Start an iteration. feed: by the float side's names; names: the comparison's, of what will be asked for."""
        self._store.close()
        cut = self._other.model.cut
        own = {self._other.own(name) for name in names if self._side.own(name) in self._touched}
        wanted = [name for name in own if name in cut.maker]
        self._coming = iter(())
        if wanted:
            known = cut.estimates_for(feed)
            plan = cut.segments(wanted, self._limit, known)
            folder = self._other.model.file.folder
            stream = GraphStream(self._graph, plan, self._other.spec, self._other.name, folder, feed, self._pool)  # type: ignore[arg-type]
            self._coming = iter(stream)

    def _counterparts(self) -> Iterator[tuple[Site, str, list[int]]]:
        """Each quantised activation with its name in the float graph, and who reads what it becomes."""
        cut = self._other.model.cut
        for site in self._ledger.sites.all:
            if site.role == "activation":
                made = self._ledger.sites.dequantised(site)
                names = (site.value, site.tensor, *made)
                own = (self._other.own(self._side.common(name)) for name in names if name)
                found = next((name for name in own if name in cut.maker or name in cut.inputs), "")
                if found:
                    reads = self._ledger.sites.readers
                    yield site, found, [i for name in (site.tensor, *made) for i, _ in reads[name]]

    def left(self, name: str, mine: Array, theirs: Array, whole: Comparison, depth: int) -> Left | None:
        """What few bits explain of a tensor's difference; None where that cannot be told.

        name: the comparison's; depth: nodes in a row behind it.
        """
        own = self._side.own(name)
        if own not in self._touched or own in self._doubtful or whole.rel_l2 is None or mine.shape != theirs.shape:
            return None
        if not is_floating(dtype_name(mine)):
            return None
        rounded = self._rounded(self._other.own(name))
        if rounded is None:
            return None
        rounded = self._other.naming.laid(name, rounded)
        types = [self._types.get(self._other.own(name), "")]
        site = self._sites.get(self._ledger.sites.source(own, self._sites, SAME))
        if site is not None and own != site.value and not self._exact(own):
            rounded = _held(site, rounded)
        judged = partial(compare_arrays, metrics=("simple",), depth=depth, types=types)
        exact = judged(mine, rounded, Rule(auto=True))
        moved = judged(rounded, theirs, Rule(auto=True)).rel_l2 or 0.0
        bound = exact.rule.bound or 0.0
        left = math.inf if exact.rel_l2 is None else exact.rel_l2
        if self._exact(own):
            explained = bool(exact.passed) or left <= _NEXT_TO_NOTHING * whole.rel_l2
            if not explained and self._rounds(own):
                explained = left <= min(rounding_bound([_CODES], depth), _KERNELS * whole.rel_l2)
            found = Left(whole.rel_l2, bound, moved, left, explained, settled=explained)
        else:
            explained = whole.rel_l2 <= bound + _ALIKE * moved
            settled = explained and left <= bound + _APART * moved
            found = Left(whole.rel_l2, bound, moved, None, explained, settled=settled)
        if name not in self.found or found.whole > self.found[name].whole:
            self.found[name] = found
        return found

    def _rounds(self, own: str) -> bool:
        """Whether kernels may round the activations behind a tensor: as nodes allow, or of an output (which is from the
        plain run), as onnxruntime does where it fuses a product with its weight's DequantizeLinear.
        """
        return self._level or (self._fused and own in self._mine.outputs)

    def _exact(self, own: str) -> bool:
        return own not in self._loose

    def _rounded(self, own: str) -> Array | None:
        try:
            while own not in self._store:
                for name, array in next(self._coming).items():
                    self._store.put(name, array)
        except (StopIteration, LayerwiseError):
            return None
        return self._store.get(own)

    def done(self, name: str) -> None:
        """A tensor (the comparison's name) is not asked for any more, unless by another name."""
        own = self._other.own(name)
        if len(self._other.naming.commons(own)) < 2:
            self._store.drop(own)

    def close(self) -> None:
        """Give everything back."""
        self._coming = iter(())
        self._store.close()
        self._pool.close()


def _held(site: Site, values: Array) -> Array:
    """An activation as its codes hold it; dynamic ones have the values' own range."""
    grid = site.grid or Grid("uint8", np.ones(1, np.float32), np.ones(1, np.float32)).best(values)
    return grid.rounded(values)


def _behind(cut: "GraphCut", nodes: Iterable[int], ops: Container[str] = ()) -> frozenset[str]:
    """The tensors that depend on one of these nodes, or on one of these operators."""
    first, found = set(nodes), set[str]()
    for i, (node, reads) in enumerate(zip(cut.nodes, cut.reads, strict=True)):
        if i in first or node.op_type in ops or not found.isdisjoint(reads):
            found.update(filter(None, node.output))
    return frozenset(found)


def _rounds_activations(cut: "GraphCut") -> bool:
    """Whether a node lets its kernel round activations to 8 bits: accuracy_level of MatMulNBits."""
    nodes = (node for node in cut.nodes if node.op_type == "MatMulNBits")
    return any(a.name == "accuracy_level" and a.i >= _COARSE for node in nodes for a in node.attribute)


def _fuses(side: ModelSide, cut: "GraphCut") -> bool:
    """Whether onnxruntime makes MatMulNBits of products of dequantised weights, which round activations to 8 bits."""
    optimised = side.spec.kind == "onnxrt" and side.spec.graph_optimization_level not in ("disable", "basic")
    return optimised and any(node.op_type == "DequantizeLinear" for node in cut.nodes)
