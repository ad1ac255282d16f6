"""A supervisor and a worker that stand ready for the next job, so that it starts in a few milliseconds.

A pair serves one job. It ends when whoever started it closes it or dies, and it is left alone when the installed
code has changed since it was started.
"""

import asyncio
import os
import socket
import sysconfig
from contextlib import suppress
from pathlib import Path

from layerwise._tool.backends.jobs.processes.control import ROOT, python, spawn_detached

_ANSWER_WITHIN = 5.0


class WarmPair:
    """Starts the pair. Raises OSError when it cannot be started. Blocks for some milliseconds."""

    def __init__(self, actions: str, jobs: Path) -> None:
        self._code = {folder: (_changed(folder), _files(folder)) for folder in _code_folders()}
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            spawn_detached(python("warm_supervisor", actions, str(jobs)), keep=[theirs.fileno()])

    def take(self, folder: Path, lock: int) -> bool:
        """Give it a job with its lock; False when it is gone or of older code: then nobody has taken the job."""
        try:
            return self._same_code() and self._give(folder, lock)
        finally:
            self.close()

    def _same_code(self) -> bool:
        """Whether all files of code are as they were; a folder changes too when its first module is compiled."""
        return all(_changed(path) == then or _files(path) == files for path, (then, files) in self._code.items())

    def _give(self, folder: Path, lock: int) -> bool:
        self._socket.settimeout(_ANSWER_WITHIN)
        try:
            socket.send_fds(self._socket, [os.fsencode(folder)], [lock])
            return self._socket.recv(16) != b""
        except TimeoutError:
            return True  # it has the lock and takes the job up, or dies, which reads `lost`; two would be worse
        except OSError:
            return False

    def close(self) -> None:
        """End the pair, unless it has a job."""
        self._socket.close()


def _code_folders() -> set[str]:
    """Folders that an upgrade of ours, or of what is installed beside us, puts files into."""
    ours = os.walk(Path(ROOT, "layerwise"), followlinks=True)  # the floors of a checkout are links
    folders = {folder for folder, _, _ in ours if "__pycache__" not in folder}
    return folders | {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}


def _changed(folder: str) -> int:
    try:
        return Path(folder).stat().st_mtime_ns
    except OSError:
        return 0


def _files(folder: str) -> frozenset[tuple[str, int]]:
    """What is in a folder, but for compiled modules: names, of files with the time when they changed."""
    try:
        entries = [entry for entry in os.scandir(folder) if entry.name != "__pycache__"]
        return frozenset((entry.name, entry.stat().st_mtime_ns if entry.is_file() else 0) for entry in entries)
    except OSError:
        return frozenset()


class Prestarted:
    """Keeps one pair ready while it is wanted. Used from one asyncio loop."""

    def __init__(self, actions: str, jobs: Path) -> None:
        self._actions, self._jobs = actions, jobs
        self._after: float | None = None
        self._pair: WarmPair | None = None
        self._start: asyncio.Task[None] | None = None

    def keep(self, after: float) -> None:
        """From `after` seconds on have a pair ready, and again so long after one was used."""
        self._after = after
        if self._start is None or self._start.done():
            self._start = asyncio.create_task(self._make(after))

    async def _make(self, after: float) -> None:
        await asyncio.sleep(after)
        if self._pair is None:
            with suppress(OSError):
                self._pair = await asyncio.to_thread(WarmPair, self._actions, self._jobs)

    def pop(self) -> WarmPair | None:
        """The pair, if one is ready; it is the caller's now."""
        pair, self._pair = self._pair, None
        if self._after is not None:
            self.keep(self._after)
        return pair

    def close(self) -> None:
        """Want no pair any more."""
        self._after = None
        if self._start is not None:
            self._start.cancel()
        if self._pair is not None:
            self._pair.close()
            self._pair = None
