"""Sleeping until something happens: a file changes, a process ends, a signal comes, or time is up."""

import os
import select
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.waiting.watch import Watch

_POLL = 0.05


class Sleeper:
    """`wake_fd` is for `signal.set_wakeup_fd`. Without inotify or pidfds it sleeps 50 ms at a time."""

    def __init__(self) -> None:
        self._read, self.wake_fd = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._watch: Watch | None = None
        self._process = -1
        self._must_poll = False

    def watch(self, path: Path) -> None:
        """Wake when a file, or one in a folder, changes or is closed by a writer."""
        from layerwise._tool.backends.jobs.waiting.watch import Watch

        self._watch = self._watch or Watch()
        self._must_poll |= self._watch.add(path) < 0

    def process(self, pidfd: int) -> None:
        """Wake when the process ends."""
        self._process = pidfd
        self._must_poll |= pidfd < 0

    def watch_nothing(self) -> None:
        """Wake only when told to: the number of the process's descriptor may soon be another file's."""
        self._process, watch, self._watch = -1, self._watch, None
        if watch is not None:
            try:
                threading.Thread(target=watch.close).start()  # the kernel may keep it waiting for 20 ms
            except RuntimeError:
                watch.close()

    def sleep(self, seconds: float | None, *, deaf: float = 0.0) -> None:
        """Sleep until something happens; for the first `deaf` seconds files do not count, to be told less often."""
        fds = [fd for fd in (self._read, self._process) if fd >= 0]
        files = [self._watch.fd] if self._watch is not None and self._watch.fd >= 0 else []
        if self._must_poll:
            seconds = _POLL if seconds is None else min(seconds, _POLL)
        if not deaf or not _poll(fds, deaf if seconds is None else min(deaf, seconds)):
            _poll(fds + files, seconds)
        if self._watch is not None:
            self._watch.drain()
        with suppress(BlockingIOError):
            os.read(self._read, 512)

    def wake(self) -> None:
        """End the sleep, from any thread; after `close` nothing happens."""
        with suppress(OSError):
            os.write(self.wake_fd, b"\0")

    def close(self) -> None:
        os.close(self._read)
        os.close(self.wake_fd)
        if self._watch is not None:
            self._watch.close()


def _poll(fds: list[int], seconds: float | None) -> bool:
    poller = select.poll()
    for fd in fds:
        poller.register(fd, select.POLLIN)
    return bool(poller.poll(None if seconds is None else max(0.0, seconds) * 1000))
