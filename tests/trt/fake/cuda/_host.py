"""Host memory as device memory, streams that run at once, graphs that keep what was captured."""

import ctypes
import itertools
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

_handles = itertools.count(0x1000)


@dataclass
class Stream:
    """Runs what it is given at once; while capturing it keeps it instead."""

    handle: int = field(default_factory=lambda: next(_handles))
    captured: list[Callable[[], Any]] | None = None


@dataclass
class Memory:
    """The allocations of this process, by address."""

    blocks: dict[int, Any] = field(default_factory=dict)
    used: int = 0


streams: dict[int, Stream] = {0: Stream(0), 1: Stream(1), 2: Stream(2)}
memory = Memory()


def limit() -> int:
    """Bytes of the pretended device: the fault `device_memory`, else 16 GiB."""
    text = os.environ.get("LAYERWISE_FAKE_TRT_FAULTS", "")
    return int((json.loads(text) if text else {}).get("device_memory", 16 << 30))


def allocate(size: int, *, counted: bool = True) -> int:
    """A zeroed block; 0 where the device has no room."""
    if counted and memory.used + size > limit():
        return 0
    block = ctypes.create_string_buffer(max(1, size) + 256)
    address = (ctypes.addressof(block) + 255) & ~255
    memory.blocks[address] = (block, size if counted else 0)
    memory.used += size if counted else 0
    return address


def release(address: int) -> bool:
    """Free a block; False where it is none (freed twice, or never ours)."""
    found = memory.blocks.pop(address, None)
    if found is not None:
        memory.used -= found[1]
    return found is not None


def submit(stream: int, work: Callable[[], Any]) -> Any:
    """Do the work now, or keep it where the stream is capturing; True for kept work."""
    known = streams.get(int(stream))
    if known is not None and known.captured is not None:
        known.captured.append(work)
        return True
    return work()


def now() -> float:
    """Milliseconds of a steady clock."""
    return time.perf_counter() * 1000
