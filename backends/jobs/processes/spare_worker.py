"""The spare worker's process: `python -m …processes.spare_worker ACTIONS JOBS PARENT SOCKET`.

ACTIONS is the module that offers the actions. JOBS, the folder of jobs that it is for, only names it in lists of
processes.
"""

import importlib
import json
import os
import select
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.jobs.folder import LOG
from layerwise._tool.backends.jobs.processes.worker import die_with, set_up_python, work

_MOST_DESCRIPTORS = 64


def main(arguments: list[str]) -> NoReturn:
    actions, _, parent, number = arguments
    die_with(int(parent))
    set_up_python()
    with socket.socket(fileno=int(number)) as waiting:
        waiting.set_inheritable(False)
        _import_until_asked(importlib.import_module(actions).AHEAD, waiting)
        message, kept, *_ = socket.recv_fds(waiting, 1 << 16, _MOST_DESCRIPTORS, socket.MSG_CMSG_CLOEXEC)
    if not message:
        os._exit(0)
    job = json.loads(message)
    os.environ.update(job["environment"])
    folder = Path(job["folder"])
    _write_to(folder / LOG)
    work(actions, folder, int(job["attempt"]), kept)


def _import_until_asked(modules: Sequence[str], waiting: socket.socket) -> None:
    """Import what most jobs need. A job that comes meanwhile does so itself, in the order that suits it."""
    for module in modules:
        if select.select([waiting], [], [], 0)[0]:
            return
        with suppress(ImportError, LayerwiseError):
            importlib.import_module(module)


def _write_to(log: Path) -> None:
    """Make the log what is printed to, native prints too."""
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    for stream in (1, 2):
        os.dup2(file, stream)
    os.close(file)


if __name__ == "__main__":
    main(sys.argv[1:])
