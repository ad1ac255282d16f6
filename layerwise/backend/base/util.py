"""Checks of feeds."""

from collections.abc import Mapping
from typing import Any

from layerwise.common import TensorMetadata
from layerwise.logger import G_LOGGER
from layerwise.util import array, check_sequence_contains, is_valid_shape_override


def check_inputs(feed_dict: Mapping[str, Any], input_metadata: TensorMetadata) -> None:
    """PolygraphyException for an input that is missing, unknown, or of another type or shape than the metadata says.

    An int, an address, is not checked.
    """
    check_sequence_contains(feed_dict.keys(), input_metadata.keys(), name="input data", items_name="inputs")
    for name, value in feed_dict.items():
        wanted = input_metadata[name]
        if isinstance(value, int):
            continue
        if (dtype := array.dtype(value)) != wanted.dtype:
            G_LOGGER.critical(
                f"Input tensor: {name} | Received unexpected dtype: {dtype}.\nNote: Expected type: {wanted.dtype}"
            )
        if not is_valid_shape_override(shape := array.shape(value), wanted.shape):
            G_LOGGER.critical(
                f"Input tensor: {name} | Received incompatible shape: {shape}.\nNote: Expected a shape compatible "
                f"with: {wanted.shape}"
            )
