"""The server of support.forkserver: `python forking.py ADDRESS PROGRAM`."""

import atexit
import fcntl
import gc
import importlib
import io
import json
import logging
import os
import resource
import runpy
import select
import signal
import socket
import sys
import termios
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).parents[2]
SITE = [entry for entry in sys.path if "packages" in entry or "/lib/python" in entry or entry.endswith(".zip")]
sys.path[:0] = [str(ROOT / ".editable"), str(ROOT / "tests")]

from support.forkserver import HANGUP_OFF, MOST, STAYS, WIDTH  # noqa: E402
from support.huge_pages import collapse, reserve  # noqa: E402

_PATIENCE = 60.0  # seconds that it waits for its first user


def serve(address: str) -> None:
    """Answer for as long as a process uses this server."""
    waiting = socket.socket(socket.AF_UNIX)
    waiting.bind(address + ".new")
    waiting.listen(64)
    Path(address + ".new").rename(address)
    atexit._clear()  # what libraries tidy up at the end, such as all types, takes longer than many a command
    atexit.register(logging.shutdown)
    os.sched_setaffinity(0, range(os.cpu_count() or 1))  # each fork gets those of who asks
    gc.freeze()
    collapse()
    programs: dict[int, tuple[int, socket.socket]] = {}  # of each pidfd: process id, and who asked
    users: dict[int, socket.socket] = {}
    poller = select.poll()
    poller.register(waiting, select.POLLIN)
    while ready := poller.poll(None if users else _PATIENCE * 1000):
        for fd, _ in ready:
            poller.unregister(fd) if fd != waiting.fileno() else None
            if fd in users:
                users.pop(fd).close()
            elif fd in programs:
                _bury(fd, *programs.pop(fd))
            else:
                pid, asked = _start(waiting)
                watched = os.pidfd_open(pid) if pid else asked.fileno()
                if pid:
                    programs[watched] = (pid, asked)
                else:
                    users[watched] = asked
                poller.register(watched, select.POLLIN)
        if not users:
            break
    Path(address).unlink()


def _start(waiting: socket.socket) -> tuple[int, socket.socket]:
    """Fork the program that somebody asks for; its process id, and who asked. 0: who asks uses this server from now."""
    asked, _ = waiting.accept()
    size, streams, *_ = socket.recv_fds(asked, 4, MOST)
    if int.from_bytes(size, "big") in (0, STAYS):  # 0: it has ended already
        with suppress(OSError):
            asked.send(b"1")
        return 0, asked
    message = b""
    while len(message) < int.from_bytes(size, "big"):
        message += asked.recv(1 << 16)
    pid = os.fork()
    if pid == 0:
        _become(json.loads(message), streams)
    for stream in streams:
        os.close(stream)
    with suppress(OSError):
        asked.send(_number(pid))
    return pid, asked


def _bury(pidfd: int, pid: int, asked: socket.socket) -> None:
    """Tell the exit code and the peak to who asked."""
    _, status, used = os.wait4(pid, 0)
    os.close(pidfd)
    with suppress(OSError):
        asked.send(_number(os.waitstatus_to_exitcode(status)) + _number(used.ru_maxrss << 10))
    asked.close()


def _number(value: int) -> bytes:
    return str(value).rjust(WIDTH).encode()


def _become(order: dict[str, Any], streams: Sequence[int]) -> NoReturn:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # what interrupts this function is not the program's
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(len(streams), 4096)
    os.setsid()
    os.sched_setaffinity(0, order["processors"])
    os.umask(int(str(order["umask"])))
    if order["terminal"]:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        signal.signal(signal.SIGHUP, signal.SIG_IGN if order["terminal"] == HANGUP_OFF else signal.SIG_DFL)
    os.chdir(str(order["cwd"]))
    os.environ.clear()
    os.environ.update(order["env"])
    sys.path[:] = [str(order["cwd"]), *os.environ.get("PYTHONPATH", "").split(os.pathsep), *SITE]
    sys.argv = order["words"] if PROGRAM == "script" else [PROGRAM.split()[0], *order["words"]]
    _open_streams()
    exec(order["before"], {})
    _confine(order)
    _run(str(order["program"]))


def _confine(order: dict[str, Any]) -> None:
    if order["gone"]:
        Path(order["cwd"]).rmdir()
    for limit, value in order["limits"]:
        resource.setrlimit(limit, (value, value))
    if order["uid"]:
        os.setgroups([])
        os.setgid(order["uid"])
        os.setuid(order["uid"])


def _open_streams() -> None:
    sys.stdin = sys.__stdin__ = io.TextIOWrapper(io.BufferedReader(io.FileIO(0)), "utf-8")  # type: ignore[misc]
    out, err = (io.BufferedWriter(io.FileIO(number, "w")) for number in (1, 2))
    sys.stdout = sys.__stdout__ = io.TextIOWrapper(out, "utf-8", line_buffering=os.isatty(1))  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = io.TextIOWrapper(err, "utf-8", "backslashreplace", line_buffering=True)  # type: ignore[misc]


def _run(program: str) -> NoReturn:
    """What the program's script does, and the interpreter at its end."""
    code = 1
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        code = _run_process() if program == "jobs" else main()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _run_process() -> int:
    from support.forked_jobs import main

    return main()


def _run_script() -> int:
    """What `python SCRIPT …` does."""
    sys.path[0] = str(Path(sys.argv[0]).parent)
    runpy.run_path(sys.argv[0], run_name="__main__")
    return 0


def _import() -> Callable[[], int | None]:
    """Import what the forks of PROGRAM share; what each of them calls."""
    if PROGRAM == "script":
        for library in ("numpy", "onnx", "onnx_graphsurgeon"):
            importlib.import_module(library)
        return _run_script
    if " " in PROGRAM:
        importlib.import_module("cuda.bindings.runtime")
        importlib.import_module("tensorrt")._forward.real()
    from support.forked import fork_workers
    from support.forked_jobs import ForkedSpare

    from layerwise._tool.backends.jobs.processes import warm_supervisor

    fork_workers()
    warm_supervisor.SpareWorker = ForkedSpare  # type: ignore[attr-defined]
    if PROGRAM == "writers":
        from support import jobs, writers

        assert jobs
        return writers.main
    if PROGRAM == "polygraphy":
        from support.every_tool import main as polygraphy

        return polygraphy
    from layerwise._tool.tui.__main__ import main as layerwise

    importlib.import_module("support.everything")
    return layerwise


if __name__ == "__main__":
    gc.set_threshold(10_000, *gc.get_threshold()[1:])  # as the programs set it
    reserve()
    PROGRAM = sys.argv[2]
    main = _import()
    gc.collect()
    serve(sys.argv[1])
