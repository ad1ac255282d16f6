"""`layerwise attach --screen`: the screen of the app in another terminal, to look at."""

import os
import select
import socket
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic

import msgspec

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.tui.typed.mirror import FOLDER, Size, in_folder

_AGAIN = 2.0
"""Seconds that a screen may be away, as while it takes another size."""
_ENDS = (b"q", b"\x03", b"\x04")


def watch_screen(root: Path) -> None:
    """Show the screen of the app that runs on a workspace, the one started last, until it ends or `q` is pressed.

    Raises UsageError where this is no terminal, LayerwiseError where no app runs.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("--screen needs a terminal to show the app in")
    screen = _newest(root)
    if screen is None:
        raise LayerwiseError("no app runs on this workspace: open one with `layerwise MODEL` in another terminal")
    with _bare():
        while screen is not None and _shown(screen):
            screen = _back(root)


def _newest(root: Path) -> socket.socket | None:
    """A line to the app started last; sockets of apps that were killed are removed."""
    with suppress(OSError):
        places = sorted((root / FOLDER).glob("*.sock"), key=lambda path: path.lstat().st_mtime, reverse=True)
        for place in places:
            found = socket.socket(socket.AF_UNIX)
            handle, address = in_folder(place.parent, place.name)
            try:
                found.connect(address)
                return found
            except ConnectionRefusedError:
                found.close()
                place.unlink(missing_ok=True)
            except OSError:
                found.close()
            finally:
                os.close(handle)
    return None


def _back(root: Path) -> socket.socket | None:
    until = monotonic() + _AGAIN
    while monotonic() < until:
        found = _newest(root)
        if found is not None:
            return found
        if _pressed(0.1):
            break
    return None


@contextmanager
def _bare() -> Iterator[None]:
    """The other screen of this terminal, keys as they are pressed; all as it was afterwards."""
    before = termios.tcgetattr(0)
    _write(b"\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J")
    try:
        tty.setraw(0)
        yield
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)
        _write(b"\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l")


def _shown(screen: socket.socket) -> bool:
    """Show what comes; whether it ended by itself, not by a key."""
    begun: bytes | None = b""
    with screen:
        while True:
            ready = select.select([screen.fileno(), 0], [], [])[0]
            if 0 in ready and _pressed(0):
                return False
            if screen.fileno() in ready:
                data = _read(screen)
                if not data:
                    return True
                if begun is not None:
                    begun, data = _after_size(begun + data)
                _write(data)


def _after_size(data: bytes) -> "tuple[bytes | None, bytes]":
    """What came of the first line, None once it is whole; and what follows it."""
    line, end, rest = data.partition(b"\n")
    if not end:
        return data, b""
    size, here = msgspec.json.decode(line, type=Size), os.get_terminal_size()
    if here.columns < size.columns or here.lines < size.rows:
        told = f"the app has {size.columns}x{size.rows} cells, here are {here.columns}x{here.lines}: make this larger"
        return None, b"\x1b[2J" + f"\x1b[{here.lines};1H{told}"[: here.columns + 8].encode() + rest
    return None, b"\x1b[2J" + rest


def _read(screen: socket.socket) -> bytes:
    with suppress(OSError):
        return screen.recv(1 << 16)
    return b""


def _pressed(seconds: float) -> bool:
    """Whether a key that ends it was pressed; what else is typed, or a terminal reports, is for nobody."""
    if not select.select([0], [], [], seconds)[0]:
        return False
    data = os.read(0, 1024)
    return not data or data in _ENDS


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]
