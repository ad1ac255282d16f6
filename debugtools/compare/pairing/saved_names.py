"""Outputs of a file under the names of the comparison's model."""

from collections.abc import Iterator, Mapping
from typing import Any

from numpy.typing import NDArray

from layerwise._tool.backends.results.inference import Stored, StoredOutputs
from layerwise._tool.backends.tensors import dtype_name

Array = NDArray[Any]


class RenamedOutputs(Mapping[str, Array]):
    """Outputs of a file under other names, still read only when asked for."""

    def __init__(self, outputs: Mapping[str, Array], own: Mapping[str, str]) -> None:
        self._outputs, self._own = outputs, own

    def __getitem__(self, name: str) -> Array:
        return self._outputs[self._own[name]]

    def described(self) -> Iterator[tuple[str, str, tuple[int, ...]]]:
        """Name, dtype and shape of each, without reading any."""
        stored = self._outputs.stored if isinstance(self._outputs, StoredOutputs) else self._outputs
        for name, own in self._own.items():
            value = stored[own]
            yield name, value.dtype if isinstance(value, Stored) else dtype_name(value), value.shape

    def __iter__(self) -> Iterator[str]:
        return iter(self._own)

    def __len__(self) -> int:
        return len(self._own)
