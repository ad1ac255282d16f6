"""Names, types and shapes of tensors."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from layerwise._tool.backends.tensors import TensorInfo, dtype_name, to_numpy


class BoundedShape(list[Any]):
    """A shape whose dynamic dimensions (None, negative, or a name) may have bounds."""

    def __init__(
        self, shape: Sequence[Any], min: Sequence[int] | None = None, max: Sequence[int] | None = None
    ) -> None:
        super().__init__(shape)
        self.min = min
        self.max = max


class MetadataTuple:
    """One tensor: dtype (a numpy dtype, ml_dtypes' included, or None) and shape (None if unknown)."""

    def __init__(self, dtype: Any, shape: BoundedShape | None, docstring: str | None = None) -> None:
        self.dtype: np.dtype[Any] | None = None if dtype is None else _numpy_type(dtype)
        self.shape = shape
        self.docstring = docstring

    def __iter__(self) -> Iterator[Any]:
        return iter((self.dtype, self.shape))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MetadataTuple) and (self.dtype, self.shape) == (other.dtype, other.shape)

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        items = [f"dtype={dtype_name(self.dtype)}"] if self.dtype is not None else []
        items += [f"shape={tuple(self.shape)}"] if self.shape is not None else []
        items += [self.docstring] if self.docstring else []
        return f"[{', '.join(items)}]" if items else ""


class TensorMetadata(dict[str, MetadataTuple]):
    """Tensor name -> dtype and shape, in order."""

    @staticmethod
    def from_feed_dict(feed_dict: Mapping[str, Any]) -> "TensorMetadata":
        """The metadata of arrays."""
        metadata = TensorMetadata()
        for name, array in feed_dict.items():
            metadata.add(name, array.dtype, array.shape)
        return metadata

    def add(
        self,
        name: str,
        dtype: Any,
        shape: Sequence[Any] | None,
        min_shape: Sequence[int] | None = None,
        max_shape: Sequence[int] | None = None,
        docstring: str | None = None,
    ) -> "TensorMetadata":
        """Add a tensor; returns itself, so that calls can be chained."""
        bounded = None if shape is None else BoundedShape(shape, min_shape, max_shape)
        self[name] = MetadataTuple(dtype, bounded, docstring)
        return self

    def infos(self) -> list[TensorInfo]:
        """The same as the floors below have it."""
        return [
            TensorInfo(name, dtype_name(m.dtype) if m.dtype is not None else "float32", _dims(m.shape))
            for name, m in self.items()
        ]

    @staticmethod
    def from_infos(infos: Sequence[TensorInfo]) -> "TensorMetadata":
        """From what a runner knows of its inputs."""
        metadata = TensorMetadata()
        for info in infos:
            metadata.add(info.name, to_numpy(info.dtype), info.shape)
        return metadata

    def __str__(self) -> str:
        return "{" + ",\n ".join(f"{name} {metadata}".strip() for name, metadata in self.items()) + "}"


def _dims(shape: BoundedShape | None) -> tuple[int | str | None, ...] | None:
    if shape is None:
        return None
    return tuple(None if isinstance(dim, int) and dim < 0 else dim for dim in shape)


def _numpy_type(dtype: Any) -> np.dtype[Any]:
    if isinstance(dtype, str):
        return to_numpy(dtype)
    return np.dtype(str(dtype).removeprefix("torch.")) if type(dtype).__module__ == "torch" else np.dtype(dtype)
