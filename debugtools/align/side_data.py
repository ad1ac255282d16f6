"""One side of an alignment: its graph and the fingerprints of its tensors, collected one tensor at a time."""

import os
from collections import deque
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

import msgspec

from layerwise._tool.backends.arrays import Array
from layerwise._tool.debugtools.align.fingerprint import Fingerprint, fingerprint
from layerwise._tool.debugtools.align.graph import AlignGraph

_FEW = 1 << 16  # bytes: what is shorter takes less time than another thread's attention
_PENDING = Fingerprint("other", "", ())


class SideData(msgspec.Struct, frozen=True):
    """prints: by tensor, weights and inputs included, of those that were seen. digest: of the model's structure."""

    graph: AlignGraph
    prints: Mapping[str, Fingerprint]
    digest: str = ""


def collect(
    graph: AlignGraph, tensors: Iterable[tuple[str, Array]], digest: str = "", *, ahead: int = 0
) -> SideData:
    """Return a side's data. tensors: names and values in any order; a name that comes again is passed over.

    ahead: bytes of tensors that may wait for their fingerprints in other threads, while the next ones are made; of what
    is given then, nothing may change. 0: each is done with before the next one is asked for.
    """
    prints: dict[str, Fingerprint] = {}
    if not ahead:
        for name, array in tensors:
            if name not in prints:
                prints[name] = fingerprint(array)
        return SideData(graph, prints, digest)
    waiting: deque[tuple[str, int, Future[Fingerprint]]] = deque()
    held = 0
    with ThreadPoolExecutor(len(os.sched_getaffinity(0)), "fingerprint") as pool:
        for name, array in tensors:
            if name in prints:
                continue
            if array.nbytes < _FEW:
                prints[name] = fingerprint(array)
                continue
            while waiting and held + array.nbytes > ahead:
                done, size, future = waiting.popleft()
                prints[done] = future.result()
                held -= size
            prints[name] = _PENDING
            waiting.append((name, array.nbytes, pool.submit(fingerprint, array)))
            held += array.nbytes
        prints.update((name, future.result()) for name, _, future in waiting)
    return SideData(graph, prints, digest)
