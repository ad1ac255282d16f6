"""Few processes and threads for a user who has no other, file permissions as they are."""

import ctypes
import os
import resource

_VERSION = 0x20080522
_SYS_ADMIN, _SYS_RESOURCE = 21, 24  # who has either is under no limit


def few_processes(count: int, user: int) -> None:
    """Let this process and its children start no more than `count` processes and threads. user: whom they count for,
    where this is root."""
    if os.geteuid() == 0:
        os.setresuid(user, 0, 0)
        _drop(_SYS_ADMIN, _SYS_RESOURCE)
    resource.setrlimit(resource.RLIMIT_NPROC, (count, count))


def _drop(*capabilities: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    head, data = (ctypes.c_uint32 * 2)(_VERSION, 0), (ctypes.c_uint32 * 6)()
    if libc.capget(head, data) != 0:
        raise OSError(ctypes.get_errno(), "capget")
    for number in capabilities:
        for kind in range(3):
            data[kind] &= ~(1 << number)
    if libc.capset(head, data) != 0:
        raise OSError(ctypes.get_errno(), "capset")
