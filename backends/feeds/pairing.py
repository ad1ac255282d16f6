"""Which data belong to which input of a model whose inputs have other names."""

from collections.abc import Mapping, Sequence

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.names import similar_name
from layerwise._tool.backends.tensors import TensorInfo, dtype_name, is_floating


def paired_inputs(feed: Mapping[str, Array], inputs: Sequence[TensorInfo], *, turned: bool = False) -> dict[str, str]:
    """Return, for data whose name no input has, the input without data of its own that it is for.

    They belong together if the input takes that shape and kind of numbers; where several do, the one with a similar
    name, else the first. What fits nothing is left out. turned: data may have their channels at the other end.
    """
    names = {info.name for info in inputs}
    left = {name: array for name, array in feed.items() if name not in names}
    found: dict[str, str] = {}
    for info in [info for info in inputs if info.name not in feed]:
        fitting = [name for name, array in left.items() if _fits(array, info)]
        if turned and not fitting:
            fitting = [name for name, array in left.items() if channels_moved(array.shape, info)]
        chosen = similar_name(info.name, fitting, 0)
        if chosen is not None:
            found[chosen] = info.name
            del left[chosen]
    return found


def channels_moved(shape: Sequence[int], info: TensorInfo) -> tuple[int, ...] | None:
    """The permutation after which data of a shape fit an input that has its channels at the other end.

    None if they fit as they are, no such permutation makes them fit, or both do.
    """
    rank = len(shape)
    if rank < 3 or info.shape is None or info.fits(shape):
        return None
    moves = dict.fromkeys(((0, *range(2, rank), 1), (0, rank - 1, *range(1, rank - 1))))
    fitting = [move for move in moves if info.fits([shape[axis] for axis in move])]
    return fitting[0] if len(fitting) == 1 else None


def _fits(array: Array, info: TensorInfo) -> bool:
    return info.fits(array.shape) and is_floating(dtype_name(array)) == is_floating(info.dtype)
