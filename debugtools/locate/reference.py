"""Where the reference's tensors come from: its own run, its weights, or a file."""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from numpy.typing import NDArray

from layerwise._tool.backends.errors import LayerwiseError, MissingDependency
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.observing.store import ArrayStore

Array = NDArray[Any]


class Reference:
    """Gives tensors by the comparison's names; one that was given stays until it is dropped.

    stream: makes the tensors `streamed`, in its own order. fetch: gives any other at any time.
    """

    def __init__(
        self,
        stream: Iterator[Mapping[str, Array]],
        streamed: Collection[str],
        fetch: Callable[[str], Array],
        store: ArrayStore,
    ) -> None:
        self._stream, self._streamed, self._fetch, self._store = stream, frozenset(streamed), fetch, store

    def get(self, name: str) -> Array:
        """Return a tensor, the stream gone as far as it takes. LayerwiseError if the reference fails before."""
        if name not in self._store and name not in self._streamed:
            self._store.put(name, self._fetch(name))
        while name not in self._store:
            self._go_on(name)
        return self._store.get(name)

    def _go_on(self, name: str) -> None:
        try:
            made = next(self._stream, None)
        except MissingDependency:
            raise
        except LayerwiseError as error:
            raise LayerwiseError(f"the reference fails before {shown(name, 120)!r}: {error}") from None
        if made is None:
            raise LayerwiseError(f"the reference does not give {shown(name, 120)!r}")
        for found, array in made.items():
            if found in self._streamed:
                self._store.put(found, array)

    def drop(self, name: str) -> None:
        """Nobody needs a tensor any more."""
        self._store.drop(name)
