"""One side of an alignment: its graph and the fingerprints of its tensors, collected one tensor at a time."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import msgspec

from layerwise._tool.backends.arrays import Array
from layerwise._tool.debugtools.align.fingerprint import Fingerprint, fingerprint
from layerwise._tool.debugtools.align.graph import AlignGraph


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
