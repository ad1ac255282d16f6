"""A worker's memory limit is configured, applied and enforced; file-backed memory is not counted."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.jobs import jobs_home, run, wait_for
from support.jobs import submit_forked as submit

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.backends.limits import memory
from layerwise._tool.backends.model.expansion import check_functions
from layerwise._tool.backends.sizes import binary_size, parse_size

__all__ = ["jobs_home"]

M, G = 1 << 20, 1 << 30
SIZES = {
    "64M": 64 * M, "100m": 100 * M, "1G": G, "1.5G": 3 * G // 2, "8GB": 8 * G, "8GiB": 8 * G, " 2g ": 2 * G,
    "1T": 1 << 40, "1e9": 10**9, "1000000000": 10**9, "70000K": 70_000 << 10, "none": None, "NONE": None,
}  # fmt: skip
NO_SIZES = ["-1", "0", "1K", "63M", "much", "8 apples", "nan", "inf", "1e999", "G", "0x10", "8G;rm", "\x1b[31m8G"]


@pytest.mark.parametrize("text", SIZES)
def test_the_users_limit_is_applied(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAYERWISE_MEMORY", text)
    assert memory.limit() == SIZES[text]


@pytest.mark.parametrize("text", NO_SIZES)
def test_an_invalid_limit_is_named_in_the_error(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAYERWISE_MEMORY", text)
    with pytest.raises(UsageError, match=r"^LAYERWISE_MEMORY: ") as refused:
        memory.limit()
    assert str(refused.value).isprintable()


def test_the_machines_limit_leaves_an_eighth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAYERWISE_MEMORY", raising=False)
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 0 < (memory.limit() or 0) <= physical * 7 / 8


@pytest.mark.parametrize("detached", [False, True])
def test_a_worker_beyond_the_limit_is_stopped_with_the_reason(
    detached: bool, jobs_home: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAYERWISE_MEMORY", "200M")
    view = wait_for(jobs_home, submit(jobs_home, "eat_memory"), "failed") if detached else run(jobs_home, "eat_memory")
    assert view.card is not None
    assert view.card["kind"] == "oom"
    summary = view.card["summary"]
    assert "of memory and was stopped: the limit is 200 MiB; LAYERWISE_MEMORY=SIZE or LAYERWISE_MEMORY=none" in summary
    assert "eat_memory" in view.card["detail"]


def test_an_invalid_limit_ends_the_job_with_a_message(jobs_home: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAYERWISE_MEMORY", "plenty")
    card = run(jobs_home, "echo").card
    assert card is not None
    assert (card["kind"], card["summary"].partition(":")[0]) == ("error", "LAYERWISE_MEMORY")


def test_file_backed_memory_is_not_counted(tmp_path: Path) -> None:
    """Weights of hundreds of gigabytes may be mapped."""
    path = tmp_path / "weights"
    with path.open("wb") as stream:
        stream.truncate(256 * M)
    before = memory.own_memory(os.getpid())
    mapped = np.memmap(path, np.uint8, "r")
    assert int(mapped[:: 1 << 12].sum()) == 0
    assert memory.own_memory(os.getpid()) - before < 64 * M
    filled = np.ones(256 * M, np.uint8)
    assert memory.own_memory(os.getpid()) - before > 200 * M
    del filled


def test_room_limits_allocations_only_inside_its_block() -> None:
    usual = resource.getrlimit(resource.RLIMIT_DATA)
    large = 600 * M  # more than a comparison that ran in this process leaves free in its heap, which is no addition
    with memory.room(large // 2):
        with pytest.raises(MemoryError):
            bytearray(large)
        with memory.room(2 * large):
            bytearray(large)
        with pytest.raises(MemoryError):
            bytearray(large)
    bytearray(large)
    assert resource.getrlimit(resource.RLIMIT_DATA) == usual


@pytest.mark.parametrize("size", [0, 1, 999, 1023, 1 << 10, 1536, 5 << 20, 1 << 40])
def test_sizes_are_formatted_as_they_are_parsed(size: int) -> None:
    text = binary_size(size)
    assert parse_size(text.removesuffix(" bytes").replace(" ", "")) == pytest.approx(size, rel=0.005)


def test_check_functions_accepts_damaged_bytes() -> None:
    for data in (b"", b"\xff" * 20, b"\xca\x01\x05abc"):
        check_functions(data)


EXHAUST = """
import ctypes, mmap, threading
from layerwise._tool.backends.limits.memory import room
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
malloc = lambda size: libc.malloc(ctypes.c_size_t(size))
done = threading.Event()
threading.Thread(target=done.wait).start()  # a process of one thread has one heap in any case
before = libc.malloc_stats()
with room(16 << 20):
    pages = []
    try:
        while True:
            pages.append(mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
    except OSError:
        pass
    while malloc(1000):
        pass
    while malloc(16):
        pass
    del pages[:200 * 1024 // mmap.PAGESIZE]  # less than the heap grows by, more than a second one takes
    malloc(100_000)
libc.malloc_stats()
done.set()
"""


def test_an_allocation_that_fails_starts_no_second_heap() -> None:
    ended = subprocess.run([sys.executable, "-c", EXHAUST], check=True, capture_output=True, text=True)
    before, after = ended.stderr.split("Total (incl. mmap)")[:2]
    assert after.count("Arena ") == before.count("Arena ")


FRAGMENT = """
import ctypes, os
from layerwise._tool.backends.limits.memory import own_memory, room

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
free = lambda block: libc.free(ctypes.c_void_p(block))
blocks = []
before = own_memory(os.getpid())
try:
    with room(1 << 30):
        while len(blocks) < 2000:
            blocks.append(libc.malloc(ctypes.c_size_t(100_000)))
            ctypes.memset(blocks[-1], 1, 100_000)
        kept = blocks.pop()  # above all others: the end of the heap cannot sink
        held = own_memory(os.getpid()) - before
        for block in blocks:
            free(block)
        raise MemoryError
except MemoryError:
    print(held, own_memory(os.getpid()) - before)
"""


def test_what_failed_for_memory_gives_back_what_it_freed() -> None:
    ended = subprocess.run([sys.executable, "-c", FRAGMENT], check=True, capture_output=True, text=True)
    held, after = map(int, ended.stdout.split())
    assert held > 190_000_000
    assert after < 40_000_000
