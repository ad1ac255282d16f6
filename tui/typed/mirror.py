"""The app's screen for a second terminal: what is drawn here goes to those that watch, and nothing comes back.

Each app has a socket in its workspace, which is its user's alone. A watcher is told the size, then gets all frames.
"""

import asyncio
import os
import re
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from layerwise._tool.backends.filesystem.permissions import make_folder

FOLDER = "screens"
MOST = 1 << 20
"""Bytes that a watcher may be behind; one that is further behind is left."""
_NOT_SHOWN = re.compile(
    r"\x1b\[\?(?!2026[hl])\d+(?:[hl]|\$p)|\x1b\[6n|\x1b\[[<>]\d*u|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"
)
"""What a terminal is told or asked beside what it shows: modes, reports, the clipboard."""


class Size(msgspec.Struct, frozen=True):
    """The first line that a watcher gets."""

    columns: int
    rows: int


def in_folder(folder: Path, name: str) -> tuple[int, str]:
    """A folder's descriptor, to be closed, and the address of a socket in it, which must be short."""
    handle = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    return handle, f"/proc/self/fd/{handle}/{name}"


class Mirror:
    """size: the screen's now; redraw: draws all of it again."""

    def __init__(self, root: Path, size: Callable[[], Size], redraw: Callable[[], None]) -> None:
        self._folder, self._name = root / FOLDER, f"{os.getpid()}.sock"
        self._size, self._redraw = size, redraw
        self._listener: socket.socket | None = None
        self._behind: dict[socket.socket, bytearray] = {}

    def start(self) -> None:
        """Let watchers come; where the file system has no sockets there are none. To be called on the running loop."""
        listener = socket.socket(socket.AF_UNIX)
        listener.setblocking(False)
        try:
            make_folder(self._folder)
            handle, address = in_folder(self._folder, self._name)
            try:
                (self._folder / self._name).unlink(missing_ok=True)
                listener.bind(address)
                (self._folder / self._name).chmod(0o600)
                listener.listen(4)
            finally:
                os.close(handle)
        except OSError:
            listener.close()
            return
        self._listener = listener
        asyncio.get_running_loop().add_reader(listener, self._come)

    def close(self) -> None:
        """Leave all watchers."""
        if self._listener is not None:
            with suppress(RuntimeError):
                asyncio.get_running_loop().remove_reader(self._listener)
            self._listener.close()
            with suppress(OSError):
                (self._folder / self._name).unlink()
        self.leave_all()

    def leave_all(self) -> None:
        """End with those who watch; they may come again, as after another size."""
        for watcher in [*self._behind]:
            self._leave(watcher)

    def send(self, data: str) -> None:
        """What was written to the terminal."""
        if self._behind and (shown := _NOT_SHOWN.sub("", data)):
            for watcher in [*self._behind]:
                self._give(watcher, shown.encode("utf-8", "replace"))

    def _come(self) -> None:
        if self._listener is None:
            return
        with suppress(OSError):
            watcher, _ = self._listener.accept()
            watcher.setblocking(False)
            self._behind[watcher] = bytearray()
            self._give(watcher, msgspec.json.encode(self._size()) + b"\n")
            self._redraw()

    def _give(self, watcher: socket.socket, data: bytes) -> None:
        waiting = self._behind[watcher]
        waiting += data
        if len(waiting) > MOST:
            self._leave(watcher)
        elif len(waiting) == len(data):
            self._flush(watcher)

    def _flush(self, watcher: socket.socket) -> None:
        waiting, loop = self._behind[watcher], asyncio.get_running_loop()
        try:
            del waiting[: watcher.send(waiting)]
        except BlockingIOError:
            pass
        except OSError:
            self._leave(watcher)
            return
        (loop.add_writer(watcher, self._flush, watcher) if waiting else loop.remove_writer(watcher))

    def _leave(self, watcher: socket.socket) -> None:
        self._behind.pop(watcher, None)
        with suppress(RuntimeError, ValueError):
            asyncio.get_running_loop().remove_writer(watcher)
        watcher.close()
