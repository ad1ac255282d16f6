"""Many JSON rows in little memory, each readable alone."""

import json
import zlib
from typing import Any

BLOCK = 128


class PackedRows:
    """An append-only list of JSON objects, kept as compressed blocks of `BLOCK` rows.

    A layer row is about 1 KB of JSON; packed it is about 100 bytes, so 100,000 rows are 10 MB and not 300.
    """

    def __init__(self) -> None:
        self._blocks: list[bytes] = []
        self._open: list[str] = []
        self._read: tuple[int, list[str]] = (-1, [])

    def __len__(self) -> int:
        return len(self._blocks) * BLOCK + len(self._open)

    def append(self, row: dict[str, Any]) -> int:
        """Add a row and return its number."""
        self._open.append(json.dumps(row, separators=(",", ":")))
        if len(self._open) == BLOCK:
            self._blocks.append(zlib.compress("\n".join(self._open).encode(), 1))
            self._open = []
        return len(self) - 1

    def __getitem__(self, number: int) -> dict[str, Any]:
        if not 0 <= number < len(self):
            raise IndexError(number)
        block, place = divmod(number, BLOCK)
        row: dict[str, Any] = json.loads(self._lines(block)[place])
        return row

    def _lines(self, block: int) -> list[str]:
        if block == len(self._blocks):
            return self._open
        if self._read[0] != block:
            self._read = (block, zlib.decompress(self._blocks[block]).decode().split("\n"))
        return self._read[1]
