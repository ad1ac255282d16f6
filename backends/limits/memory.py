"""Memory limits of a process: from the machine, from the user, and temporarily lower ones.

LAYERWISE_MEMORY sets the limit: a size (`8G`), or `none`. Default: 7/8 of the memory of the machine or control group.
"""

import os
import resource
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from threading import Lock

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.sizes import binary_size, parse_size

VARIABLE = "LAYERWISE_MEMORY"
_PAGE = resource.getpagesize()
_DATA = 5  # pages of private writable memory, in /proc/self/statm (proc(5)); 0 if the kernel does not count them
_SMALLEST = 64 << 20  # no program starts with less
_NONE = "none"
_M_ARENA_MAX = -8  # mallopt(3)


def limit(environment: Mapping[str, str] = os.environ) -> int | None:
    """Return the bytes of private memory that a process may hold, None if the user wants no limit.

    Private memory is not backed by files. UsageError if LAYERWISE_MEMORY is not a size.
    """
    text = environment.get(VARIABLE, "").strip()
    if not text:
        return machine() // 8 * 7
    if text.lower() == _NONE:
        return None
    try:
        size = parse_size(text)
    except UsageError as error:
        raise UsageError(f"{VARIABLE}: {error}, or `none`") from None
    if size < _SMALLEST:
        raise UsageError(f"{VARIABLE}: {binary_size(size)} is less than any job needs ({binary_size(_SMALLEST)})")
    return size


def remedy(nbytes: int) -> str:
    """Return the advice for a limit that was reached."""
    return f"the limit is {binary_size(nbytes)}; {VARIABLE}=SIZE or {VARIABLE}=none sets another"


@cache
def machine() -> int:
    """Return the bytes of memory of this machine, or of this process's control group."""
    sizes = [os.sysconf("SC_PHYS_PAGES") * _PAGE]
    for path in control_group_files("memory.max", "memory.limit_in_bytes"):
        with suppress(OSError, ValueError):  # absent, or "max"
            sizes.append(int(path.read_text()))
    return min(sizes)


def control_group_files(name: str, old_name: str) -> list[Path]:
    """Return where files of this process's control group and its parents may be. old_name: in cgroup version 1."""
    found = {Path("/sys/fs/cgroup", name): None, Path("/sys/fs/cgroup/memory", old_name): None}
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers == "":
                found |= dict.fromkeys(_upwards(Path("/sys/fs/cgroup"), path, name))
            elif "memory" in controllers.split(","):
                found |= dict.fromkeys(_upwards(Path("/sys/fs/cgroup/memory"), path, old_name))
    return list(found)


def _upwards(root: Path, path: str, name: str) -> list[Path]:
    inner = Path(path.strip("/"))
    return [root / folder / name for folder in (inner, *inner.parents) if ".." not in folder.parts]


def own_memory(pid: int) -> int:
    """Return the bytes that a process holds and no file backs; 0 if it is gone. Reads one small file."""
    try:
        text = Path("/proc", str(pid), "statm").read_text()
    except OSError:
        return 0
    _, resident, shared, *_ = map(int, text.split())
    return max(0, resident - shared) * _PAGE


def resident() -> int:
    """Return the bytes of memory that this process holds now, what files back included."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE


_lock = Lock()
_rooms: dict[object, int] = {}
_usual: list[tuple[int, int]] = []


@contextmanager
def room(nbytes: int) -> Iterator[None]:
    """Allow this process at most so many additional bytes inside the block, no matter what code requests them.

    Requests beyond fail: MemoryError in Python, std::bad_alloc in C++, in all threads. Of several concurrent limits the
    largest counts. No effect if the kernel does not count (before Linux 4.7, gVisor).
    """
    held = _data()
    if not held:
        yield
        return
    use_one_heap()
    token = object()
    with _lock:
        if not _rooms:
            _usual[:] = [resource.getrlimit(resource.RLIMIT_DATA)]
        _rooms[token] = held + nbytes
        _apply()
    try:
        yield
    except BaseException:
        _give_back()
        raise
    finally:
        with _lock:
            del _rooms[token]
            _apply()


def _give_back() -> None:
    """Return freed memory to the system: millions of small blocks of what failed stay resident otherwise."""
    import ctypes

    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


@cache
def use_one_heap() -> None:
    """Keep glibc to one heap, whose freed blocks all threads can use, and from trying a second one at a limit.

    A thread that has once done so tries to enlarge that heap in each later allocation, with nine system calls, before
    it takes what is free in the first: a model that fills its room byte by byte then takes half a minute, not a second.
    """
    import ctypes

    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)


def _apply() -> None:
    soft, hard = _usual[0]
    ends = [soft] if not _rooms else [max(_rooms.values()), soft]
    finite = [end for end in ends if end != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min(finite, default=resource.RLIM_INFINITY), hard))


def _data() -> int:
    """Return the bytes that RLIMIT_DATA counts."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[_DATA]) * _PAGE
    except (OSError, ValueError, IndexError):
        return 0
