"""Programs as forks of one process that has imported everything: the same code, without starting Python again.

The server is this file run as a script; one a test process, started when it is first asked. What a program inherits is
imported modules only: environment, umask, folder, module path and streams are those it would have been started with.
"""

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
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).parents[2]
HANGUP_OFF = "hangup off"
_FOLDER = tempfile.gettempdir()  # as it was before a test has set another
MOST = 4  # descriptors that a program is given
WIDTH = 16  # bytes of a number on the socket: two may come at once


def readable(fd: int, seconds: float | None) -> bool:
    """Whether something can be read within some seconds; by poll, which takes descriptors above 1023 too."""
    poller = select.poll()
    poller.register(fd, select.POLLIN)
    return bool(poller.poll(None if seconds is None else max(0.0, seconds) * 1000))


class Forked:
    """A running fork, with what tests use of subprocess.Popen."""

    def __init__(self, asked: socket.socket) -> None:
        self._asked = asked
        self.pid = int(asked.recv(WIDTH, socket.MSG_WAITALL))
        self.returncode: int | None = None
        self.peak = 0  # bytes: the most that it or one of the children it waited for was resident with, once it ended

    def poll(self) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not readable(self._asked.fileno(), timeout):
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
            self.returncode = int(self._asked.recv(WIDTH, socket.MSG_WAITALL))
            self.peak = int(self._asked.recv(WIDTH, socket.MSG_WAITALL))
            self._asked.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def start(
    words: Sequence[str], cwd: Path, env: Mapping[str, str], streams: Sequence[int], *, terminal: str = "",
    before: str = "", limits: Mapping[int, int] | None = None, uid: int = 0, gone: bool = False,
    program: str = "layerwise",
) -> Forked:  # fmt: skip
    """Run `layerwise WORDS`, or another of the programs, on three descriptors, or more.

    terminal: not empty: they are a terminal, which it gets for its own; HANGUP_OFF ignores SIGHUP, as nohup does.
    before: what the program does to itself first, as text of Python. limits: of resource.setrlimit, soft and hard.
    uid: not 0: the user to become, which only root can. gone: `cwd` is removed once the program stands in it.
    program: "layerwise"; "jobs": the first word is the module of a job's process, of support.forked_jobs;
    "layerwise 10" or "layerwise 11", with that version of the fake TensorRT imported;
    "polygraphy"; "script": the first word is a Python script, which finds neither imported; "writers": support.writers.
    """
    asked = socket.socket(socket.AF_UNIX)
    asked.connect(_address("layerwise" if program == "jobs" else program))
    order: dict[str, Any] = {"words": list(words), "cwd": str(cwd), "env": dict(env), "terminal": terminal}
    order["program"] = program
    order |= {"limits": list((limits or {}).items()), "uid": uid, "gone": gone, "before": before, "umask": _umask()}
    message = json.dumps(order).encode()
    socket.send_fds(asked, [len(message).to_bytes(4, "big")], list(streams))
    asked.sendall(message)
    return Forked(asked)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def start_server() -> None:
    """Have the server there before threads ask for it."""
    _address("layerwise")


@cache
def _address(program: str) -> str:
    """Where this process's server of a program listens; it leaves with this process."""
    folder = tempfile.TemporaryDirectory(prefix="forks", dir=_FOLDER)
    address = f"{folder.name}/socket"
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("LAYERWISE_", "TEXTUAL"))}
    environment["LC_ALL"] = "C.UTF-8"
    if " " in program:
        environment |= {"LAYERWISE_FAKE_TRT": program.split()[1], "PYTHONPATH": str(ROOT / "tests" / "trt" / "fake")}
    server = subprocess.Popen(
        [sys.executable, __file__, address, program],
        stdin=subprocess.PIPE,
        env=environment,
        cwd=ROOT,
        start_new_session=True,
    )  # fmt: skip
    atexit.register(_leave, server, folder)
    while not Path(address).exists():
        assert server.poll() is None, "the server of forks ended"
        time.sleep(0.01)
    return address


def _leave(server: subprocess.Popen[bytes], folder: tempfile.TemporaryDirectory[str]) -> None:
    server.kill()
    server.wait()
    folder.cleanup()


# ── the server ──


def serve(address: str) -> None:
    """Answer until the process that asks has gone."""
    waiting = socket.socket(socket.AF_UNIX)
    waiting.bind(address + ".new")
    waiting.listen()
    Path(address + ".new").rename(address)
    atexit._clear()  # what libraries tidy up at the end, such as all types, takes longer than many a command
    atexit.register(logging.shutdown)
    gc.freeze()
    collapse()
    programs: dict[int, tuple[int, socket.socket]] = {}  # of each pidfd: process id, and who asked
    poller = select.poll()
    poller.register(0, select.POLLIN)
    poller.register(waiting, select.POLLIN)
    while True:
        for fd, _ in poller.poll():
            if fd == 0:
                return
            if fd in programs:
                poller.unregister(fd)
                _bury(fd, *programs.pop(fd))
            else:
                pid, asked = _start(waiting)
                pidfd = os.pidfd_open(pid)
                programs[pidfd] = (pid, asked)
                poller.register(pidfd, select.POLLIN)


def _start(waiting: socket.socket) -> tuple[int, socket.socket]:
    """Fork the program that somebody asks for; its process id, and who asked."""
    asked, _ = waiting.accept()
    size, streams, *_ = socket.recv_fds(asked, 4, MOST)
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
    from support.forked import ForkedWorker
    from support.forked_jobs import ForkedSpare

    from layerwise._tool.backends.jobs.processes import supervise, warm_supervisor

    supervise.start_worker = ForkedWorker  # type: ignore[attr-defined]
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
    SITE = [entry for entry in sys.path if "packages" in entry or "/lib/python" in entry or entry.endswith(".zip")]
    sys.path[:0] = [str(ROOT / ".editable"), str(ROOT / "tests")]
    from support.huge_pages import collapse, reserve

    reserve()
    PROGRAM = sys.argv[2]
    main = _import()
    gc.collect()
    serve(sys.argv[1])
