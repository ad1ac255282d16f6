"""What marking costs, kept up to date as marks come and go."""

import math
from typing import TYPE_CHECKING

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.tensors import packed_nbytes

if TYPE_CHECKING:
    from layerwise._tool.surgery.graph import GraphIndex

    Shape = tuple[int | str | None, ...] | None


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
