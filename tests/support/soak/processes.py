"""Processes looked at and killed from outside."""

import os
import signal
import time
from collections.abc import Callable

import psutil


def within(seconds: float, check: Callable[[], object]) -> bool:
    """Whether the check holds before so many seconds are over."""
    deadline = time.monotonic() + seconds
    while not check():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def descendants(pid: int | None) -> list[int]:
    """Children and theirs, none where the process is gone."""
    try:
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    except psutil.Error:
        return []


def alive(pid: int) -> bool:
    """Whether it is there and no zombie."""
    try:
        return pid > 0 and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def kill(pid: int) -> None:
    """SIGKILL, if it is there."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
