"""A dict that shares its entries with the version it was copied from: a copy costs only its changes."""

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")
V = TypeVar("V")
_GONE: Any = object()
_UNKNOWN: Any = object()
_WORTH_SHARING = 8  # one that differs in more than an eighth of its entries is copied completely


class Layered(MutableMapping[str, V], Generic[V]):
    """Entries that were set or deleted here, on top of a dict that others share and nobody changes."""

    def __init__(self, base: dict[str, V]) -> None:
        self._base = base
        self._own: dict[str, V] = {}

    def copy(self) -> "Layered[V]":
        """Return an independent table with the same entries."""
        if len(self._own) * _WORTH_SHARING > len(self._base):
            return Layered(dict(self))
        other = Layered(self._base)
        other._own = dict(self._own)
        return other

    @overload
    def get(self, key: str, /) -> V | None: ...

    @overload
    def get(self, key: str, /, default: T) -> V | T: ...

    def get(self, key: str, /, default: Any = None) -> Any:
        found = self._own.get(key, _UNKNOWN) if self._own else _UNKNOWN
        if found is _UNKNOWN:
            return self._base.get(key, default)
        return default if found is _GONE else found

    def __getitem__(self, key: str) -> V:
        found: V = self.get(key, _GONE)
        if found is _GONE:
            raise KeyError(key)
        return found

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self.get(key, _GONE) is not _GONE

    def __setitem__(self, key: str, value: V) -> None:
        self._own[key] = value

    def __delitem__(self, key: str) -> None:
        if key not in self:
            raise KeyError(key)
        self._own[key] = _GONE

    def __iter__(self) -> Iterator[str]:
        own: Mapping[str, Any] = self._own
        yield from (key for key in self._base if own.get(key) is not _GONE)
        yield from (key for key, value in own.items() if value is not _GONE and key not in self._base)

    def __len__(self) -> int:
        gone = sum(value is _GONE and key in self._base for key, value in self._own.items())
        return len(self._base) - gone + sum(v is not _GONE and k not in self._base for k, v in self._own.items())
