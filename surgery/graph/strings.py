"""A table of distinct strings as columns: their UTF-8 bytes, and the same in lower case for searching."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from layerwise._tool.surgery.graph.columns import Columns

_SEPARATOR = b"\xff"  # not in any UTF-8 text, so that no match extends beyond a string


class StringTable:
    """Gives each distinct string a number, in order of arrival."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}

    def add(self, text: str) -> int:
        """Return the number of `text`."""
        return self._ids.setdefault(text, len(self._ids))

    def columns(self, prefix: str) -> Columns:
        """Return the columns `<prefix>_text`, `<prefix>_at` and, for lower case, `<prefix>_low`, `…_low_at`."""
        text, at = _joined(self._ids)
        low, low_at = _joined(name.lower() for name in self._ids)
        return {f"{prefix}_text": text, f"{prefix}_at": at, f"{prefix}_low": low, f"{prefix}_low_at": low_at}


class Strings:
    """Reads StringTable's columns."""

    def __init__(self, columns: Columns, prefix: str) -> None:
        self._text, self._at = columns[f"{prefix}_text"], columns[f"{prefix}_at"]
        self._low, self._low_at = columns[f"{prefix}_low"], columns[f"{prefix}_low_at"]

    def __len__(self) -> int:
        return max(0, self._at.size - 1)

    def __getitem__(self, number: int) -> str:
        return self.raw(number).decode()

    def raw(self, number: int) -> bytes:
        """Return the UTF-8 bytes of one string."""
        return bytes(self._text[self._at[number] : self._at[number + 1] - 1])

    def containing(self, part: str) -> NDArray[np.bool_]:
        """Return a mask over all strings: which contain `part`, ignoring case."""
        mask = np.zeros(len(self), np.bool_)
        needle = np.frombuffer(part.lower().encode(), np.uint8)
        if needle.size == 0:
            return ~mask
        starts = _positions(self._low, needle)
        mask[np.searchsorted(self._low_at, starts, "right") - 1] = True
        return mask


def _joined(names: Iterable[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    encoded = [name.encode() for name in names]
    lengths = np.fromiter((len(e) + 1 for e in encoded), np.int64, len(encoded))
    text = np.frombuffer(_SEPARATOR.join([*encoded, b""]), np.uint8)
    return text, np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])


def _positions(text: NDArray[np.uint8], needle: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return where `needle` starts in `text`: candidates by its rarest byte, filtered byte by byte."""
    last = text.size - needle.size + 1
    if last <= 0:
        return np.zeros(0, np.int64)
    sample = np.bincount(text[:: max(1, text.size // 65536)], minlength=256)
    order = np.argsort(sample[needle], kind="stable")
    found = np.flatnonzero(text[order[0] : last + order[0]] == needle[order[0]])
    for place in order[1:]:
        if not found.size:
            break
        found = found[text[found + place] == needle[place]]
    return found
