"""Many rows in little memory, each readable alone."""

import zlib

import msgspec

from layerwise._tool.debugtools.compare.rows import LayerRow

BLOCK = 128


class PackedRows:
    """An append-only list of rows, kept as compressed blocks of `BLOCK` rows.

    A layer row is about 1 KB; packed it is about 100 bytes, so 100,000 rows are 10 MB and not 300.
    """

    def __init__(self) -> None:
        self._blocks: list[bytes] = []
        self._open: list[LayerRow] = []
        self._read: tuple[int, list[LayerRow]] = (-1, [])

    def __len__(self) -> int:
        return len(self._blocks) * BLOCK + len(self._open)

    def append(self, row: LayerRow) -> int:
        """Add a row and return its number."""
        self._open.append(row)
        if len(self._open) == BLOCK:
            self._blocks.append(zlib.compress(msgspec.msgpack.encode(self._open), 1))
            self._open = []
        return len(self) - 1

    def __getitem__(self, number: int) -> LayerRow:
        if not 0 <= number < len(self):
            raise IndexError(number)
        block, place = divmod(number, BLOCK)
        return self._rows(block)[place]

    def _rows(self, block: int) -> list[LayerRow]:
        if block == len(self._blocks):
            return self._open
        if self._read[0] != block:
            self._read = (block, msgspec.msgpack.decode(zlib.decompress(self._blocks[block]), type=list[LayerRow]))
        return self._read[1]
