"""Drives the real program in a pseudo-terminal: keys in, bytes counted, the screen as text."""

import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import psutil
from support import forkserver
from support.cpu_time import RUNS, ticks
from support.quick_screen import Screen, Stream
from support.told import unfinished
from typing_extensions import Self

T = TypeVar("T")
ROOT = Path(__file__).parent.parent.parent
LOOK = 0.04
"""Seconds between two looks at whether the program works."""
APP = (sys.executable, "-m", "layerwise")
KEYS = {
    "down": "\x1b[B", "up": "\x1b[A", "left": "\x1b[D", "right": "\x1b[C", "pagedown": "\x1b[6~",
    "pageup": "\x1b[5~", "home": "\x1b[H", "end": "\x1b[F", "enter": "\r", "escape": "\x1b", "tab": "\t",
    "space": " ", "slash": "/", "colon": ":", "backspace": "\x7f", "ctrl+d": "\x04", "ctrl+u": "\x15",
    "ctrl+p": "\x10", "ctrl+c": "\x03",
}  # fmt: skip
ASKS_SYNC, HAS_SYNC = b"\x1b[?2026$p", b"\x1b[?2026;2$y"
ASKS_PLACE, PLACE = b"\x1b[6n", b"\x1b[1;1R"
FRAME_STARTS, FRAME_ENDS = b"\x1b[?2026h", b"\x1b[?2026l"


class Terminal:
    """A program on a terminal of `columns` x `rows`; a context manager that leaves no process behind.

    It knows synchronized output, as modern terminals do: what is read is always whole frames.

    env: over the tests' own environment. hangup: False starts the program with SIGHUP ignored, as nohup does.
    answers: it says where its cursor is when asked, at once.
    forked: the command is words for `layerwise`, which is a fork of what has imported it.
    before: what that does to itself first, as text of Python.
    """

    def __init__(
        self, command: Sequence[str], *, columns: int = 120, rows: int = 40, env: Mapping[str, str] | None = None,
        hangup: bool = True, forked: bool = False, cwd: Path = ROOT, before: str = "",
    ) -> None:  # fmt: skip
        self.screen = Screen(columns, rows)
        self._stream = Stream(self.screen)
        self._lines: list[str] = []
        self.received = 0
        self.answers = True
        self.raw = bytearray()
        self.process: subprocess.Popen[bytes] | forkserver.Forked
        master, slave = pty.openpty()
        self.master = master
        self._set_size(columns, rows)
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("SSH_", "TEXTUAL")) and k != "NO_COLOR"}
        self.started = time.monotonic()
        whole = {**clean, "TERM": "xterm-256color", "COLORTERM": "truecolor", "LC_ALL": "C.UTF-8", **(env or {})}
        self._home = whole.get("LAYERWISE_HOME", "")
        if forked:
            ignored = "hangup" if hangup else forkserver.HANGUP_OFF
            self.process = forkserver.start(command, cwd, whole, [slave] * 3, terminal=ignored, before=before)
        else:
            self.process = _fresh(command, whole, slave, hangup, cwd)
        os.close(slave)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(60)
        if self.master >= 0:
            os.close(self.master)

    # ── output ──

    @property
    def text(self) -> str:
        """The screen as lines of text; those that have not changed are not made again."""
        buffer, columns, rows = self.screen.buffer, range(self.screen.columns), self.screen.lines
        changed = self.screen.dirty if len(self._lines) == rows else range(rows)
        self._lines = (self._lines + [""] * rows)[:rows]
        for row in changed:
            if row < rows:
                line = buffer[row]
                self._lines[row] = "".join([line[column].data for column in columns]).rstrip()
        self.screen.dirty.clear()
        return "\n".join(self._lines)

    def pump(self, seconds: float) -> int:
        """Read for up to `seconds`, until something came, and the frame that it belongs to; returns the bytes read."""
        total = self._read(seconds)
        if total and self.raw.find(ASKS_SYNC, -total - len(ASKS_SYNC) + 1) >= 0:
            os.write(self.master, HAS_SYNC)
        while self.raw.rfind(FRAME_STARTS) > self.raw.rfind(FRAME_ENDS):
            count = self._read(5.0)
            if not count:
                break
            total += count
        if total and self.raw.find(ASKS_PLACE, -total - len(ASKS_PLACE) + 1) >= 0 and self.answers:
            os.write(self.master, PLACE)
        return total

    def _read(self, seconds: float) -> int:
        if not forkserver.readable(self.master, seconds):
            return 0
        try:
            data = os.read(self.master, 1 << 16)
        except OSError:
            return 0
        self.feed(data)
        return len(data)

    def feed(self, data: bytes) -> None:
        """Draw what the program sent."""
        self._stream.feed(data)
        self.raw += data
        self.received += len(data)

    def until_silent(self, silence: float = 0.3, limit: float = 60.0) -> int:
        """Read until for `silence` seconds nothing came and the program did not work; returns the bytes read."""
        total, deadline = 0, time.monotonic() + limit
        since, worked = time.monotonic(), ticks(self.process.pid)
        while time.monotonic() < deadline:
            count, now = self.pump(min(LOOK, silence)), ticks(self.process.pid)
            total += count
            if count or abs(now - worked) > 1 or now >= RUNS:
                since = time.monotonic()
            elif time.monotonic() - since >= silence:
                break
            worked = now
        return total

    def is_idle(self, seconds: float = 1.0, tries: int = 5) -> bool:
        """Whether nothing comes for so long, once what was asked for is drawn, however late that is."""
        return any(self.until_silent(seconds) == 0 for _ in range(tries))

    def wait_for(self, seen: str | Callable[[str], bool], limit: float = 60.0) -> float:
        """Read until the screen holds a text (or satisfies a predicate); returns seconds since the start.

        Raises AssertionError with the screen after `limit` seconds.
        """
        deadline = time.monotonic() + limit
        holds = seen if callable(seen) else lambda text: seen in text
        while not holds(self.text):
            ended = self.process.poll() is not None and not self.pump(0.05)
            if time.monotonic() > deadline or (ended and not holds(self.text)):
                jobs = unfinished(Path(self._home)) if self._home else ""
                raise AssertionError(f"did not see {seen!r} (exit code {self.process.poll()}):\n{self.text}\n{jobs}")
            self.pump(0.1)
        return time.monotonic() - self.started

    def meanwhile(self, check: Callable[[], T], seconds: float = 60.0) -> T:
        """The first true value of `check`. What the program sends is read until then: it may wait for its reader."""
        deadline = time.monotonic() + seconds
        while not (value := check()):
            assert time.monotonic() < deadline, f"still not so after {seconds} s: {check}"
            self.pump(0.02)
        return value

    def exit_code(self, seconds: float = 60.0) -> int:
        """Of the program, once it has ended. What it sends is read until then: it may wait for its reader."""
        deadline = time.monotonic() + seconds
        while self.process.poll() is None:
            assert time.monotonic() < deadline, f"still running after {seconds} s:\n{self.text}"
            if self.master >= 0:
                self.pump(0.02)
            else:
                self.process.wait(seconds)
        while self.master >= 0 and self.pump(0.0):
            pass
        assert self.process.returncode is not None
        return self.process.returncode

    # ── input ──

    def press(self, *keys: str) -> None:
        """Send keys by name, or as they are."""
        os.write(self.master, "".join(KEYS.get(key, key) for key in keys).encode())

    def cost(self, *keys: str) -> int:
        """Bytes that the program sends after `keys`, until 300 ms of silence."""
        self.press(*keys)
        return self.until_silent()

    def resize(self, columns: int, rows: int) -> None:
        self.screen.resize(rows, columns)
        self._set_size(columns, rows)
        self.process.send_signal(signal.SIGWINCH)

    def hang_up(self) -> None:
        """Take the terminal away, as a dropped connection does."""
        os.close(self.master)
        self.master = -1

    def memory(self) -> int:
        """Resident bytes of the program itself, children not counted."""
        return int(psutil.Process(self.process.pid).memory_info().rss)

    def _set_size(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def _fresh(
    command: Sequence[str], env: Mapping[str, str], slave: int, hangup: bool, cwd: Path
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command, stdin=slave, stdout=slave, stderr=slave, cwd=cwd, close_fds=True, env=env,
        preexec_fn=lambda: _own_terminal(hangup),  # noqa: PLW1509 (no threads here)
    )  # fmt: skip


def _own_terminal(hangup: bool) -> None:
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGHUP, signal.SIG_DFL if hangup else signal.SIG_IGN)


def app(model: Path | str | None = None, *, fresh: bool = False, own_jobs: bool = False, **options: object) -> Terminal:
    """The app on `model` in a pseudo-terminal.

    fresh: in a Python of its own, as where its memory, its end or its environment beside LAYERWISE_* are looked at.
    own_jobs: its jobs have processes of their own as a user's have, as where these are looked for; else forks.
    """
    words = [str(model)] if model else []
    given = options.get("env") or {}
    if fresh or not all(name.startswith("LAYERWISE_") for name in given):  # type: ignore[attr-defined]
        return Terminal([*APP, *words], **options)  # type: ignore[arg-type]
    if not own_jobs and "before" not in options:
        from support.forked_jobs import as_forks

        forkserver.start_server()
        options["before"] = as_forks("layerwise")
    return Terminal(words, forked=True, **options)  # type: ignore[arg-type]
