"""The processes of an app's jobs as forks of support.forkserver: the same code, without starting Python for each.

`processes_of` and `waiting_pair` of support.jobs, which read command lines and environments, do not see them.
"""

import os
import signal
import socket
import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from unittest import mock

from support import forkserver

from layerwise._tool.backends.jobs import client
from layerwise._tool.backends.jobs.processes import spare_worker, supervisor, warm_pair, warm_supervisor
from layerwise._tool.backends.jobs.processes.control import TAG, WorkerProcess, environment
from layerwise._tool.backends.jobs.processes.spare import SpareWorker


@contextmanager
def forked_jobs() -> Iterator[None]:
    """Jobs that this process submits meanwhile have forks for supervisor and worker."""
    forkserver.start_server()
    with mock.patch.object(client, "spawn_detached", _fork), mock.patch.object(warm_pair, "spawn_detached", _fork):
        yield


def as_forks(name: str) -> str:
    """What a program of support.forkserver does first (`before`) so that its jobs are forks as well.

    name: what it and they are called in /proc/PID/comm, 15 letters at most.
    """
    return f"from support.forked_jobs import begin; begin({forkserver._address('layerwise')!r}, {name!r})"


def begin(address: str, name: str) -> None:
    """In such a program: the server at `address` forks its jobs."""
    called = f"open('/proc/self/comm', 'w').write({name!r})"
    exec(called, {})
    forkserver._address = lambda program: address  # type: ignore[assignment]
    client.spawn_detached = warm_pair.spawn_detached = partial(_fork, before=called)  # type: ignore[attr-defined]


def _fork(command: Sequence[str], keep: Sequence[int] = (), before: str = "") -> None:
    """Do as `spawn_detached`. before: what the process does first."""
    place = next(k for k, word in enumerate(command) if word.startswith(warm_pair.__name__.rpartition(".")[0]))
    words = [*command[place:], *map(str, range(3, 3 + len(keep)))]
    with Path(os.devnull).open("r+b") as nothing:
        streams = [nothing.fileno()] * 3
        forkserver.start(words, Path("/"), environment(), [*streams, *keep], program="jobs", before=before)


# ── in the server's forks ──


def main() -> int:
    """Be the process that the command line names."""
    process = {each.__name__: each.main for each in (supervisor, warm_supervisor)}[sys.argv[1]]
    return process(sys.argv[2:])


class ForkedSpare(SpareWorker):
    """A spare worker that is a fork of its supervisor."""

    def __init__(self, actions: str, jobs: Path) -> None:
        self._tag = f"spare-{uuid.uuid4().hex}"
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        env, parent = environment(**{TAG: self._tag}), str(os.getpid())

        def start(group: int) -> int:
            pid = os.fork()
            if pid == 0:
                try:
                    os.setpgid(0, group)
                    for number in (signal.SIGINT, signal.SIGHUP):
                        signal.signal(number, signal.SIG_DFL)
                    os.environ.clear()
                    os.environ.update(env)
                    os.dup2(theirs.fileno(), 3)
                    os.closerange(4, 4096)
                    spare_worker.main([actions, str(jobs), parent, "3"])
                finally:
                    os._exit(1)
            return pid

        with theirs:
            WorkerProcess.__init__(self, env, start)
