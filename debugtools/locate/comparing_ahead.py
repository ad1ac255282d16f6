"""Comparing the tensors of a segment in threads, before they are read one after the other."""

import os
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import TYPE_CHECKING

from layerwise._tool.debugtools.compare.arithmetic.comparison import Comparison
from layerwise._tool.debugtools.compare.table.pairs import Comparer
from layerwise._tool.debugtools.locate.walk import Met

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
        self._coming: dict[str, tuple[Met, Future[Comparison]]] = {}

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def look(self, mets: Sequence[Met]) -> None:
        """See the tensors that are read next, in their order."""
        self._coming.clear()
        for met in mets if self._pool is not None else ():
            if met.accumulated is not None and met.accumulated.size >= _LEAST:
                self._comparer.places.place(met.name)  # it is found on this thread, and known then
                assert self._pool is not None
                self._coming[met.tensor] = met, self._pool.submit(self._compare, met)

    def compared(self, met: Met) -> Comparison:
        """The comparison of a tensor, which may have been written otherwise since."""
        known, future = self._coming.pop(met.tensor, (None, None))
        same = known is not None and known.accumulated is met.accumulated and known.reference is met.reference
        return future.result() if future is not None and same else self._compare(met)

    def _compare(self, met: Met) -> Comparison:
        assert met.accumulated is not None
        return self._comparer.compare(met.name, met.accumulated, met.reference)
