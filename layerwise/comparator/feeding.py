"""Feed dicts fitted to runners: types cast, shapes matched, and made once for several runners."""

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np

from layerwise._tool.backends.text import shown
from layerwise.common import TensorMetadata
from layerwise.comparator.struct import RunResults
from layerwise.datatype import DataType, DataTypeEntry
from layerwise.exception import PolygraphyException
from layerwise.func import constantmethod
from layerwise.logger import G_LOGGER
from layerwise.util import array, find_str_in_iterable, is_valid_shape_override, try_match_shape


def coerce_buffer(buffer: Any, name: str, dtype: Any, shape: Any) -> Any:
    """An input in the type and shape that a runner takes: cast, permuted and reshaped, with warnings.

    PolygraphyException if that cannot be done.
    """
    buffer = _typed(buffer, dtype)
    if (there := array.dtype(buffer)) != dtype:
        G_LOGGER.warning(
            f"Input tensor: {name} | Buffer dtype ({there}) does not match expected input dtype ({dtype}), attempting "
            "to cast."
        )
        _warn_of_range(buffer, dtype)
        buffer = array.cast(buffer, dtype)
    if not _fits(buffer, shape):
        G_LOGGER.warning(
            f"Input tensor: {name} | Buffer shape ({array.shape(buffer)}) does not match expected input shape "
            f"({shape}). Attempting to transpose/reshape."
        )
        buffer = try_match_shape(buffer, shape)
    if array.dtype(buffer) != dtype or not _fits(buffer, shape):
        G_LOGGER.critical(
            f"Input tensor: {name} | Cannot reuse input data due to mismatch in shape or data type.\nNote: Provided "
            f"input: [dtype={array.dtype(buffer)}, shape={array.shape(buffer)}], Requested input: [dtype={dtype}, "
            f"shape={shape}]"
        )
    return buffer


def _fits(buffer: Any, shape: Any) -> bool:
    return shape is None or is_valid_shape_override(array.shape(buffer), shape)


def _typed(buffer: Any, dtype: Any) -> Any:
    """Polygraphy's files hold bfloat16 and FP8 as raw bytes: they are what the input is."""
    if not isinstance(buffer, np.ndarray) or buffer.dtype.type is not np.void or not isinstance(dtype, DataTypeEntry):
        return buffer
    wanted = DataType.to_dtype(dtype, "numpy")
    return buffer.view(wanted) if wanted.itemsize == buffer.dtype.itemsize and wanted.kind == "V" else buffer


def _warn_of_range(buffer: Any, dtype: Any) -> None:
    if not isinstance(dtype, DataTypeEntry) or not (dtype.is_integral or dtype.is_floating):
        return
    kind = DataType.to_dtype(dtype, "numpy")
    info: Any = ml_dtypes.iinfo(kind) if dtype.is_integral else ml_dtypes.finfo(kind)  # type: ignore[no-untyped-call]
    with contextlib.suppress(TypeError), np.errstate(all="ignore"):
        if array.any((buffer < info.min) | (buffer > info.max)):
            G_LOGGER.warning(f"Some values in this input are out of range of {dtype}. Unexpected behavior may ensue!")


def coerce_feed_dict(
    feed_dict: Mapping[str, Any], input_metadata: TensorMetadata, fallback: Callable[[str], Any] | None = None
) -> dict[str, Any]:
    """The inputs of a runner, taken from a feed dict by name, by a name that is alike, or by place.

    fallback: gives what cannot be taken from it. PolygraphyException where there is neither.
    """
    fitted: dict[str, Any] = {}
    for index, (name, (dtype, shape)) in enumerate(input_metadata.items()):
        try:
            found = find_str_in_iterable(name, feed_dict.keys(), index)
            if found is None:
                G_LOGGER.critical(f"Input tensor: {name} | Does not exist in the provided input data.")
            if found != name:
                G_LOGGER.warning(
                    f"Input tensor: {name} | Buffer name ({found}) does not match expected input name ({name})."
                )
            fitted[name] = coerce_buffer(feed_dict[found], name, dtype, shape)
        except PolygraphyException:
            if fallback is None:
                raise
            fitted[name] = _fallen_back(name, fallback)
    return fitted


def _fallen_back(name: str, fallback: Callable[[str], Any]) -> Any:
    G_LOGGER.warning(
        f"Could not use the provided buffer for input: {name}. Attempting to reload it from the data loader"
    )
    try:
        return fallback(name)
    except Exception as error:
        G_LOGGER.critical(f"Input tensor: {name} | Could not use the provided input and could not reload a replacement "
                          f"from the data loader: {shown(str(error), 200)}")  # fmt: skip


def check_feed_dict(obj: Any, source: str = "data loader") -> None:
    """PolygraphyException for what is no dict of input name -> array."""
    try:
        if not isinstance(obj, RunResults) and all(isinstance(name, str) for name, _ in obj.items()):
            return
    except (AttributeError, TypeError, ValueError):
        pass
    hint = " These are outputs: make inputs of them with `data merge`." if isinstance(obj, RunResults) else ""
    G_LOGGER.critical(
        f"The {source} returned an object that cannot be recognized as a feed_dict (input name -> array): it is a "
        f"{type(obj).__name__}: {shown(str(obj), 200)}.{hint}"
    )


class DataLoaderCache:
    """The feed dicts of a data loader, which is asked once, fitted to one runner after the other."""

    def __init__(self, data_loader: Any) -> None:
        self.data_loader = data_loader
        self.cache: list[Any] = []

    @constantmethod
    def __len__(self) -> int:
        return len(self.cache)

    @constantmethod
    def __getitem__(self, iteration: int) -> dict[str, Any]:
        if iteration >= len(self.cache):
            raise IndexError(iteration)
        return coerce_feed_dict(
            self.cache[iteration], self.input_metadata, fallback=lambda name: self.data_loader[iteration][name]
        )

    def set_input_metadata(self, input_metadata: TensorMetadata) -> None:
        """What the next runner takes; the data loader is told, and asked for its data the first time."""
        self.input_metadata = input_metadata
        with contextlib.suppress(AttributeError):
            self.data_loader.input_metadata = input_metadata
        if not self.cache:
            self.cache = list(self.data_loader)
            if not self.cache:
                G_LOGGER.warning("Data loader did not yield any input data.")
            else:
                check_feed_dict(self.cache[0])
