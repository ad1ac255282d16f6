"""In which layout the other side has each tensor: found where values agree, and tried on the tensors themselves."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.tensors import dtype_name, is_floating
from layerwise._tool.debugtools.align.alignment import AlignedPair, Layout
from layerwise._tool.debugtools.align.layouts import find_layout
from layerwise._tool.debugtools.compare.memory import Limits
from layerwise._tool.debugtools.compare.observing.iteration import Joiner
from layerwise._tool.debugtools.compare.observing.store import ArrayStore

Shape = tuple[int, ...]
Feed = Mapping[str, Array]


class Met(Struct, frozen=True):
    """What was found of a pair: the shapes of its tensors, whether their values agree as they are, or in `layout`."""

    shapes: tuple[Shape, Shape]
    alike: bool = False
    layout: Layout | None = None


def meet(
    pairs: Iterable[AlignedPair], streams: tuple[Iterator[Feed], Iterator[Feed]], limits: Limits, spill: Path
) -> dict[str, Met]:
    """Hold the tensors of each pair against each other; by the name of the first.

    streams: both sides' tensors by their own names. spill: where what waits lies beyond what memory allows.
    """
    others: dict[str, list[str]] = {}
    for pair in pairs:
        others.setdefault(pair.other, []).append(pair.tensor)
    names = [name for several in others.values() for name in several]
    renamed = ({name: array for own, array in made.items() for name in others.get(own, ())} for made in streams[1])
    store, found = ArrayStore(limits.waiting, spill), dict[str, Met]()
    try:
        joined = Joiner({0: streams[0], 1: renamed}, {}, {0: names, 1: names}, [(0, 1)], store).run()
        for _, name, mine, theirs in joined:
            found[name] = _met(mine, theirs)
    finally:
        store.close()
    return found


def laid_out(pairs: Iterable[AlignedPair], met: Mapping[str, Met]) -> Iterator[AlignedPair | tuple[AlignedPair, str]]:
    """Give each pair with its layout, or with the reason why it is none: shapes that nothing brings together.

    Where values do not agree (behind a fault) the layout is the one that tensors of the same two shapes have.
    """
    pairs = list(pairs)
    usual = {found.shapes: found.layout for found in met.values() if found.layout is not None}
    alike = {found.shapes for found in met.values() if found.alike}
    for pair in pairs:
        found = met.get(pair.tensor)
        if found is None:
            yield pair, "it was not made on both sides"
            continue
        layout = found.layout
        if layout is None and not found.alike and found.shapes not in alike:
            layout = pair.layout or usual.get(found.shapes) or _reshaped(found.shapes)
        if layout is None and found.shapes[0] != found.shapes[1]:
            yield pair, f"its shape is {list(found.shapes[0])} here and {list(found.shapes[1])} there"
        else:
            yield replace(pair, layout=layout)


def _met(mine: Array, theirs: Array) -> Met:
    shapes = mine.shape, theirs.shape
    if mine.size != theirs.size or not (_floating(mine) and _floating(theirs)):
        return Met(shapes, mine.shape == theirs.shape and np.array_equal(mine, theirs))
    if mine.shape == theirs.shape and _close(mine, theirs):
        return Met(shapes, alike=True)
    return Met(shapes, layout=find_layout(mine, theirs))


def _floating(array: Array) -> bool:
    return is_floating(dtype_name(array))


def _close(mine: Array, theirs: Array) -> bool:
    """Whether values agree place by place, as far as two precisions and an order of sums allow."""
    with np.errstate(all="ignore"):
        a, b = mine.astype(np.float32), theirs.astype(np.float32)
        visible = np.isfinite(a) & np.isfinite(b) & (np.abs(b) < 1e30)
        a, b = a[visible], b[visible]
        return bool(np.square(a - b).sum(dtype=np.float64) <= 1e-2 * np.square(b).sum(dtype=np.float64))


def _reshaped(shapes: tuple[Shape, Shape]) -> Layout | None:
    """The layout where one shape is the other with dimensions split, joined or of length one."""
    mine, theirs = (tuple(dim for dim in shape if dim != 1) for shape in shapes)
    if shapes[0] == shapes[1] or not (mine == theirs or _joined(mine, theirs) or _joined(theirs, mine)):
        return None
    return Layout(after=shapes[0])


def _joined(long: Shape, short: Shape) -> bool:
    """Whether neighbouring dimensions of `long` multiplied give `short`."""
    left, product = list(short), 1
    for dim in long:
        product *= dim
        if left and product == left[0]:
            left.pop(0)
            product = 1
    return not left and product == 1
