"""Observing what onnxruntime really runs: its own optimised graph, with its tensors brought back to their names.

The dumped graph runs with optimisation off and gives the plain run's outputs bit for bit. Tensors that were fused away
are not in it. Tensors that were renamed are recognised by their values: those of the original graph, unfused, are
sampled at fixed places; on the CPU convolutions work on blocks of 8 or 16 channels (NCHWc), which are put back first.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from layerwise._tool.backends.arrays import Array, Feed
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.arithmetic.kinds import arithmetic
from layerwise._tool.debugtools.compare.memory import usual_segment
from layerwise._tool.debugtools.compare.sides.side import ModelSide, ObservedGraph
from layerwise._tool.debugtools.compare.sides.stream import Blocked, GraphStream, SessionPool

if TYPE_CHECKING:
    from layerwise._tool.surgery.cut.segments import GraphCut

SAMPLES = 64
Match = tuple[str, int]
CLOSE = 1e-3  # relative: far above what optimisation moves, far below what distinguishes tensors
CLEAR = 0.1
_BLOCKED_LAYOUT = "com.microsoft.nchwc"


@dataclass(frozen=True, slots=True)
class Print:
    """A tensor's shape and its values at up to 64 fixed places."""

    shape: tuple[int, ...]
    values: NDArray[np.float64]


Shapes = Mapping[tuple[int, ...], Mapping[str, Print]]


def fingerprint(array: Array) -> Print | None:
    """Return the print of a numeric tensor of at least 4 elements; None for others, which tell nothing."""
    how = arithmetic(array.dtype, array.dtype)
    if how.kind != "float" or array.size < 4:
        return None
    places = np.linspace(0, array.size - 1, min(SAMPLES, array.size)).astype(np.int64)
    return Print(array.shape, array.reshape(-1)[places].astype(np.float64))


def executed_graph(side: ModelSide, folder: Path, originals: Mapping[str, Print], feed: Feed) -> ObservedGraph:
    """Dump the graph that a side's session runs, and find out which of the model's tensors it makes.

    originals: prints of the model's own tensors, by this side's names. feed: as the side takes it.
    """
    from layerwise._tool.backends.onnxrt.channel_block import channel_block
    from layerwise._tool.backends.onnxrt.runner import optimized_model
    from layerwise._tool.surgery.cut.segments import GraphCut

    folder.mkdir(parents=True, exist_ok=True)
    dumped = optimized_model(side.spec, side.model.whole(), folder / f"{side.index}.onnx")
    assert dumped.path is not None
    file = ModelFile(dumped.path)
    graph = ObservedGraph(GraphCut(file.structure()), file.folder, executed=True)
    known = {name for name in graph.cut.maker if name in side.model.cut.maker}
    renamed = [name for name in graph.cut.maker if name not in known]
    graph.names = {name: (name, None) for name in known}
    shapes: dict[tuple[int, ...], dict[str, Print]] = {}
    for name, found in originals.items():
        shapes.setdefault(found.shape, {})[name] = found
    blocked = _in_blocks(graph.cut)
    block = channel_block() if blocked else 0
    for name, array in _tensors(graph, side, renamed, feed):
        if name in blocked and not block:
            match, problem = None, "it is kept in blocks of channels whose size is not known"
        else:
            match, problem = _recognise(name, array, graph.cut, shapes, block if name in blocked else 0)
        if match and match[0] not in known:
            own, block = match
            known.add(own)
            graph.names[name] = (
                own,
                Blocked(block, originals[own].shape[1]) if block else None,
            )
        elif not match:
            graph.unmatched.append(f"{shown(name, 80)} of {shown(side.name, 60)}: {problem}")
    return graph


def original_prints(side: ModelSide, feed: Feed) -> dict[str, Print]:
    """Prints of all tensors of a side's model, run unfused."""
    graph = ObservedGraph(side.model.cut, side.model.file.folder)
    prints = {name: fingerprint(array) for name, array in _tensors(graph, side, list(graph.cut.maker), feed)}
    return {name: found for name, found in prints.items() if found is not None}


def _tensors(graph: ObservedGraph, side: ModelSide, names: list[str], feed: Feed) -> Iterable[tuple[str, Array]]:
    known = graph.cut.estimates_for(feed)
    wanted = [name for name in names if not (name in known and known[name].opaque)]
    plan = graph.cut.segments(wanted, usual_segment([side.spec]), known)
    pool, chosen = SessionPool(keep=False), set(wanted)
    for made in GraphStream(graph.cut, plan, side.spec, side.name, graph.folder, feed, pool):
        yield from ((name, array) for name, array in made.items() if name in chosen)


def _recognise(name: str, array: Array, cut: "GraphCut", shapes: Shapes, block: int) -> tuple[Match | None, str]:
    """The original tensor that `array`, stored in blocks of so many channels (0: plain), is, and that size; or why
    none. Values do not tell the size: many are equal in most channels.
    """
    found = sorted(_candidates(array, shapes, block))
    if not found:
        return None, "no tensor of the model has these values"
    best = found[0]
    if len(found) == 1 or best[0] < CLEAR * found[1][0]:
        return best[1], ""
    hint = cut.nodes[cut.maker[name]].name.removesuffix("_nchwc")
    named = [match for _, match in found if match[0] == hint]
    if named:
        return named[0], ""
    return None, f"{len(found)} tensors of the model have these values, {shown(best[1][0], 60)} among them"


def _candidates(array: Array, shapes: Shapes, block: int) -> Iterable[tuple[float, Match]]:
    for shape, originals in shapes.items():
        plain = _as_shape(array, shape, block)
        mine = fingerprint(plain) if plain is not None else None
        if mine is None:
            continue
        for name, original in originals.items():
            distance = print_distance(mine, original)
            if distance <= CLOSE:
                yield distance, (name, block)


def _in_blocks(cut: "GraphCut") -> set[str]:
    """The tensors that an optimised graph keeps in blocks of channels: those of the layout's own nodes, and what others
    make of them, element by element or along the channels.
    """
    found: set[str] = set()
    for node in cut.nodes:
        own = node.domain == _BLOCKED_LAYOUT and node.op_type != "ReorderOutput"
        if own or (node.domain != _BLOCKED_LAYOUT and not found.isdisjoint(node.input)):
            found.update(node.output)
    return found


def _as_shape(array: Array, shape: tuple[int, ...], block: int) -> Array | None:
    if block == 0:
        return array if array.shape == shape else None
    fits = array.ndim == len(shape) >= 3 and array.shape[0] == shape[0] and array.shape[2:] == shape[2:]
    if not fits or array.shape[1] % block or not 0 <= array.shape[1] - shape[1] < block:
        return None
    return Blocked(block, shape[1])(array)


def print_distance(a: Print, b: Print) -> float:
    """How far two prints are apart, relative to the largest value of the second; inf for other shapes, NaN and Inf."""
    if a.shape != b.shape or not (np.isfinite(a.values).all() and np.isfinite(b.values).all()):
        return math.inf
    scale = float(np.abs(b.values).max())
    return float(np.abs(a.values - b.values).max()) / scale if scale else float(np.any(a.values))
