"""The body of a reference's node under the names of the suspect's, where the two share none."""

from collections.abc import Mapping, Sequence

import onnx

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.model.reads import captures
from layerwise._tool.debugtools.align.alignment import AlignedPair
from layerwise._tool.debugtools.align.match import align
from layerwise._tool.debugtools.align.onnx_graph import onnx_graph
from layerwise._tool.debugtools.align.side_data import SideData, collect
from layerwise._tool.debugtools.locate.part import Part
from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.rewrite.rewiring import making, reading


def same_names(mine: onnx.GraphProto, theirs: onnx.GraphProto) -> bool:
    """Whether names tell which tensors of two bodies belong together: equal ones of inputs, and of half of the rest."""
    found, expected = ({name for node in body.node for name in node.output if name} for body in (mine, theirs))
    return _inputs(mine) == _inputs(theirs) and 2 * len(found & expected) >= len(found)


def with_inputs_of(mine: onnx.GraphProto, theirs: onnx.GraphProto) -> onnx.GraphProto:
    """The reference's body, its inputs called as the suspect's. LayerwiseError if there are more or fewer."""
    if len(mine.input) != len(theirs.input):
        raise LayerwiseError(f"the bodies have {len(mine.input)} and {len(theirs.input)} inputs")
    return _renamed(theirs, dict(zip(_inputs(theirs), _inputs(mine), strict=True)))


def with_names_of(
    mine: onnx.GraphProto, theirs: onnx.GraphProto, parts: Sequence[Part], values: Sequence[Mapping[str, Array]]
) -> onnx.GraphProto:
    """The reference's body, its tensors called as those of the suspect's that are their counterparts.

    values: what both bodies read and make in one trip. Tensors of other shapes or orders get no counterpart.
    """
    data = [_side(part, seen) for part, seen in zip(parts, values, strict=True)]
    known = [
        AlignedPair(a.name, b.name, "certain", ("structure",))
        for one, other in ((mine.input, theirs.input), (mine.output, theirs.output))
        for a, b in zip(one, other, strict=False)
    ]
    new = {
        pair.other: pair.tensor
        for pair in align(data[0], data[1], known).pairs
        if pair.layout is None
        and pair.tensor in values[0]
        and _shape(values[0], pair.tensor) == _shape(values[1], pair.other)
    }
    return _renamed(theirs, new, {name for node in mine.node for name in node.output})


def _inputs(body: onnx.GraphProto) -> list[str]:
    return [value.name for value in body.input]


def _shape(values: Mapping[str, Array], name: str) -> tuple[int, ...] | None:
    return values[name].shape if name in values else None


def _side(part: Part, values: Mapping[str, Array]) -> SideData:
    weights = ((name, part.weight(name)) for name in part.cut.initializers)
    return collect(onnx_graph(Structure.from_proto(part.cut.model, part.folder)), [*values.items(), *weights])


def _renamed(
    body: onnx.GraphProto, new: Mapping[str, str], taken: frozenset[str] | set[str] = frozenset()
) -> onnx.GraphProto:
    """The body with other names of what it makes and takes; what bears a name of `taken` without being renamed to it
    gets one of its own."""
    own = [*_inputs(body), *(name for node in body.node for name in node.output if name)]
    fixed = {*captures(body), *(tensor.name for tensor in body.initializer)}
    names = {name: new[name] for name in own if name in new and new[name] not in fixed}
    used = {*fixed, *own, *names.values(), *taken}
    for name in own:
        if name not in names and (name in taken or name in names.values()):
            names[name] = next(f"{name}~{n}" for n in range(1, len(used) + 2) if f"{name}~{n}" not in used)
            used.add(names[name])
    copy = onnx.GraphProto()
    copy.CopyFrom(body)
    del copy.node[:], copy.value_info[:]
    copy.node.extend(making(reading(node, names), names) for node in body.node)
    for value in (*copy.input, *copy.output):
        value.name = names.get(value.name, value.name)
    return copy
