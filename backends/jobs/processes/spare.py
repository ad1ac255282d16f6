"""A worker started before its job: it has imported what most jobs need and has opened nothing.

The supervisor's side. A spare serves one job: what it has imported and set cannot be undone.
"""

import json
import os
import signal
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

from layerwise._tool.backends.jobs.folder import mark_tag
from layerwise._tool.backends.jobs.processes.control import (
    TAG,
    WorkerProcess,
    environment,
    kept_numbers,
    large_pages,
    python,
    spawn,
)


class SpareWorker(WorkerProcess):
    """Waits in its process for `take`; ends with this process like any worker."""

    def __init__(self, actions: str, jobs: Path) -> None:
        self._tag = f"spare-{os.urandom(16).hex()}"
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        (number,) = kept_numbers([theirs.fileno()])
        command = python("spare_worker", actions, str(jobs), str(os.getpid()), str(number))
        env = {**large_pages(), **environment(**{TAG: self._tag})}
        with theirs:
            super().__init__(env, lambda group: spawn(command, env, group=group, keep=[theirs.fileno()]))

    def take(self, folder: Path, attempt: int, env: Mapping[str, str], keep: Sequence[int]) -> bool:
        """Give it an attempt, with `env` over its environment and the descriptors of lock and leases.

        False when it has died meanwhile. Raises OSError when the job's folder cannot be written.
        """
        if self.exited():
            return False
        mark_tag(folder, self._tag)
        message = json.dumps({"folder": str(folder), "attempt": attempt, "environment": dict(env)})
        try:
            socket.send_fds(self._socket, [message.encode()], list(keep))
        except OSError:
            return False
        finally:
            self._socket.close()
        return True

    def dismiss(self) -> None:
        """End it unused."""
        self._socket.close()
        self.signal_group(signal.SIGKILL)
        self.bury()
