"""How much memory the process uses, and how much a comparison may."""

import ctypes
import gc
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from layerwise._tool.backends.limits.memory import resident, use_one_heap
from layerwise._tool.backends.specs import RunnerSpec

SEGMENT, ENGINE, COPIED = 32 << 20, 256 << 20, 1 << 30
WAITING = 256 << 20
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # glibc's mallopt
_LARGE_BLOCK, _LARGEST_BLOCK = 1 << 18, 32 << 20
_SMALLEST_SEGMENT = 256 << 10
_HELD_AT_ONCE = 6  # a segment's outputs: engine's and ours, of two sides, with the tensors that live on


class Limits(Struct, frozen=True):
    """segment: bytes of outputs and weights of one segment; waiting: bytes that may wait for their counterparts.

    ahead: bytes of pairs that may wait to be compared.
    """

    segment: int = SEGMENT
    waiting: int = WAITING
    ahead: int = 2 * SEGMENT


def usual_segment(runners: Iterable[RunnerSpec]) -> int:
    """Bytes of a segment without a budget: many small ones suit a CPU's cache, few large ones what is dear to open.

    That is an engine, which is built, and a session on a GPU, which takes memory and copies weights there.
    """
    spec = tuple(runners)
    if any(runner.kind == "onnxrt" and any(name.lower() != "cpu" for name in runner.providers) for runner in spec):
        return COPIED
    return ENGINE if any(runner.kind == "trt" for runner in spec) else SEGMENT


def device_segment(free: int) -> int:
    """Bytes of a segment whose tensors stay on a GPU that has `free` bytes."""
    return max(SEGMENT, free // _HELD_AT_ONCE)


def limits(budget: int | None, *, usual: int = SEGMENT) -> Limits:
    """Return the limits under which this process, with what it holds now, stays within `budget`.

    usual: bytes of a segment where there is no budget.
    """
    if budget is None:
        ahead = max(usual, 2 * SEGMENT)  # what two sides make in one: the next runs while that is compared
        return Limits(usual, max(WAITING, 2 * usual), ahead=ahead)
    free = max(0, budget - resident())
    segment = min(SEGMENT, max(_SMALLEST_SEGMENT, free // _HELD_AT_ONCE))
    return Limits(segment, max(segment, free // 4), ahead=0)


def keep_nothing_back() -> None:
    """Make the C library return large blocks to the system as soon as they are freed, for the rest of the process."""
    _mallopt(_M_MMAP_THRESHOLD, _LARGE_BLOCK)


def keep_for_reuse() -> None:
    """Make the C library keep freed blocks of up to 32 MiB for all threads: fresh memory from the system is dear."""
    _mallopt(_M_MMAP_THRESHOLD, _LARGEST_BLOCK)
    _mallopt(_M_TRIM_THRESHOLD, WAITING)
    use_one_heap()


def _mallopt(parameter: int, value: int) -> None:
    with suppress(AttributeError, OSError):  # another C library than glibc
        ctypes.CDLL(None).mallopt(parameter, value)


def peak() -> int:
    """The most bytes of memory that the process has held; 0 where the system does not tell."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
    except OSError:
        pass
    return 0


def over_budget(budget: int | None, who: str) -> str:
    """A sentence where the process has held more than `budget` bytes allow, "" where not. who: needs that much."""
    used = peak()
    if budget is None or used <= 1.1 * budget:
        return ""
    kept = f"the memory budget of {budget / 1e6:.0f} MB was not kept"
    return f"{kept}: {used / 1e6:.0f} MB were used, which {who} needs"


def give_back() -> None:
    """Return freed memory to the system, where the C library can."""
    gc.collect()
    with suppress(AttributeError, OSError):  # another C library than glibc
        ctypes.CDLL(None).malloc_trim(0)
