"""Names, types and shapes of tensors; arrays whose memory is laid out otherwise than their shape says."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from layerwise._tool.backends.tensors import TensorInfo, to_numpy
from layerwise.common.interface import TypedDict
from layerwise.datatype import DataType
from layerwise.datatype.numpy import floor_name
from layerwise.json.serde import Decoder, Encoder, add_json_methods
from layerwise.util import array
from layerwise.util.text import make_repr

__all__ = ["BoundedShape", "FormattedArray", "MetadataTuple", "TensorMetadata"]


class BoundedShape(list[Any]):
    """A shape whose dynamic dimensions (None, negative, or a name) may have bounds."""

    def __init__(
        self, shape: Sequence[Any], min: Sequence[int] | None = None, max: Sequence[int] | None = None
    ) -> None:
        super().__init__(shape)
        self.min = min
        self.max = max

    def __repr__(self) -> str:
        return f"BoundedShape({list(self)}, min={self.min}, max={self.max})"


class MetadataTuple:
    """One tensor: dtype (a DataType, whatever it is set to; None if unknown) and shape (None if unknown)."""

    def __init__(self, dtype: Any, shape: BoundedShape | None, docstring: str | None) -> None:
        self.dtype = dtype
        self.shape = shape
        self.docstring = docstring

    @property
    def dtype(self) -> Any:
        """The DataType."""
        return self._dtype

    @dtype.setter
    def dtype(self, new: Any) -> None:
        self._dtype = None if new is None else DataType.from_dtype(new)

    def __iter__(self) -> Iterator[Any]:
        return iter((self.dtype, self.shape))

    def __eq__(self, other: Any) -> bool:
        return bool(self.shape == other.shape and self.dtype == other.dtype)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"MetadataTuple({self.dtype}, {self.shape}, {self.docstring})"

    def __str__(self) -> str:
        items = [f"dtype={self.dtype}"] if self.dtype is not None else []
        items += [f"shape={tuple(self.shape)}"] if self.shape is not None else []
        items += [self.docstring] if self.docstring else []
        return f"[{', '.join(items)}]" if items else ""


class TensorMetadata(TypedDict(lambda: str, lambda: MetadataTuple)):  # type: ignore[misc]
    """Tensor name -> dtype and shape, in order."""

    @staticmethod
    def from_feed_dict(feed_dict: Mapping[str, Any]) -> "TensorMetadata":
        """The metadata of arrays."""
        metadata = TensorMetadata()
        for name, each in feed_dict.items():
            metadata.add(name, array.dtype(each), array.shape(each))
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
            TensorInfo(name, floor_name(m.dtype) if m.dtype is not None else "float32", _dims(m.shape))
            for name, m in self.items()
        ]

    @staticmethod
    def from_infos(infos: Sequence[TensorInfo]) -> "TensorMetadata":
        """From what a runner knows of its inputs."""
        metadata = TensorMetadata()
        for info in infos:
            metadata.add(info.name, DataType.STRING if info.dtype == "string" else to_numpy(info.dtype), info.shape)
        return metadata

    def __repr__(self) -> str:
        text = "TensorMetadata()"
        for name, each in self.items():
            bounds = {"min_shape": each.shape.min, "max_shape": each.shape.max} if each.shape is not None else {}
            shape = None if each.shape is None else list(each.shape)
            text += make_repr(".add", name, each.dtype, shape, **bounds, docstring=each.docstring)[0]
        return text

    def __str__(self) -> str:
        return "{" + ",\n ".join(f"{name} {metadata}".strip() for name, metadata in self.items()) + "}"


@add_json_methods("formatted array")
class FormattedArray:
    """An array whose memory is laid out in another way than its shape says, such as TensorRT's vectorised formats.

    shape: the tensor's shape, whatever the array's is.
    """

    def __init__(self, array: Any, shape: Sequence[int]) -> None:
        self.array = array
        self.shape = shape


@Encoder.register(FormattedArray)
def _encode(formatted: FormattedArray) -> dict[str, Any]:
    return {"array": formatted.array, "shape": formatted.shape}


@Decoder.register(FormattedArray)
def _decode(fields: dict[str, Any]) -> FormattedArray:
    return FormattedArray(fields["array"], fields["shape"])


def _dims(shape: BoundedShape | None) -> tuple[int | str | None, ...] | None:
    if shape is None:
        return None
    return tuple(None if isinstance(dim, int) and dim < 0 else dim for dim in shape)
