"""Who may use a GPU or a CPU slot now.

A lease is an flock on a file per GPU UUID or slot, so it ends when the last process that was handed its
descriptor is dead. GPUs are leased across all workspaces of a user on this machine, CPU slots within a
workspace. Waiters stand in line by ticket files that they keep locked: a waiter that dies leaves the line.
"""

import hashlib
import os
from pathlib import Path

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.jobs.workspace import locks
from layerwise._tool.backends.jobs.workspace.ownership import check_above, own_folder

LEASES = "LAYERWISE_LEASES"


def leases_folder() -> Path:
    """Where the folder of the lock files is or will be; whose it is is not looked at."""
    chosen = os.environ.get(LEASES)
    return Path(chosen) if chosen else Path(f"/tmp/layerwise-leases-{os.getuid()}")


def leases_root() -> Path:
    """The folder of the lock files, never on a network file system: LAYERWISE_LEASES or
    /tmp/layerwise-leases-UID.
    """
    root = leases_folder()
    check_above(root, LEASES)
    own_folder(root, LEASES)
    return root


def cpu_slots() -> list[str]:
    """Names of the CPU slots: one for each core this process may use."""
    return [f"cpu-{i}" for i in range(len(os.sched_getaffinity(0)))]


def cpu_line(workspace: Path, count: int) -> "Waiter":
    """The line for `count` CPU slots of a workspace (no more than there are)."""
    slots = cpu_slots()
    key = hashlib.sha256(os.fsencode(workspace.resolve())).hexdigest()[:16]
    return Waiter(leases_root() / f"cpu-{key}", slots, min(count, len(slots)), "CPU slot")


def gpu_line(gpus: list[str], count: int) -> "Waiter":
    """The line for `count` of these GPUs. Raises UsageError when there are not so many."""
    if count > len(gpus):
        raise UsageError(
            f"the job asks for {count} GPU(s) and this machine shows {len(gpus)}: {', '.join(gpus) or 'none'}"
        )
    return Waiter(leases_root() / "gpu", gpus, count, "GPU")


class Waiter:
    """One waiter's place in the line for `count` of the things called `names`."""

    def __init__(self, folder: Path, names: list[str], count: int, word: str) -> None:
        own_folder(folder, LEASES)
        self.folder = folder
        self.reason = f"waiting for {count} {word}{'s' * (count > 1)}: all {len(names)} taken"
        self._names = names
        self._count = count
        self._ticket: Path | None = None
        self._ticket_fd = -1

    def try_take(self) -> dict[str, int] | None:
        """Take what is asked for, all or nothing: name -> descriptor that holds it.

        None while it is not our turn.
        """
        entrance = locks.enter(self.folder / "entrance")
        try:
            taken = self._grab() if self._first() else None
            if taken is None:
                self._queue()
            else:
                self.leave()
            return taken
        finally:
            os.close(entrance)

    def leave(self) -> None:
        """Give up the place in the line."""
        if self._ticket is not None:
            self._ticket.unlink(missing_ok=True)
            os.close(self._ticket_fd)
            self._ticket = None

    def _first(self) -> bool:
        for ticket in sorted(self.folder.glob("ticket-*")):
            if ticket == self._ticket:
                return True
            fd = locks.probe(ticket)
            if fd is None:
                return False
            ticket.unlink(missing_ok=True)
            os.close(fd)
        return True

    def _queue(self) -> None:
        if self._ticket is not None:
            return
        last = max((int(path.name[7:]) for path in self.folder.glob("ticket-*")), default=0)
        ticket = self.folder / f"ticket-{last + 1:012d}"
        fd = locks.hold(ticket)
        if fd is not None:
            self._ticket, self._ticket_fd = ticket, fd

    def _grab(self) -> dict[str, int] | None:
        taken: dict[str, int] = {}
        for name in self._names:
            fd = self._take(name) if len(taken) < self._count else None
            if fd is not None:
                taken[name] = fd
        if len(taken) == self._count:
            return taken
        for fd in taken.values():
            os.close(fd)
        return None

    def _take(self, name: str) -> int | None:
        path = self.folder / f"{name.replace('/', '_')}.lock"
        fd = locks.probe(path)
        if fd is None:
            return None
        os.close(fd)
        return locks.hold(path)


def taken(folder: Path) -> list[str]:
    """Names of the leases in a folder of lock files that somebody holds now."""
    held = []
    for path in sorted(folder.glob("*.lock")):
        fd = locks.probe(path)
        if fd is None:
            held.append(path.stem)
        else:
            os.close(fd)
    return held
