"""Comparing the tensors of a segment in threads, before they are read one after the other."""

import os
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import TYPE_CHECKING

from layerwise._tool.backends.arrays import Array
from layerwise._tool.debugtools.compare.arithmetic.comparison import Comparison
from layerwise._tool.debugtools.compare.table.pairs import Comparer
from layerwise._tool.debugtools.locate.walk import Seen

if TYPE_CHECKING:
    from typing_extensions import Self

_MOST, _SHARE = 4, 4  # threads; processors for each: the others run both sides
_LEAST = 1 << 14  # elements: a smaller tensor is compared in the time that a thread takes to begin


def idle_threads() -> int:
    """How many threads may compare beside the one that reads; 0 on a machine of few processors."""
    return min(_MOST, len(os.sched_getaffinity(0)) // _SHARE)


class ComparingAhead:
    """Compares what a suspect made with the reference. A context manager: leaving it ends the threads.

    threads: how many; with none each tensor is compared when it is asked for.
    """

    def __init__(self, comparer: Comparer, threads: int) -> None:
        self._comparer = comparer
        self._pool = ThreadPoolExecutor(threads, "compare") if threads else None
        self._coming: dict[str, tuple[Seen, Future[Comparison]]] = {}

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def look(self, coming: Sequence[Seen]) -> None:
        """See the tensors that are read next, in their order, where there are threads."""
        assert self._pool is not None
        self._coming.clear()
        for seen in coming:
            if seen.accumulated.size >= _LEAST:
                self._comparer.places.place(seen.name)  # it is found on this thread, and known then
                self._coming[seen.name] = seen, self._pool.submit(self._comparer.compare, *seen)

    def compared(self, name: str, accumulated: Array, reference: Array) -> Comparison:
        """The comparison of a tensor, which may have been written otherwise since it was seen."""
        seen, future = self._coming.pop(name, (None, None))
        if future is not None and seen is not None and seen.accumulated is accumulated and seen.reference is reference:
            return future.result()
        return self._comparer.compare(name, accumulated, reference)
