"""In which layout the other side has each tensor: found where values agree, and tried on the tensors themselves."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
_ROUNDING = frozenset({"Cast", "CastLike", "DequantizeLinear", "QuantizeLinear"})
_MEASURING = frozenset({"Shape", "Size"})
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
    pairs: Iterable[AlignedPair], met: Mapping[str, Met], cut: "GraphCut", other_cut: "GraphCut | None" = None
) -> Iterator[AlignedPair | tuple[AlignedPair, str]]:
    """Give each pair with its layout, or with the reason why it is none: shapes that nothing brings together.

    Where values do not agree (behind a fault) the layout is the one that tensors of the same two shapes have. cut,
    other_cut: the sides' graphs, as far as they have one. Tensors of one shape with their axes exchanged are a fault,
    unless what is made of them agrees, other operators read them, or the pair came with that layout: then it is one
    more view of a tensor that has a counterpart as it is. Of two counterparts of one tensor, one a view of the other
    that keeps the order, both have its order or none.
    """
    found = list(_laid_out(list(pairs), met, cut, other_cut))
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
    pairs: Sequence[AlignedPair], met: Mapping[str, Met], cut: "GraphCut", other_cut: "GraphCut | None"
) -> Iterator[AlignedPair | tuple[AlignedPair, str]]:
    usual = {found.shapes: found.layout for found in met.values() if found.layout is not None}
    right = _rightly_turned(pairs, met, cut, other_cut)
    alike = {_made_by(pair, cut, other_cut): right[pair.tensor] for pair in pairs if pair.tensor in right}
    for pair in pairs:
        found = met.get(pair.tensor)
        if found is None:
            yield pair  # a side fails before it, or it is no tensor
            continue
        layout = right.get(pair.tensor) if found.turned else found.layout
        if found.shapes[0] == found.shapes[1]:
            if layout is None and not found.alike:
                layout = pair.layout
                if layout is None and alike and not found.turned:
                    layout = alike.get(_made_by(pair, cut, other_cut))
        else:
            layout = layout or pair.layout or usual.get(found.shapes) or _reshaped(found.shapes)
            if layout is None:
                yield pair, f"its shape is {list(found.shapes[0])} here and {list(found.shapes[1])} there"
                continue
        yield replace(pair, layout=layout)


def _rightly_turned(
    pairs: Iterable[AlignedPair], met: Mapping[str, Met], cut: "GraphCut", other_cut: "GraphCut | None"
) -> dict[str, Layout]:
    """The layouts of tensors of one shape whose axes are exchanged, where that is no fault."""
    found = dict[str, Layout]()
    for pair in pairs:
        name, layout = pair.tensor, met[pair.tensor].layout if pair.tensor in met else None
        if layout is None or not met[name].turned:
            continue
        right = _made_good(name, met, cut)
        if not right and other_cut is not None:
            by, there = _read_by(name, cut), _read_by(pair.other, other_cut)
            right = bool(by and there) and by.isdisjoint(there)
        if right:
            found[name] = layout
    return found


def _made_by(pair: AlignedPair, cut: "GraphCut", other_cut: "GraphCut | None") -> tuple[bytes, ...]:
    """What the nodes that make a pair's tensors do: where others do the same, their tensors are turned alike."""
    found = []
    for name, graph in ((pair.tensor, cut), (pair.other, other_cut)):
        maker = graph.maker.get(name) if graph is not None else None
        if graph is None or maker is None or graph.nodes[maker].op_type != "Transpose":
            return (pair.tensor.encode(),)
        found.append(graph.nodes[maker].attribute[0].SerializeToString() if graph.nodes[maker].attribute else b"")
    return tuple(found)


def _read_by(name: str, cut: "GraphCut") -> set[str]:
    """The operators that compute with a tensor, other types and shapes of it included; none of an output."""
    if name in cut.outputs:
        return set()
    found, seen, waiting = set[str](), {name}, [name]
    while waiting:
        for node in [cut.nodes[i] for i in cut.readers.get(waiting.pop(), ())]:
            if node.op_type not in _KEEPING | _ROUNDING:
                found.add(node.op_type)
                continue
            waiting += [made for made in node.output if made not in seen]
            seen.update(node.output)
    return found - _MEASURING


def _made_good(name: str, met: Mapping[str, Met], cut: "GraphCut") -> bool:
    """Whether something that is made of a tensor, with nothing between but others with exchanged axes, agrees."""
    seen, waiting = {name}, [name]
    while waiting:
        for i in cut.readers.get(waiting.pop(), ()):
            for made in cut.nodes[i].output if cut.nodes[i].op_type not in _MEASURING else ():
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
