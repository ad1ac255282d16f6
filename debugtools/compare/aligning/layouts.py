"""In which layout the other side has each tensor: found where values agree, and tried on the tensors themselves."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from layerwise._tool.backends.arrays import Array, Feed
from layerwise._tool.backends.tensors import dtype_name, is_floating
from layerwise._tool.debugtools.align.alignment import AlignedPair, Layout
from layerwise._tool.debugtools.align.distance import distance
from layerwise._tool.debugtools.align.fingerprint import Fingerprint
from layerwise._tool.debugtools.align.layouts import find_layout
from layerwise._tool.debugtools.compare.memory import Limits
from layerwise._tool.debugtools.compare.observing.joiner import Joiner
from layerwise._tool.debugtools.compare.observing.store import ArrayStore

if TYPE_CHECKING:
    from layerwise._tool.surgery.cut.segments import GraphCut

_ALIKE, _UNLIKE = 0.005, 0.25  # estimates of a distance, held against 0.1 and 0.01
_KEEPING = frozenset({"Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"})
Shape = tuple[int, ...]


class Met(Struct, frozen=True):
    """What was found of a pair: the shapes of its tensors; of floating ones whether their values agree as they are, or
    in `layout`.
    """

    shapes: tuple[Shape, Shape]
    alike: bool = False
    layout: Layout | None = None

    @property
    def turned(self) -> bool:
        """Whether values agree with axes exchanged though the shapes are one."""
        return self.layout is not None and self.shapes[0] == self.shapes[1]


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


def met_by_prints(
    pairs: Iterable[AlignedPair], mine: Mapping[str, Fingerprint], theirs: Mapping[str, Fingerprint]
) -> tuple[dict[str, Met], list[AlignedPair]]:
    """What fingerprints of both sides on one feed tell of pairs; the pairs whose tensors have to be held together.

    What has no fingerprint was not seen, and is not seen again.
    """
    found, open_pairs = dict[str, Met](), list[AlignedPair]()
    for pair in pairs:
        one, other = mine.get(pair.tensor), theirs.get(pair.other)
        if one is None or other is None:
            continue
        met = _told(one, other)
        if met is None:
            open_pairs.append(pair)
        else:
            found[pair.tensor] = met
    return found, open_pairs


def _told(one: Fingerprint, other: Fingerprint) -> Met | None:
    shapes = one.shape, other.shape
    if one.size != other.size or one.kind != "float" or other.kind != "float":
        return Met(shapes)
    if one.hidden or other.hidden or not (one.sketch and other.sketch):
        return None
    apart = distance(one, other)
    if apart.in_order <= _ALIKE:
        return Met(shapes, alike=True) if shapes[0] == shapes[1] else Met(shapes, layout=Layout(after=shapes[0]))
    return Met(shapes) if min(apart) >= _UNLIKE else None


def laid_out(
    pairs: Iterable[AlignedPair], met: Mapping[str, Met], cut: "GraphCut"
) -> Iterator[AlignedPair | tuple[AlignedPair, str]]:
    """Give each pair with its layout, or with the reason why it is none: shapes that nothing brings together.

    Where values do not agree (behind a fault) the layout is the one that tensors of the same two shapes have. cut: the
    first side's graph. Tensors of one shape with their axes exchanged are a fault, unless what is made of them agrees,
    or the pair came with that layout: then it is one more view of a tensor that has a counterpart as it is. Of two
    counterparts of one tensor, one a view of the other that keeps the order, both have its order or none.
    """
    found = list(_laid_out(pairs, met, cut))
    orders = {each.tensor: each for each in found if isinstance(each, AlignedPair)}
    for node in cut.nodes:
        views = [orders[name] for name in (*node.input[:1], *node.output[:1]) if name in orders]
        if node.op_type in _KEEPING and len(views) == len({each.tensor for each in views}) == 2:
            turned = [each for each in views if each.layout is not None and each.layout.permutation]
            if len(turned) == 1 and views[0].other == views[1].other and turned[0].tensor in met:
                mine, theirs = met[turned[0].tensor].shapes
                orders[turned[0].tensor] = replace(turned[0], layout=None if mine == theirs else Layout(after=mine))
    yield from (orders[each.tensor] if isinstance(each, AlignedPair) else each for each in found)


def _laid_out(
    pairs: Iterable[AlignedPair], met: Mapping[str, Met], cut: "GraphCut"
) -> Iterator[AlignedPair | tuple[AlignedPair, str]]:
    usual = {found.shapes: found.layout for found in met.values() if found.layout is not None}
    readers: dict[str, list[int]] = {}
    for i, reads in enumerate(cut.reads):
        for read in reads:
            readers.setdefault(read, []).append(i)
    for pair in pairs:
        found = met.get(pair.tensor)
        if found is None:
            yield pair  # a side fails before it, or it is no tensor
            continue
        layout = found.layout if not found.turned or _made_good(pair.tensor, met, cut, readers) else None
        if found.shapes[0] == found.shapes[1]:
            layout = layout or (None if found.alike else pair.layout)
        else:
            layout = layout or pair.layout or usual.get(found.shapes) or _reshaped(found.shapes)
            if layout is None:
                yield pair, f"its shape is {list(found.shapes[0])} here and {list(found.shapes[1])} there"
                continue
        yield replace(pair, layout=layout)


def _made_good(name: str, met: Mapping[str, Met], cut: "GraphCut", readers: Mapping[str, list[int]]) -> bool:
    """Whether something that is made of a tensor, with nothing between but others with exchanged axes, agrees."""
    seen, waiting = {name}, [name]
    while waiting:
        for i in readers.get(waiting.pop(), ()):
            for made in cut.nodes[i].output if cut.nodes[i].op_type not in ("Shape", "Size") else ():
                found = met.get(made)
                if found is not None and found.alike:
                    return True
                if made not in seen and (found is None or found.layout is not None):
                    seen.add(made)
                    waiting.append(made)
    return False


def _met(mine: Array, theirs: Array) -> Met:
    shapes = mine.shape, theirs.shape
    if mine.size != theirs.size or not (_floating(mine) and _floating(theirs)):
        return Met(shapes)
    if mine.shape == theirs.shape and _close(mine, theirs):
        return Met(shapes, alike=True)
    return Met(shapes, layout=_layout(mine, theirs))


def _layout(mine: Array, theirs: Array) -> Layout | None:
    found = find_layout(mine, theirs)
    return None if found == Layout() else found


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
