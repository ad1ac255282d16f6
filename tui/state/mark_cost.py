"""What observing tensors will cost, from the index alone: how many, how many bytes."""

import fnmatch
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.tensors import packed_nbytes
from layerwise._tool.debugtools.compare.spec import MarkSpec

if TYPE_CHECKING:
    from layerwise._tool.surgery.graph.index import GraphIndex

    Shape = tuple[int | str | None, ...] | None


@dataclass(frozen=True)
class Cost:
    """tensors: observed; nbytes: of one side and iteration; unsized: tensors of unknown shape or type."""

    tensors: int
    nbytes: int
    unsized: int


def mark_cost(index: "GraphIndex", marks: MarkSpec, shapes: Mapping[str, list[list[int]]]) -> Cost:
    """Cost of `marks` when the inputs have `shapes`; a symbol that no input gives counts as 1."""
    symbols = _symbols(index, shapes)
    tensors = nbytes = unsized = 0
    for tensor in chosen_tensors(index, marks):
        size, is_open = sized(index, tensor, symbols)
        tensors += 1
        nbytes += size
        unsized += is_open
    return Cost(tensors, nbytes, unsized)


def chosen_tensors(index: "GraphIndex", marks: MarkSpec) -> Iterable[int]:
    """Numbers of the main graph's tensors that `marks` names, the graph's outputs included."""
    excluded = _matcher(marks.exclude)
    named = _matcher(marks.names)
    types = {kind.lower() for kind in marks.op_types}
    for node in index.main_nodes().tolist():
        whole = marks.everything or index.node_op(node).lower() in types
        for tensor in index.node_outputs(node):
            if tensor >= 0 and _chosen(index, tensor, whole, named, excluded):
                yield tensor


def _chosen(
    index: "GraphIndex",
    tensor: int,
    whole: bool,
    named: Callable[[str], bool],
    excluded: Callable[[str], bool],
) -> bool:
    name = index.tensor_name(tensor)
    return (whole or index.is_output(tensor) or named(name)) and not excluded(name)


def _matcher(patterns: Iterable[str]) -> Callable[[str], bool]:
    exact = set(patterns)
    globs = [re.compile(fnmatch.translate(p)) for p in exact if any(sign in p for sign in "*?[")]
    return lambda name: name in exact or any(glob.match(name) for glob in globs)


def _symbols(index: "GraphIndex", shapes: Mapping[str, list[list[int]]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, given in shapes.items():
        tensor = index.find_tensor(name)
        declared = index.tensor_shape(tensor) if tensor >= 0 else None
        for dim, size in zip(declared or (), max(given, default=[]), strict=False):
            if isinstance(dim, str):
                found[dim] = size
    return found


def sized(index: "GraphIndex", tensor: int, symbols: Mapping[str, int]) -> tuple[int, bool]:
    """Bytes of a tensor, and whether its type or a dimension is unknown (counted as 1 then)."""
    shape = index.tensor_shape(tensor)
    known = None if shape is None else tuple(symbols.get(d, d) if isinstance(d, str) else d for d in shape)
    return tensor_bytes(index.tensor_dtype(tensor), known)


class MarkCost:
    """Bytes of all marked tensors. `open_ended`: how many have unknown dimensions, counted as 1 each."""

    def __init__(self) -> None:
        self.nbytes = 0
        self.open_ended = 0
        self._counted: dict[str, tuple[int, bool]] = {}

    def follow(self, index: "GraphIndex", marks: set[str]) -> None:
        """Bring the sums up to date with `marks`; costs only what changed."""
        for name in self._counted.keys() - marks:
            nbytes, is_open = self._counted.pop(name)
            self.nbytes -= nbytes
            self.open_ended -= is_open
        for name in marks - self._counted.keys():
            nbytes, is_open = _cost(index, name)
            self._counted[name] = nbytes, is_open
            self.nbytes += nbytes
            self.open_ended += is_open


def _cost(index: "GraphIndex", name: str) -> tuple[int, bool]:
    tensor = index.find_tensor(name)
    return (0, True) if tensor < 0 else tensor_bytes(index.tensor_dtype(tensor), index.tensor_shape(tensor))


def tensor_bytes(dtype: str, shape: "Shape") -> tuple[int, bool]:
    """Bytes of a tensor, and whether some of its dimensions or its type is unknown (a lower bound then)."""
    known = [dim for dim in shape or () if isinstance(dim, int)]
    is_open = shape is None or len(known) < len(shape)
    try:
        return packed_nbytes(dtype, known), is_open
    except UsageError:
        return math.prod(known), True
