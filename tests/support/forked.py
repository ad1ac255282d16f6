"""Command lines in forks of one process that has imported everything: the same code, without starting Python again.

The worker of a job is a fork too, and so is the `layerwise` that a --check calls; the rest is as it is.
"""

import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from support.clean_fork import fork

from layerwise._tool.backends.jobs.folder import LOG
from layerwise._tool.backends.jobs.processes import supervise
from layerwise._tool.backends.jobs.processes.control import WorkerProcess, start_worker, tagged
from layerwise._tool.backends.jobs.processes.spare_worker import _write_to
from layerwise._tool.backends.jobs.processes.worker import work
from layerwise._tool.tui.cli import ahead

Program = Callable[[list[str]], int]

_CLIENT = """#!{python} -ISB
import json, os, socket, sys
asked = socket.socket(socket.AF_UNIX)
asked.connect({address!r})
socket.send_fds(asked, [json.dumps([{name!r}, sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()], [0, 1, 2])
sys.exit(int(asked.recv(16)))
"""


class ForkedWorker(WorkerProcess):
    """A worker that is a fork of this process, with the guard that every worker has."""

    def __init__(self, actions: str, folder: Path, attempt: int, env: Mapping[str, str], keep: Sequence[int]) -> None:
        whole = tagged(env, folder, attempt)

        def start(group: int) -> int:
            pid = fork()
            if pid == 0:
                try:
                    os.close(self._alive)
                    os.setpgid(0, group)
                    _become_worker(actions, folder, attempt, whole, keep)
                finally:  # no descriptor left, say: it must not go on as a second command
                    os._exit(1)
            return pid

        super().__init__(whole, start)


def start_forked(
    actions: str, folder: Path, attempt: int, env: Mapping[str, str], keep: Sequence[int]
) -> WorkerProcess:
    """A forked worker; a fresh one where other threads run jobs as well, as the cells of a matrix: at a fork they may
    hold a lock or be half through an import, for ever in the fork."""
    alone = threading.current_thread() is threading.main_thread()
    return (ForkedWorker if alone else start_worker)(actions, folder, attempt, env, keep)


def fork_workers() -> None:
    """From here on, have the workers of this process's jobs be forks; none is started ahead of its job."""
    supervise.start_worker = start_forked  # type: ignore[attr-defined]
    ahead.start_worker = lambda: None


def _let_go_of_all_but(keep: Sequence[int]) -> None:
    """Hold no lock and no end of a pipe that only the parent is to have; a number is not free for another file, since
    an object may think that it is its own."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in [int(entry.name) for entry in Path("/proc/self/fd").iterdir()]:
        if number > 2 and number not in (nothing, *keep):
            os.dup2(nothing, number, inheritable=False)


def _become_worker(actions: str, folder: Path, attempt: int, env: Mapping[str, str], keep: Sequence[int]) -> NoReturn:
    signal.set_wakeup_fd(-1)
    _let_go_of_all_but(keep)
    for number in (signal.SIGINT, signal.SIGQUIT):  # SIGPIPE stays ignored, as in every Python
        signal.signal(number, signal.SIG_DFL)
    os.environ.update(env)
    sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__  # a test may read what is printed here
    _write_to(folder / LOG)
    work(actions, folder, attempt, list(keep))


def run_line(
    words: list[str], tools: Path | None = None, others: Mapping[str, Program] | None = None, name: str = "layerwise"
) -> int:
    """Run one command line here; its exit code. tools: a folder where the programs go that it may call: `layerwise`
    and `others`, of which one may be the `name` of what runs."""
    fork_workers()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    programs = {"layerwise": _main, **(others or {})}
    server = None if tools is None else _serve(tools, programs)
    try:
        return programs[name](words)
    finally:
        if server is not None:
            os.kill(server, signal.SIGKILL)
            os.waitpid(server, 0)


def _main(words: list[str]) -> int:
    from layerwise._tool.tui.__main__ import main

    try:
        return main(words)
    except SystemExit as end:  # argparse, after --help
        return int(end.code or 0)


def _serve(tools: Path, programs: Mapping[str, Program]) -> int:
    """Start the process that forks for every call of a program in tools; its id."""
    address = str(tools / "socket")
    waiting = socket.socket(socket.AF_UNIX)
    waiting.bind(address)
    waiting.listen()
    for name in programs:
        tool = tools / name
        tool.write_text(_CLIENT.format(python=sys.executable, address=address, name=name))
        tool.chmod(0o755)
    os.environ["PATH"] = f"{tools}{os.pathsep}{os.environ['PATH']}"
    server = fork()
    if server == 0:
        while True:
            _answer(waiting.accept()[0], programs)
    waiting.close()
    return server


def _answer(asked: socket.socket, programs: Mapping[str, Program]) -> None:
    message, streams, *_ = socket.recv_fds(asked, 1 << 20, 3)
    name, words, folder, environment = json.loads(message)
    child = fork()
    if child == 0:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        code = programs[name](words)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    for stream in streams:
        os.close(stream)
    asked.send(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])).encode())
    asked.close()
