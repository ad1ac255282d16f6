"""Bringing two arrays of different shapes together, for users who switched the shape check off."""

from layerwise._tool.backends.arrays import Array


def match_shapes(a: Array, b: Array) -> tuple[Array, Array, str]:
    """Return both arrays in one shape where a transpose or a reshape can do it, and what was done.

    As Polygraphy does: the second is reshaped when the element counts agree after a transpose has been tried, and
    transposed when its dimensions are a permutation of the first's (equal lengths are taken in order). Views, no
    copies where the layout allows. If nothing fits, the arrays come back as they are.
    """
    if a.shape == b.shape:
        return a, b, ""
    if sorted(a.shape) == sorted(b.shape):
        order = _permutation(b.shape, a.shape)
        return a, b.transpose(order), f"second side transposed by {order}"
    if a.size == b.size:
        return a, b.reshape(a.shape), f"second side reshaped from {b.shape} to {a.shape}"
    return a, b, ""


def _permutation(have: tuple[int, ...], want: tuple[int, ...]) -> tuple[int, ...]:
    free = list(range(len(have)))
    order = []
    for length in want:
        axis = next(i for i in free if have[i] == length)
        free.remove(axis)
        order.append(axis)
    return tuple(order)
