"""Taking tensors, or nodes, some at a time."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


def at_once(items: Iterable[Item], nbytes: Callable[[Item], int], most: int, limit: float) -> Iterator[list[Item]]:
    """Give the items in order, at most `most` at a time and, but for a single one, at most `limit` bytes."""
    piece, held = list[Item](), 0
    for item in items:
        size = nbytes(item)
        if piece and (len(piece) == most or held + size > limit):
            yield piece
            piece, held = [], 0
        piece.append(item)
        held += size
    if piece:
        yield piece
