"""Textual's driver for terminals, with a parser of its own for what is typed."""

import os
import selectors
import signal
from codecs import getincrementaldecoder
from collections.abc import Callable
from contextlib import suppress
from threading import Event
from time import monotonic

from textual.drivers.linux_driver import LinuxDriver
from textual.events import CursorPosition
from textual.message import Message

from layerwise._tool.tui.typed.parser import KeyParser

TICK = 0.1
MOST_BYTES = 4096
ASKS_PLACE = "\x1b[6n"
MODE_REPORT = b"$y"
"""The end of the answer to what Textual asks every terminal at the start."""
LAST_ANSWER = 1.0
"""Seconds that an answer on its way is waited for at the end: the shell would take it for typed."""


class KeyDriver(LinuxDriver):
    """Reads as Textual's does.

    keeps_input: what was typed and is not read yet is for the app that comes next, and not thrown away at the end.
    written: bytes written so far. answered: called on the app's loop with the time (monotonic) at which the terminal
    answered an `ask`. drawn: called with all that is written.
    """

    keeps_input = False
    written = 0
    answered: Callable[[float], None] = staticmethod(lambda now: None)
    drawn: Callable[[str], None] = staticmethod(lambda data: None)
    _answers = False
    _open: Event | None = None

    def write(self, data: str) -> None:
        self.written += len(data.encode("utf-8", "replace"))
        self.drawn(data)
        super().write(data)

    def ask(self) -> bool:
        """Have the terminal answer behind all that was written; False if it is not known to answer."""
        if self._answers:
            self._open = Event()
            self.write(ASKS_PLACE)
        return self._answers

    def _was_answer(self, message: Message) -> bool:
        """Whether it is the terminal's answer and nothing else."""
        if not isinstance(message, CursorPosition) or self._open is None:
            return False
        self._open.set()
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self.answered, monotonic())
        return True

    def disable_input(self) -> None:
        """Read no more."""
        if self._open is not None and self._key_thread is not None and self._key_thread.is_alive():
            self._open.wait(LAST_ANSWER)
        if not self.keeps_input:
            super().disable_input()
        elif not self.exit_event.is_set():
            signal.signal(signal.SIGWINCH, signal.SIG_DFL)
            self._disable_mouse_support()
            self.exit_event.set()
            if self._key_thread is not None:
                self._key_thread.join()
            self.exit_event.clear()

    def run_input_thread(self) -> None:
        """Wait for input, and send what it means to the app, until the app ends."""
        parser, decode = KeyParser(self._debug), getincrementaldecoder("utf-8")(errors="replace").decode
        with selectors.SelectSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                if selector.select(TICK):
                    data = os.read(self.fileno, MOST_BYTES)
                    if not data:
                        return
                    self._answers = self._answers or MODE_REPORT in data
                    for message in parser.feed(decode(data)):
                        if not self._was_answer(message):
                            self.process_message(message)
                for message in parser.tick():
                    self.process_message(message)
