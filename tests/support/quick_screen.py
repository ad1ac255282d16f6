"""pyte's terminal, quicker: what programs send most, text of single-width letters and plain sequences, goes past its
parser, which takes one letter at a time."""

import re
from functools import cache
from typing import Any

import pyte
from pyte import charsets, modes
from wcwidth import wcwidth

_SEQUENCE = re.compile(r"\x1b\[(\??)([\d;]*)([@A-Za-z`])")
Char = Any  # pyte.screens.Char, which is not typed


@cache
def _is_narrow(letter: str) -> bool:
    return bool(wcwidth(letter) == 1)


class _Cells(dict[str, Char]):
    """Cells of one look by their letter."""

    def __init__(self, look: Char) -> None:
        self._look = look

    def __missing__(self, letter: str) -> Char:
        cell = self[letter] = self._look._replace(data=letter)
        return cell


class Screen(pyte.Screen):
    """A screen of pyte that remembers cells and looks."""

    def __init__(self, columns: int, rows: int) -> None:
        self._cells: dict[Char, _Cells] = {}
        self._looks: dict[tuple[Char, tuple[int, ...]], Char] = {}
        super().__init__(columns, rows)

    def draw(self, data: str) -> None:
        cursor, start = self.cursor, self.cursor.x
        table = self.g1_charset if self.charset else self.g0_charset
        room = start + len(data) <= self.columns and modes.IRM not in self.mode
        if not room or table != charsets.LAT1_MAP or not all(map(_is_narrow, data)):
            super().draw(data)
            return
        if (cells := self._cells.get(cursor.attrs)) is None:
            cells = self._cells[cursor.attrs] = _Cells(cursor.attrs)
        line = self.buffer[cursor.y]
        for x, letter in enumerate(data, start):
            line[x] = cells[letter]
        cursor.x = start + len(data)
        self.dirty.add(cursor.y)

    def select_graphic_rendition(self, *attrs: int) -> None:
        key = (self.cursor.attrs, attrs)
        if (look := self._looks.get(key)) is None:
            super().select_graphic_rendition(*attrs)
            look = self._looks[key] = self.cursor.attrs
        self.cursor.attrs = look


class Stream(pyte.ByteStream):
    """A stream of pyte that takes whole sequences."""

    def feed(self, data: bytes) -> None:
        text, offset, plain = self.utf8_decoder.decode(data), 0, self._taking_plain_text
        while offset < len(text):
            if not plain:
                plain = self._send_to_parser(text[offset])
                offset += 1
            elif found := self._text_pattern.match(text, offset):
                self.listener.draw(found[0])
                offset = found.end()
            elif (found := _SEQUENCE.match(text, offset)) and found[3] in self.csi:
                numbers = [min(int(number or 0), 9999) for number in found[2].split(";")]
                getattr(self.listener, self.csi[found[3]])(*numbers, **({"private": True} if found[1] else {}))
                offset = found.end()
            else:
                plain = False
        self._taking_plain_text = plain
