"""Runs native code in a fork with a memory limit, so that a crash there ends nothing else."""

import faulthandler
import gc
import os
import resource
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

from layerwise._tool.backends.limits.memory import room

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_DONE, _RAISED, _NO_MEMORY = b"done", b"rais", b"none"


class Died(Exception):
    """The fork did not finish: it ran out of memory, or crashed."""


class Raised(Exception):
    """The work raised an exception in the fork. kind: its class name."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


def done_aside(work: Callable[[], bytes], most: int) -> bytes:
    """Return what `work` returns in a fork limited to `most` bytes of memory. Raises Died, Raised, OSError.

    For compiled code that takes no locks that other threads may hold: a fork has only the calling thread.
    """
    read_end, write_end = os.pipe()
    pid = _forked()
    if pid == 0:
        os.close(read_end)
        _work(work, most, write_end)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as answer:
        try:
            data = answer.read()
        except BaseException:
            os.kill(pid, signal.SIGKILL)
            raise
        finally:
            _, status = os.waitpid(pid, 0)
    if status != 0 or data[:4] not in (_DONE, _RAISED):
        raise Died(f"status {status}")
    if data[:4] == _RAISED:
        kind, _, text = data[4:].decode("utf-8", "replace").partition(":")
        raise Raised(kind, text)
    return data[4:]


@contextmanager
def nothing_collected() -> Iterator[None]:
    """Around a fork: neither on its way nor, after `keep_what_is_there`, in the child is an object collected that came
    with it. A session of an engine waits, when it goes, for its threads, which a fork has not.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def keep_what_is_there() -> None:
    """In a child: what came with the fork is never collected; what is made from now on is."""
    gc.freeze()
    gc.enable()


def _forked() -> int:
    """os.fork with signals blocked, since exceptions from signal handlers would get lost in Python's fork hooks.

    In the child they stay blocked.
    """
    held_back = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    pid = -1
    try:
        with warnings.catch_warnings(), nothing_collected():
            warnings.simplefilter("ignore", DeprecationWarning)  # forking with other threads, see `done_aside`
            pid = os.fork()
            if pid == 0:
                keep_what_is_there()
        return pid
    finally:
        if pid != 0:
            signal.pthread_sigmask(signal.SIG_SETMASK, held_back)


def _work(work: Callable[[], bytes], most: int, answer: int) -> NoReturn:
    with suppress(BaseException):
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        signal.set_wakeup_fd(-1)
        faulthandler.disable()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        try:
            with room(most):
                data = work()
            _write(answer, _DONE, data)
        except MemoryError:
            _write(answer, _NO_MEMORY, b"")
        except Exception as error:
            _write(answer, _RAISED, f"{type(error).__name__}:{error}".encode("utf-8", "replace"))
    os._exit(0)


def _write(answer: int, kind: bytes, data: bytes) -> None:
    left = memoryview(kind + data)
    while left:
        left = left[os.write(answer, left) :]
