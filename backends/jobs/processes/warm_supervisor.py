"""A supervisor started before its job: `python -m …processes.warm_supervisor ACTIONS JOBS SOCKET`.

It starts a spare worker and waits for one job on the socket; it ends, and the spare with it, when the socket closes.
"""

import os
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path

from layerwise._tool.backends.jobs.processes.spare import SpareWorker
from layerwise._tool.backends.jobs.processes.supervisor import see_through


def main(arguments: list[str]) -> int:
    os.chdir("/")
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(fileno=int(arguments[2])) as client:
        client.set_inheritable(False)
        spare = SpareWorker(arguments[0], Path(arguments[1]))
        message, kept, *_ = socket.recv_fds(client, 1 << 16, 1, socket.MSG_CMSG_CLOEXEC)
        if not message:
            spare.dismiss()
            return 0
        with suppress(OSError):  # the client may be dead; its job is not
            client.send(b"taken")
    see_through(arguments[0], Path(os.fsdecode(message)), kept[0], spare)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
