"""A dump of another program, as it was read."""

from msgspec import Struct, field

from layerwise._tool.backends.dumps.ranks import Shape
from layerwise._tool.backends.results.inference import RunResults


class Dump(Struct):
    """results: one runner. notes: how it was read, and what was not. shapes: of counterparts, by name, to be filled in
    before tensors in pieces are read. joined: how those were put together. foreign: it is another program's. raw:
    tensors of the first iteration that may be raw elements of another type, with the type of the file.
    """

    results: RunResults
    notes: list[str] = field(default_factory=list)
    shapes: dict[str, Shape] = field(default_factory=dict)
    joined: dict[str, str] = field(default_factory=dict)
    pieces: frozenset[str] = frozenset()
    foreign: bool = False
    raw: dict[str, str] = field(default_factory=dict)
