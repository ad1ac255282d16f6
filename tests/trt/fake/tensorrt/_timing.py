"""ITimingCache: a JSON table from a layer's key to the tactic chosen and its time; editable as in 10.9 and later."""

import hashlib
import json
import math
from typing import Any

from ._arguments import CLASSES
from ._classes import behaves, new
from ._values import host_memory

MAGIC = b"LWFAKECACHE"
CANDIDATES = 3


def tactic_of(key: str, candidate: int) -> int:
    """The 64-bit hash of one candidate implementation of a layer; faults make the last candidate bad."""
    return int(hashlib.sha256(f"{key} {candidate}".encode()).hexdigest()[:16], 16)


@behaves("TimingCacheKey")
class _Key:
    _text: str

    @staticmethod
    def parse(text: str) -> Any:
        if len(text) != 34:
            raise ValueError("The text should have exactly 34 characters.")
        if text[:2].lower() != "0x":
            raise ValueError("The text should start with prefix `0x` or `0X`.")
        if set(text[2:].lower()) - set("0123456789abcdef"):
            raise ValueError("The text has invalid content.")
        return new("TimingCacheKey", _text=text.lower())

    def __str__(self) -> str:
        return self._text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CLASSES["TimingCacheKey"]) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)


@behaves("TimingCacheValue")
class _Value:
    def _init(self, tactic: int, milliseconds: float) -> None:
        self._values.update(tacticHash=tactic, timingMSec=milliseconds)


@behaves("ITimingCache")
class _Cache:
    _entries: dict[str, list[Any]]

    def serialize(self) -> Any:
        return host_memory(MAGIC + json.dumps(self._entries, sort_keys=True).encode())

    def combine(self, input_cache: Any, ignore_mismatch: bool) -> bool:
        self._entries |= {key: list(value) for key, value in input_cache._entries.items() if key not in self._entries}
        return True

    def reset(self) -> bool:
        self._entries.clear()
        return True

    def queryKeys(self) -> list[Any]:
        return [new("TimingCacheKey", _text=key) for key in self._entries]

    def query(self, key: Any) -> Any:
        return CLASSES["TimingCacheValue"](*self._entries.get(key._text, [0, math.nan]))

    def update(self, key: Any, value: Any) -> bool:
        if key._text not in self._entries:
            return False
        if math.isnan(value.timingMSec):
            del self._entries[key._text]
        else:
            self._entries[key._text] = [value.tacticHash, value.timingMSec]
        return True


def timing_cache(data: bytes) -> Any:
    """A cache of serialised bytes; an empty one of none; None where the bytes are no cache."""
    if not data:
        return new("ITimingCache", _entries={})
    if not data.startswith(MAGIC):
        return None
    return new("ITimingCache", _entries=json.loads(data[len(MAGIC) :]))
