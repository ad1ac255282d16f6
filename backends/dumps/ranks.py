"""Pieces of one tensor that the ranks of a tensor-parallel run dumped, joined to the shape of its counterpart.

Pieces that have the counterpart's shape are copies, if their values are equal, or else the parts of a sum. Pieces that
make that shape along exactly one axis are parts of it. Anything else is not joined.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct, field

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.results.inference import Stored
from layerwise._tool.backends.tensors import is_floating

Shape = tuple[int, ...]
_NEAR = 1e-2  # of the root mean square: pieces that differ by less are neither equal nor parts of a sum


class Unclear(LayerwiseError):
    """It is not sure what a tensor of a dump is: its pieces make no whole, or its type is not known."""


class Pieces(Struct):
    """A tensor in pieces. ranks: which there are, as numbers; all: those of the whole dump. shapes: of counterparts, by
    name, as far as they are known; joined: name -> how, filled in as they are read.
    """

    name: str
    pieces: Sequence[Stored]
    ranks: Sequence[int]
    all: Sequence[int]
    shapes: Mapping[str, Shape]
    joined: dict[str, str] = field(default_factory=dict)

    @property
    def dtype(self) -> str:
        """Its data type: of the first piece."""
        return self.pieces[0].dtype

    @property
    def shape(self) -> Shape:
        """Its shape: of its counterpart, where that is known, else of the first piece."""
        return self.shapes.get(self.name, self.pieces[0].shape)

    def array(self) -> Array:
        """The whole tensor. Unclear if that cannot be made for sure."""
        wanted = self.shapes.get(self.name)
        if wanted is None:
            raise Unclear(f"it is in {len(self.pieces)} pieces, and nothing says what shape they make")
        shapes = [piece.shape for piece in self.pieces]
        if len({piece.dtype for piece in self.pieces}) > 1:
            raise Unclear("its pieces are of several data types")
        if all(shape == wanted for shape in shapes):
            return self._whole()
        if self.ranks != self.all:
            raise Unclear(f"it has pieces of the ranks {_list(self.ranks)} only, others of {_list(self.all)}")
        axes = [axis for axis in range(len(wanted)) if _makes(shapes, wanted, axis)]
        if len(axes) != 1:
            told = " and ".join(str(shape) for shape in dict.fromkeys(shapes))
            raise Unclear(f"its pieces of {told} make no {wanted} along {'one axis' if axes else 'any axis'}")
        self.joined[self.name] = f"concatenated along axis {axes[0]}"
        return np.concatenate([piece.array() for piece in self.pieces], axes[0])

    def _whole(self) -> Array:
        if len(self.pieces) == 1:
            self.joined[self.name] = f"from rank {self.ranks[0]} alone"
            return self.pieces[0].array()
        first = self.pieces[0].array()
        others = [piece.array() for piece in self.pieces[1:]]
        if all(_equal(first, other) for other in others):
            self.joined[self.name] = "equal on all ranks"
            return first
        if self.ranks != self.all:
            raise Unclear(f"it has parts of the ranks {_list(self.ranks)} only, others of {_list(self.all)}")
        if not is_floating(self.dtype):
            raise Unclear("its pieces differ, and are no numbers that are summed")
        if all(_near(first, other) for other in others):
            raise Unclear("its pieces are nearly equal: neither copies nor, for sure, the parts of a sum")
        self.joined[self.name] = "summed over the ranks"
        total = first.astype(np.float64)
        for other in others:
            total += other.astype(np.float64)
        return total.astype(first.dtype)


def _makes(shapes: Sequence[Shape], wanted: Shape, axis: int) -> bool:
    """Whether arrays of these shapes have the one wanted when they are concatenated."""
    if any(len(shape) != len(wanted) for shape in shapes):
        return False
    rest = wanted[:axis] + wanted[axis + 1 :]
    fits = all(shape[:axis] + shape[axis + 1 :] == rest for shape in shapes)
    return fits and sum(shape[axis] for shape in shapes) == wanted[axis]


def _equal(a: Array, b: Array) -> bool:
    if a.dtype == object:
        return bool(np.array_equal(a, b))
    first, second = (np.ascontiguousarray(array).reshape(-1).view(np.uint8) for array in (a, b))
    return bool(np.array_equal(first, second))


def _near(a: Array, b: Array) -> bool:
    first, second = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(all="ignore"):
        scale = np.sqrt(np.mean(np.square(first)))
        return bool(np.sqrt(np.mean(np.square(first - second))) <= _NEAR * scale)


def _list(ranks: Sequence[int]) -> str:
    return ", ".join(map(str, ranks[:8])) + (", …" if len(ranks) > 8 else "")
