"""Keys out of a terminal's bytes where escape is typed just before other keys, as in a burst over a slow line.

Textual takes escape and a letter for alt and that letter, or gives the letters up to a tenth of a second later another
meaning. No command here has alt, so escape is a key of its own wherever no known sequence follows it.
"""

import re
from collections.abc import Generator, Iterable, Iterator
from time import monotonic

from textual import constants
from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual._xterm_parser import SPECIAL_SEQUENCES, XTermParser, _re_extended_key
from textual.events import Key
from textual.message import Message

ESC = "\x1b"
PASTE, PASTED = "\x1b[200~", "\x1b[201~"
_CONTROL = re.compile(r"\x1b\[\[?[0-?]*[ -/]*[@-~]")
_BEGUN = re.compile(r"\x1b(\[\[?[0-?]*[ -/]*|O)?\Z")
_WITH_NUMBERS = re.compile(r"\x1b\[[0-?]")


class KeyParser(XTermParser):
    """Gives Textual's parser whole sequences only; an escape that begins none is a key at once, or, as the last that
    came, after Textual's ESCDELAY.
    """

    def __init__(self, debug: bool = False) -> None:
        super().__init__(debug)
        self._held = ""
        self._held_until = 0.0
        self._pasting = False

    def feed(self, data: str) -> Iterable[Message]:
        """The keys, mouse events and reports in what was read; "" ends it."""
        if not data:
            return [*self._release(), *super().feed("")]
        held, self._held = self._held, ""
        return list(self._split(held + data))

    def tick(self) -> Iterable[Message]:
        """An escape that nothing followed in time."""
        if self._held and monotonic() >= self._held_until:
            return [*self._release(), *super().tick()]
        return super().tick()

    def _release(self) -> list[Message]:
        held, self._held = self._held, ""
        return list(self._escaped(held)) if held else []

    def _split(self, data: str) -> Iterator[Message]:
        while data:
            if self._pasting:
                data = yield from self._paste(data)
                continue
            plain, escape, rest = data.partition(ESC)
            if plain:
                yield from super().feed(plain)
            data = (yield from self._sequence(ESC + rest)) if escape else ""

    def _paste(self, data: str) -> Generator[Message, None, str]:
        """Text up to the end of a paste; returns what follows it."""
        text, end, rest = data.partition(PASTED)
        if not end and any(data.endswith(PASTED[:n]) for n in range(1, len(PASTED))):
            self._hold(data[data.rindex(ESC) :])
            text = data[: data.rindex(ESC)]
        if clean := text.replace(ESC, ""):
            yield from super().feed(clean)
        if end:
            self._pasting = False
            yield from super().feed(PASTED)
        return rest

    def _sequence(self, data: str) -> Generator[Message, None, str]:
        """What begins with an escape; returns what follows it."""
        if _BEGUN.match(data):
            self._hold(data)
            return ""
        found = _CONTROL.match(data)
        sequence = found.group() if found else data[:3] if data[1] == "O" else ""
        if sequence == PASTE:
            self._pasting = True
        if _known(sequence):
            yield from super().feed(sequence)
            return data[len(sequence) :]
        if found and _WITH_NUMBERS.match(sequence):
            return data[len(sequence) :]  # a report or a key that means nothing here
        yield Key("escape", ESC)
        return data[1:]

    def _escaped(self, held: str) -> Iterator[Message]:
        """What was held as keys, since no more of a sequence came."""
        yield Key("escape", ESC)
        if held[1:]:
            yield from super().feed(held[1:])

    def _hold(self, data: str) -> None:
        self._held, self._held_until = data, monotonic() + constants.ESCAPE_DELAY


_REPORTS = [
    re.compile(r"\x1b\[<\d+;-?\d+;-?\d+[Mm]"),
    re.compile(r"\x1b\[\?\d+;\d\$y"),
    re.compile(r"\x1b\[\d+;\d+R"),
    re.compile(r"\x1b\[48;[\d:;]+t"),
]


def _known(sequence: str) -> bool:
    """Whether Textual's parser takes all of it at once."""
    if sequence in ANSI_SEQUENCES_KEYS or sequence in SPECIAL_SEQUENCES:
        return True
    if not constants.DISABLE_KITTY_KEY and _re_extended_key.fullmatch(sequence):
        return True
    return any(report.fullmatch(sequence) for report in _REPORTS)
