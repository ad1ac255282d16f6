"""Feed dicts for inference: synthetic ones, and those of files."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from layerwise._tool.backends.feeds.files import load_feeds
from layerwise._tool.backends.feeds.sources import make_feeds
from layerwise._tool.backends.formats.json_arrays import as_array
from layerwise._tool.backends.results.inference import Stored
from layerwise._tool.backends.specs import FeedSpec
from layerwise._tool.backends.tensors import TensorInfo
from layerwise.common import TensorMetadata
from layerwise.comparator.feeding import DataLoaderCache, check_feed_dict, coerce_buffer, coerce_feed_dict
from layerwise.constants import DEFAULT_SEED
from layerwise.datatype import DataType
from layerwise.datatype.numpy import floor_name
from layerwise.json.iterations import iterate_from_files, iterate_json_list
from layerwise.logger import G_LOGGER, LogMode
from layerwise.mod.importer import lazy_import
from layerwise.util import (
    array,
    contains_wildcard,
    default,
    find_str_in_iterable,
    is_inf,
    is_shape_dynamic,
    is_valid_shape_override,
    make_repr,
    match_keys,
)

__all__ = [
    "ArraySampler", "DataLoader", "DataLoaderCache", "StreamingDataLoader", "check_feed_dict", "coerce_buffer",
    "coerce_feed_dict",
]  # fmt: skip

torch = lazy_import("torch>=1.13.0")
Range = tuple[float, float]
_MODULES = ("numpy", "torch")


class ArraySampler:
    """Random arrays of numpy or torch. PolygraphyException for another module."""

    def __init__(self, data_loader_backend_module: str, seed: int) -> None:
        _check_module(data_loader_backend_module)
        self.data_loader_backend_module = data_loader_backend_module
        self.rng: Any = None
        if data_loader_backend_module == "numpy":
            self.rng = np.random.RandomState(seed)
        else:
            self.rng = torch.Generator()
            self.rng.manual_seed(seed)

    def sample_integer(self, shape: Sequence[int], dtype: Any, low: int, high: int) -> Any:
        """Integers (or bools), both ends included."""
        kind = self._type(dtype)
        if self.data_loader_backend_module == "numpy":
            return np.array(self.rng.randint(low=low, high=high + 1, size=shape, dtype=kind))
        return torch.randint(low, high + 1, tuple(shape), generator=self.rng, dtype=kind)

    def sample_float(self, shape: Sequence[int], dtype: Any, fmin: float, fmax: float) -> Any:
        """Floats; of torch from 0 to 1, whatever the range is."""
        kind = self._type(dtype)
        if self.data_loader_backend_module != "numpy":
            return torch.rand(tuple(shape), generator=self.rng, dtype=kind)
        scale, shift = (fmin, 0.0) if is_inf(fmin) else (fmax - fmin, fmin)
        scale = fmax if is_inf(fmax) else scale
        with np.errstate(all="ignore"):
            return np.array((self.rng.random_sample(size=shape) * scale + shift).astype(kind))

    def constant_array(self, shape: Sequence[int], dtype: Any) -> Any:
        """An array of the numbers in `shape`."""
        make = np.array if self.data_loader_backend_module == "numpy" else torch.tensor
        return make(shape, dtype=self._type(dtype))

    def _type(self, dtype: Any) -> Any:
        module = self.data_loader_backend_module
        return None if dtype is None else DataType.to_dtype(DataType.from_dtype(dtype), module)


def _check_module(name: str) -> None:
    if name not in _MODULES:
        G_LOGGER.critical(
            f"Invalid `data_loader_backend_module`. Note: got: {name} but valid modules are: {list(_MODULES)}"
        )


class DataLoader:
    """Synthetic feed dicts: seed + iteration, floats in [0, 1], integers 0 or 1, dynamic dimensions 1 or their bound.

    input_metadata: shapes (and types) to use for some inputs, whose names may be patterns. val_range: (low, high), or
    input name -> such a pair ("" for all others). `input_metadata` is set to the model's by `Comparator.run`.
    input_shapes: input name -> its shapes, one per iteration in turn.
    """

    def __init__(
        self,
        seed: int | None = None,
        iterations: int | None = None,
        input_metadata: TensorMetadata | None = None,
        val_range: Range | Mapping[str, Range] | None = None,
        data_loader_backend_module: Literal["numpy", "torch"] | None = None,
        input_shapes: Mapping[str, list[list[int]]] | None = None,
        int_range: Range | None = None,
        float_range: Range | None = None,
    ) -> None:
        self.seed = default(seed, DEFAULT_SEED)
        self.input_shapes = dict(input_shapes or {})
        self.iterations = default(iterations, max(map(len, self.input_shapes.values()), default=1))
        self.user_input_metadata = default(input_metadata, TensorMetadata())
        self.input_metadata: TensorMetadata | None = None
        self.val_range = default(default(val_range, default(float_range, int_range)), (0.0, 1.0))
        self.data_loader_backend_module = default(data_loader_backend_module, "numpy")

    def __repr__(self) -> str:
        return make_repr(
            "DataLoader", seed=self.seed, iterations=self.iterations,
            input_metadata=self.user_input_metadata if len(self.user_input_metadata) else None,
            val_range=self.val_range, data_loader_backend_module=self.data_loader_backend_module,
        )[0]  # fmt: skip

    def __len__(self) -> int:
        return int(self.iterations)

    def __getitem__(self, index: int) -> dict[str, Any]:
        """The inputs of an iteration. IndexError beyond the last."""
        if not 0 <= index < self.iterations:
            raise IndexError(index)
        _check_module(self.data_loader_backend_module)
        if self.input_metadata is None:
            self.input_metadata = self.user_input_metadata
        infos, shapes = self._inputs()
        shapes |= {name: [each[index % len(each)]] for name, each in self.input_shapes.items()}
        spec = FeedSpec(
            seed=self.seed + index, iterations=1, val_range=_ranges(self.val_range), shapes=shapes,
            backend_module=self.data_loader_backend_module,
        )  # fmt: skip
        feed = next(iter(make_feeds(spec, infos, lambda text: G_LOGGER.warning(text, LogMode.ONCE))))
        if self.data_loader_backend_module == "torch":
            return {name: array.to_torch(value) for name, value in feed.items()}
        return dict(feed)

    def _inputs(self) -> tuple[list[TensorInfo], dict[str, list[list[int]]]]:
        """Inputs with types that the user's metadata may change, and the shapes that it gives."""
        assert self.input_metadata is not None
        users, unused = match_keys(list(self.user_input_metadata), list(self.input_metadata))
        for name in unused:
            _tell_unused(name, self.input_metadata)
        infos, shapes = TensorMetadata(), {}
        for name, (own, shape) in self.input_metadata.items():
            user = self.user_input_metadata[users[name]] if name in users else None
            dtype = own if user is None else default(user.dtype, own)
            kind = dtype if users.get(name) == name else DataType.FLOAT32  # values are given by name, not by pattern
            if user is not None and user.shape is not None and _usable(name, user.shape, shape, kind):
                shapes[name] = [list(user.shape)]
            infos.add(name, default(dtype, DataType.FLOAT64), _bounded(shape))
        return [TensorInfo(i.name, floor_name(infos[i.name].dtype), i.shape) for i in infos.infos()], shapes


def _tell_unused(name: str, inputs: TensorMetadata) -> None:
    if contains_wildcard(name):
        text = "none of the matched inputs exist in one or more runners."
    else:
        text = "the input does not exist in one or more runners."
        near = find_str_in_iterable(name, inputs.keys())
        text += f"\nMaybe you meant to set: {near}?" if near else ""
    G_LOGGER.warning(f"Input tensor: {name} | Metadata was provided, but {text}")


def _usable(name: str, wanted: Sequence[Any], shape: Any, dtype: Any) -> bool:
    """Whether a shape that the user gives is fixed and fits, or is the values of a shape tensor of integers."""
    if is_shape_dynamic(wanted):
        G_LOGGER.warning(f"Input tensor: {name} [shape={shape}] | Provided input shape: {wanted} is dynamic, and data "
                         "cannot be generated from it. The default shape is used instead.")  # fmt: skip
        return False
    integral = dtype is None or not hasattr(dtype, "is_integral") or dtype.is_integral
    as_values = integral and shape is not None and list(shape) == [len(wanted)]
    if shape is not None and not is_valid_shape_override(wanted, shape) and not as_values:
        G_LOGGER.warning(f"Input tensor: {name} [shape={shape}] | Cannot use provided custom shape: {wanted} to "
                         "override tensor shape. The default shape is used instead.", LogMode.ONCE)  # fmt: skip
        return False
    return True


def _bounded(shape: Any) -> Any:
    """The smallest shape that the bounds allow, or else the largest."""
    if shape is None or not is_shape_dynamic(shape):
        return shape
    return default(getattr(shape, "min", None), default(getattr(shape, "max", None), shape))


class StreamingDataLoader:
    """Feed dicts of saved inputs (JSON, safetensors, npz, or folders of JSON), one at a time."""

    def __init__(self, paths: str | Sequence[str], allow_dirs: bool = True) -> None:
        self.paths = paths
        self.allow_dirs = allow_dirs

    def __repr__(self) -> str:
        return make_repr("StreamingDataLoader", self.paths, allow_dirs=self.allow_dirs)[0]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iterate_from_files(self.paths, _feeds_of, allow_dirs=self.allow_dirs)


def _feeds_of(path: str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
    if Path(path).suffix not in (".safetensors", ".npz"):
        yield from iterate_json_list(str(path), description="input data")
        return
    for feed in load_feeds(path):
        yield {name: value.array() if isinstance(value, Stored) else as_array(value) for name, value in feed.items()}


def _ranges(given: Any) -> dict[str, tuple[float, float]]:
    ranges = given if isinstance(given, Mapping) else {"": given}
    return {name: (float(default(low, 0.0)), float(default(high, 1.0))) for name, (low, high) in ranges.items()}
