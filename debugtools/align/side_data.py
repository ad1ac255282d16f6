"""One side of an alignment: its graph and the fingerprints of its tensors, collected one tensor at a time."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import msgspec
from msgspec import structs

from layerwise._tool.backends.arrays import Array
from layerwise._tool.debugtools.align.fingerprint import Fingerprint, fingerprint, same_values
from layerwise._tool.debugtools.align.graph import AlignGraph
from layerwise._tool.debugtools.align.operators import is_view


class SideData(msgspec.Struct, frozen=True):
    """prints: by tensor, weights and inputs included, of those that were seen. digest: of the model's structure."""

    graph: AlignGraph
    prints: Mapping[str, Fingerprint]
    digest: str = ""


def collect(
    graph: AlignGraph,
    tensors: Iterable[tuple[str, Array]],
    digest: str = "",
    known: Mapping[str, Fingerprint] = MappingProxyType({}),
) -> SideData:
    """Return a side's data. tensors: names and values in any order; a name that comes again is passed over, and one
    whose fingerprint is known.
    """
    prints = dict(known)
    for name, array in tensors:
        if name not in prints:
            prints[name] = fingerprint(array)
    return SideData(graph, prints, digest)


def with_local(data: SideData, local: Mapping[str, Fingerprint]) -> SideData:
    """A side's data with other fingerprints of some tensors. A node that hands a tensor on as it is has its source's:
    made of whatever is that one's counterpart by now, it would agree with that.
    """
    prints = {**data.prints, **local}
    for node in data.graph.nodes:
        if not is_view(node.op) or not node.inputs or node.outputs[0] not in local:
            continue
        one, other = (data.prints.get(name) for name in (node.inputs[0], node.outputs[0]))
        if one is not None and other is not None and same_values(one, other):
            source = prints[node.inputs[0]]
            prints[node.outputs[0]] = structs.replace(source, dtype=other.dtype, shape=other.shape)
    return structs.replace(data, prints=prints)
