"""Where to look first, and what is normal: every node's own error, on the reference's tensors; what it costs to try.

Expected seconds, so that a search asks first where asking is cheap: an estimate from shapes alone, of opening and
dispatching (measured at 0.1 ms a node), moving its outputs and weights, and multiply-adds of the operators that are
made of them. Only ratios matter to a search.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.tensors import dtype_name, is_floating
from layerwise._tool.debugtools.compare.memory import SEGMENT, usual_segment
from layerwise._tool.debugtools.compare.sides.engine import asked_level, asked_types
from layerwise._tool.debugtools.compare.sides.side import ModelSide
from layerwise._tool.debugtools.compare.sides.stream import observing
from layerwise._tool.debugtools.locate.part import LocalRuns, Part
from layerwise._tool.debugtools.locate.suspects import NoiseFloor
from layerwise._tool.debugtools.locate.tensor_error import Error, error_of
from layerwise._tool.debugtools.search.at_once import at_once
from layerwise._tool.debugtools.search.judges.subject import Subject
from layerwise._tool.surgery.cut.explode import Exploder

_NODE = 1e-4  # seconds
_BYTES, _MULTIPLY_ADDS = 5e9, 2e10  # a second, on one core
_CONVOLUTIONS = frozenset({"Conv", "ConvTranspose", "ConvInteger", "QLinearConv"})
_PRODUCTS = frozenset({"MatMul", "Gemm", "MatMulInteger", "QLinearMatMul"})


def expected_seconds(subject: Subject, nodes: Sequence[int]) -> list[float]:
    """Return the expected seconds of each of `nodes` (positions)."""
    return [_seconds(subject, i) for i in nodes]


def _seconds(subject: Subject, i: int) -> float:
    graph, tensors = subject.cut, subject.tensors
    node = graph.nodes[i]
    made = [tensors.raw(name) for name in node.output if name and name in tensors]
    weights = [math.prod(graph.initializers[name].dims) for name in graph.reads[i] if name in graph.initializers]
    moved: int = sum(array.nbytes for array in made) + 4 * sum(weights)
    work: float = max((array.size for array in made), default=0) * _depth(subject, i)
    return _NODE + moved / _BYTES + work / _MULTIPLY_ADDS


def _depth(subject: Subject, i: int) -> float:
    """Multiply-adds behind each element of an output; 0 for operators that are not made of them."""
    graph, node = subject.cut, subject.cut.nodes[i]
    if node.op_type not in _CONVOLUTIONS | _PRODUCTS:
        return 0.0
    shape = _shape(graph.initializers, subject.tensors, node.input[1]) if len(node.input) > 1 else ()
    if not shape:
        return 0.0
    return float(math.prod(shape[1:]) if node.op_type in _CONVOLUTIONS else shape[-2] if len(shape) > 1 else shape[0])


def _shape(weights: Mapping[str, Any], tensors: Mapping[str, Array], name: str) -> Sequence[int]:
    if name in weights:
        return tuple(weights[name].dims)
    return tensors[name].shape if name in tensors else ()


_AT_ONCE = 64  # tensors of one exploded graph
_WHERE_DEAR = 512  # the same where opening it is dear: an engine is built, a session on a GPU prepares libraries
_MOST = 100


@dataclass(frozen=True, slots=True)
class Survey:
    """hints: positions of nodes that stand out, the worst first. level: by how much (relative L2) most nodes are off by
    themselves where the suspect computes in lower precision as a whole (or was asked to: half a rounding), else 0.
    """

    hints: list[int] = field(default_factory=list)
    level: float = 0.0


def survey(subject: Subject) -> Survey:
    """Look at every node alone. Nothing is found where unfused nodes cannot tell the sides apart."""
    if _alike_unfused(subject):
        return Survey()
    cut = subject.cut
    exploder = Exploder(cut, [name for name in cut.maker if name in subject.tensors])
    runs = LocalRuns(Part.model(subject.suspect), exploder)
    names = [name for i in subject.items for name in cut.nodes[i].output if name in subject.tensors]
    noise_floor, worst = NoiseFloor(), dict[int, Error]()
    for chunk in _chunks(subject, names):
        feed = {name: subject.tensors[name] for name in exploder.feeds(chunk, subject.constants)}
        for name, made in runs.run(chunk, feed, subject.constants):
            if made is None:
                continue
            error = _error(subject, name, made)
            i = cut.maker[name]
            if not isinstance(made, str) and is_floating(dtype_name(made)) and not error.onset:
                noise_floor.add(cut.nodes[i].op_type, i, error.rel, off=error.beyond)
            if i not in worst or _units(error) > _units(worst[i]):
                worst[i] = error
    level = max(noise_floor.level, asked_level(subject.suspect.spec))
    return Survey(_standing_out(subject, worst, noise_floor)[:_MOST], level)


def _chunks(subject: Subject, names: Sequence[str]) -> Iterator[list[str]]:
    """The tensors that are made at once: of a segment's size at most, where they come from a GPU."""
    spec = subject.suspect.spec
    if spec.kind == "trt":
        return at_once(names, lambda _: 0, _WHERE_DEAR, math.inf)
    limit = usual_segment([spec])
    if limit <= SEGMENT or subject.setup.spec.memory_budget is not None:
        return at_once(names, lambda _: 0, _AT_ONCE, math.inf)
    return at_once(names, lambda name: subject.tensors.raw(name).nbytes, _WHERE_DEAR, limit)


def _standing_out(subject: Subject, worst: dict[int, Error], noise_floor: NoiseFloor) -> list[int]:
    def out(i: int, error: Error) -> bool:
        noise = noise_floor.noise(subject.cut.nodes[i].op_type) if noise_floor.whole else 0.0
        return _units(error) > 1 and (bool(error.onset) or not error.rel <= noise)

    found = [i for i, error in worst.items() if out(i, error)]
    return sorted(found, key=lambda i: (-_units(worst[i]), i))


def _error(subject: Subject, name: str, made: Array | str) -> Error:
    """A tensor that cannot be made is infinitely wrong."""
    if isinstance(made, str):
        return Error(rel=math.inf, note=made)
    return error_of(made, subject.tensors.raw(name), (), 1).allowing(asked_types(subject.suspect.spec), 1)


def _units(error: Error) -> float:
    return math.inf if error.onset else error.units


def _alike_unfused(subject: Subject) -> bool:
    other = subject.setup.sides[-1]
    return (
        not subject.differ and isinstance(other, ModelSide) and observing(other.spec) == observing(subject.suspect.spec)
    )
