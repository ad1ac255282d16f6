"""The detached supervisor of one job: `python -m …processes.supervisor ACTIONS FOLDER [LOCK_FD]`.

ACTIONS is the module that offers the job's action.

The client takes the job's lock and hands over the descriptor, so that the job is never without a holder.
Without LOCK_FD the supervisor takes the lock itself, and leaves when another has it.
"""

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from layerwise._tool.backends.jobs.folder import LOCK
from layerwise._tool.backends.jobs.processes.supervise import Supervision
from layerwise._tool.backends.jobs.workspace import locks

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.processes.spare import SpareWorker


def main(arguments: list[str]) -> int:
    actions, folder = arguments[0], Path(arguments[1]).resolve()
    lock = int(arguments[2]) if len(arguments) > 2 else locks.hold(folder / LOCK)
    if lock is None:
        return 1
    os.set_inheritable(lock, False)
    os.chdir("/")
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    see_through(actions, folder, lock)
    return 0


def see_through(actions: str, folder: Path, lock: int, spare: "SpareWorker | None" = None) -> None:
    """Supervise the job to its end; SIGTERM cancels it."""
    supervision = Supervision(folder, lock, actions, spare=spare)
    signal.set_wakeup_fd(supervision.sleeper.wake_fd, warn_on_full_buffer=False)
    signal.signal(signal.SIGTERM, supervision.stop)
    supervision.run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
