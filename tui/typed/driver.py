"""Textual's driver for terminals, with a parser of its own for what is typed."""

import os
import selectors
import signal
from codecs import getincrementaldecoder

from textual.drivers.linux_driver import LinuxDriver

from layerwise._tool.tui.typed.parser import KeyParser

TICK = 0.1
MOST_BYTES = 4096


class KeyDriver(LinuxDriver):
    """Reads as Textual's does.

    keeps_input: what was typed and is not read yet is for the app that comes next, and not thrown away at the end.
    """

    keeps_input = False

    def disable_input(self) -> None:
        """Read no more."""
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
                    for message in parser.feed(decode(data)):
                        self.process_message(message)
                for message in parser.tick():
                    self.process_message(message)
