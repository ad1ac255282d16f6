"""Many rows of plain values in little memory, each readable alone."""

import zlib
from typing import Any

import msgspec

BLOCK = 128


class PackedRows:
    """An append-only list of plain dicts, kept as compressed blocks of `BLOCK` rows.

    A layer row is about 1 KB; packed it is about 100 bytes, so 100,000 rows are 10 MB and not 300.
    """

    def __init__(self) -> None:
        self._blocks: list[bytes] = []
        self._open: list[dict[str, Any]] = []
        self._read: tuple[int, list[dict[str, Any]]] = (-1, [])

    def __len__(self) -> int:
        return len(self._blocks) * BLOCK + len(self._open)

    def append(self, row: dict[str, Any]) -> int:
        """Add a row and return its number."""
        self._open.append(row)
        if len(self._open) == BLOCK:
            self._blocks.append(zlib.compress(msgspec.msgpack.encode(self._open), 1))
            self._open = []
        return len(self) - 1

    def __getitem__(self, number: int) -> dict[str, Any]:
        if not 0 <= number < len(self):
            raise IndexError(number)
        block, place = divmod(number, BLOCK)
        return self._rows(block)[place]

    def _rows(self, block: int) -> list[dict[str, Any]]:
        if block == len(self._blocks):
            return self._open
        if self._read[0] != block:
            self._read = (block, msgspec.msgpack.decode(zlib.decompress(self._blocks[block])))
        return self._read[1]
