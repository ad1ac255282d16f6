"""Programs as forks of one process that has imported everything: the same code, without starting Python again.

The server is support/forking.py run as a script; one a run of the tests, started when one of its processes first asks
for it, and gone with the last of them. What a program inherits is imported modules only: environment, umask, folder,
module path, processors and streams are those it would have been started with.
"""

import fcntl
import hashlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
_SERVER = Path(__file__).with_name("forking.py")
HANGUP_OFF = "hangup off"
_FOLDER = tempfile.gettempdir()  # as it was before a test has set another
_RUN = os.environ.get("PYTEST_XDIST_TESTRUNUID", "") or f"alone {os.getpid()} {time.time_ns()}"
MOST = 4  # descriptors that a program is given
STAYS = 0xFFFFFFFF  # in place of a message's size: who sends it uses the server for as long as the socket is open
_users: list[socket.socket] = []
_started: list[subprocess.Popen[bytes]] = []
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
            with suppress(ProcessLookupError):  # it has just ended by itself
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
    order |= {"limits": list((limits or {}).items()), "uid": uid, "gone": gone, "before": before, "umask": _umask()}
    order["program"] = program
    order["processors"] = sorted(os.sched_getaffinity(0))
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
    """Where the server of a program listens for this process and the others of the run."""
    name = hashlib.sha256(f"{_RUN} {program}".encode()).hexdigest()[:16]
    address = f"{_FOLDER}/forks-{os.getuid()}-{name}"
    with _SERVER.open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one process at a time looks for it and starts it
        if not _joined(address):
            server = _start_server(address, program)
            _started.append(server)
            while not _joined(address):
                assert server.poll() is None, "the server of forks ended"
                time.sleep(0.01)
    return address


def _joined(address: str) -> bool:
    """Whether a server is there that stays for this process."""
    user = socket.socket(socket.AF_UNIX)
    with suppress(OSError):
        user.connect(address)
        user.sendall(STAYS.to_bytes(4, "big"))
        if user.recv(1):
            _users.append(user)  # closed where this process ends
            return True
    user.close()
    return False


def _start_server(address: str, program: str) -> subprocess.Popen[bytes]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("LAYERWISE_", "TEXTUAL"))}
    environment["LC_ALL"] = "C.UTF-8"
    if " " in program:
        environment |= {"LAYERWISE_FAKE_TRT": program.split()[1], "PYTHONPATH": str(ROOT / "tests" / "trt" / "fake")}
    command = [sys.executable, str(_SERVER), address, program]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, env=environment, cwd=ROOT, start_new_session=True)
