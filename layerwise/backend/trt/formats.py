"""Formats of tensors in engines: channels last, and channels in vectors."""

import math
from typing import Any

import numpy as np

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.trt.library import tensorrt
from layerwise.common import FormattedArray, TensorMetadata
from layerwise.datatype import DataType
from layerwise.util import array


def get_tensor_format(engine: Any, context: Any, name: str) -> Any:
    """The trt.TensorFormat of an input or output in the context's profile."""
    return engine.get_tensor_format(name, context.active_optimization_profile)


def get_hwc_shape_from_chw(shape: Any) -> tuple[int, ...]:
    """The shape with the channels last."""
    *rest, channels, height, width = shape
    return (*rest, height, width, channels)


def get_chw_shape_from_hwc(shape: Any) -> tuple[int, ...]:
    """The shape with the channels before height and width."""
    *rest, height, width, channels = shape
    return (*rest, channels, height, width)


def get_metadata_from_engine(engine: Any, context: Any, mode: Any) -> TensorMetadata:
    """Names, types and shapes of the inputs or of the outputs; with the channels last where the engine has it so."""
    metadata, last = TensorMetadata(), tensorrt().TensorFormat.HWC
    for name in (engine.get_tensor_name(index) for index in range(engine.num_io_tensors)):
        if engine.get_tensor_mode(name) != mode:
            continue
        shape = tuple(engine.get_tensor_shape(name))
        if get_tensor_format(engine, context, name) == last:
            shape = get_hwc_shape_from_chw(shape)
        metadata.add(name, DataType.from_dtype(engine.get_tensor_dtype(name), "tensorrt"), shape)
    return metadata


def _vectors(context: Any, name: str) -> tuple[tuple[int, ...], int]:
    """A tensor's shape, and how many channels are in a vector. UsageError for other formats than such."""
    shape = tuple(context.get_tensor_shape(name))
    if context.engine.get_tensor_vectorized_dim(name) != 1 or len(shape) != 4:
        raise UsageError("Only 4D channel vectorization is supported")
    return shape, int(context.engine.get_tensor_components_per_element(name))


def convert_linear_to_vectorized_format(context: Any, name: str, input_arr: Any) -> FormattedArray:
    """An array of an input as vectors of channels, filled up with zeros."""
    (batch, channels, height, width), size = _vectors(context, name)
    groups = math.ceil(channels / size)
    padded = array.pad(input_arr, [(0, groups * size - channels)], [1])
    grouped = array.reshape(padded, (batch, groups, size, height, width))
    vectors = array.make_contiguous(array.transpose(grouped, (0, 1, 3, 4, 2)))
    return FormattedArray(vectors, shape=[batch, groups, size, height, width])


def convert_vectorized_to_linear_format(context: Any, name: str, raw_array: Any) -> Any:
    """The raw bytes of an output that is vectors of channels as an array of the output's shape."""
    (batch, channels, height, width), size = _vectors(context, name)
    kind = DataType.from_dtype(context.engine.get_tensor_dtype(name), "tensorrt")
    values = array.view(raw_array, kind, (array.nbytes(raw_array) // np.dtype(kind.numpy()).itemsize,))
    groups = math.ceil(channels / size)
    grouped = array.transpose(array.reshape(values, (batch, groups, height, width, size)), (0, 1, 4, 2, 3))
    return array.reshape(grouped, (batch, groups * size, height, width))[:, :channels]
