"""INT8 calibration on TensorRT 10 with a script's own data."""

import copy
import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.torch_bridge import is_tensor, to_array
from layerwise._tool.backends.trt.building.calibration import Batches, make_calibrator
from layerwise._tool.backends.trt.capabilities import able, lacks
from layerwise._tool.backends.trt.inference.engine import NUMPY_NAMES
from layerwise._tool.backends.trt.library import tensorrt
from layerwise._tool.backends.trt.options import ConfigOptions
from layerwise.backend.base.util import check_inputs
from layerwise.common import TensorMetadata
from layerwise.cuda import DeviceView
from layerwise.datatype import DataType
from layerwise.logger import G_LOGGER
from layerwise.util import make_repr
from layerwise.util.files import is_file_like, load_file, save_file

__all__ = ["Calibrator"]

EMPTY = "the calibration data is empty; a generator can be used only once"


@dataclass
class GraphCalibrator:
    """What TensorRT 11 calibrates with: onnxruntime measures, and the graph gets the scales."""

    data_loader: Iterable[Mapping[str, Any]]
    cache: str | None
    batch_size: int = 1
    is_polygraphy_calibrator: ClassVar[bool] = True

    def set_input_metadata(self, metadata: TensorMetadata) -> None:
        """Tell the data loader the names, types and shapes of the inputs."""
        _tell_loader(self.data_loader, metadata)

    def get_batch_size(self) -> int:
        """How many samples a batch is said to have."""
        return self.batch_size

    def free(self) -> None:
        """Nothing is held."""

    def __enter__(self) -> "GraphCalibrator":
        return self

    def __exit__(self, *error: object) -> None:
        self.free()


class _Batches(Batches):
    """The batches of a data loader, which may also be on the device already: views, or addresses as int.

    num_batches: how many were asked for since `reset`. cache_contents: the cache as it was last read or written.
    """

    def __init__(self, loader: Iterable[Mapping[str, Any]], cache: Any) -> None:
        self.file = cache if is_file_like(cache) else None
        super().__init__(iter(()), Path(cache) if cache is not None and self.file is None else None)
        self.loader = loader
        self.input_metadata: TensorMetadata | None = None
        self.reset()

    def reset(self) -> None:
        """Begin again at the first batch; a generator cannot."""
        self._feeds, self.num_batches = self._each(), 0
        self.cache_contents: bytes | None = None

    def _each(self) -> Iterator[dict[str, Any]]:
        for feed in self.loader:
            self.num_batches += 1
            if self.input_metadata is not None and set(self.input_metadata) <= set(feed):
                check_inputs(feed, self.input_metadata)
            yield dict(feed)

    def next(self, names: list[str]) -> list[int] | None:
        """As `Batches.next`; no batch at all, or one that lacks an input, is a UsageError in `error`."""
        found = super().next(names)
        if isinstance(self.error, KeyError):
            self.error = UsageError(f"the calibration data has no input {shown(str(self.error), 120)}")
        elif found is None and not self.num_batches and self.error is None:
            self.error = UsageError(EMPTY)
        if found is None:
            self.free()
        return found

    def read(self) -> bytes | None:
        if self.cache_contents is None:
            found = load_file(self.file) if self.file is not None and self.file.readable() else super().read()
            self.cache_contents = found or None
        return self.cache_contents

    def write(self, cache: Any) -> None:
        self.cache_contents = bytes(memoryview(cache))
        if self.file is not None and self.file.writable():
            save_file(self.cache_contents, self.file)
        elif self.file is None:
            super().write(cache)

    def set_input_metadata(self, input_metadata: TensorMetadata) -> None:
        """Tell the data loader the names, types and shapes of the inputs, which batches are checked against."""
        self.input_metadata = _tell_loader(self.loader, input_metadata)

    def free(self) -> None:
        """Give the memory on the device back."""
        for buffer in self._buffers.values():
            buffer.close()

    @property
    def device_buffers(self) -> dict[str, Any]:
        """Input name -> its memory on the device, of `allocated_nbytes` bytes."""
        return {name: SimpleNamespace(allocated_nbytes=buffer.size) for name, buffer in self._buffers.items()}

    def _put(self, name: str, array: Any) -> int:
        if isinstance(array, int):
            return array
        if isinstance(array, DeviceView):
            return int(array.ptr)
        return super()._put(name, to_array(array) if is_tensor(array) else array)


def _tell_loader(loader: Any, metadata: TensorMetadata) -> TensorMetadata:
    """Types that TensorRT does not calibrate with are FP32 in what the loader is told."""
    told = copy.deepcopy(metadata)
    for name, each in told.items():
        if each.dtype not in (DataType.FLOAT32, DataType.INT32, DataType.INT64, DataType.BOOL):
            G_LOGGER.warning(f"TensorRT takes calibration inputs in float32: '{shown(name, 120)}' is {each.dtype}")
            each.dtype = DataType.FLOAT32
    if hasattr(loader, "__dict__"):
        loader.input_metadata = told
    return told


def Calibrator(
    data_loader: Iterable[Mapping[str, Any]],
    cache: str | None = None,
    BaseClass: type | None = None,
    batch_size: int | None = None,
    quantile: float | None = None,
    regression_cutoff: float | None = None,
    algo: Any = None,
) -> Any:
    """A calibrator over batches: dicts of arrays, DeviceViews, or addresses on the device (int).

    cache: a file, read where it exists and written otherwise. BaseClass: IInt8EntropyCalibrator2 by default.
    batch_size: what TensorRT is told of the batches, 1 by default. quantile and regression_cutoff: of the legacy one.
    TensorRT 11 has no calibrators: there the graph is quantised (see CreateConfig), addresses and base classes are a
    UsageError.
    """
    trt = tensorrt()
    if not able(trt, "calibrators"):
        if BaseClass is not None or algo is not None:
            raise UsageError(lacks(trt, "calibrators"))
        return GraphCalibrator(data_loader, cache, batch_size or 1)
    batches = _Batches(data_loader, cache)
    name = BaseClass.__name__ if BaseClass else "IInt8EntropyCalibrator2"
    options = ConfigOptions(quantile=quantile, regression_cutoff=regression_cutoff)
    calibrator = make_calibrator(trt, name, batches, options)
    size = batch_size or 1
    vars(calibrator).update(
        data_loader=data_loader, batch_size=size, is_polygraphy_calibrator=True, make_func=Calibrator,
        reset=batches.reset, set_input_metadata=batches.set_input_metadata, free=batches.free,
        get_batch_size=lambda: size,
    )  # fmt: skip
    if algo is not None:
        calibrator.get_algorithm = lambda: algo
    told = make_repr(
        "Calibrator", data_loader, cache=cache, BaseClass=BaseClass, batch_size=batch_size, quantile=quantile,
        regression_cutoff=regression_cutoff, algo=algo,
    )[0]  # fmt: skip
    cls: Any = type(calibrator)  # made for this one
    cls.__enter__, cls.__exit__ = lambda self: self, lambda self, *error: batches.free()
    cls.__repr__ = lambda self: told
    for attribute in ("num_batches", "cache_contents", "input_metadata", "device_buffers"):
        setattr(cls, attribute, property(functools.partial(_of, batches, attribute)))
    return calibrator


def _of(batches: _Batches, attribute: str, calibrator: Any) -> Any:
    return getattr(batches, attribute)


def calibrate_with(calibrator: Any, network: Any, config: Any, profile: Any) -> None:
    """Give a builder config this calibrator, told what the inputs look like in its first profile."""
    if not config.set_calibration_profile(profile):
        raise LayerwiseError("TensorRT does not take the first profile for calibration")
    metadata = TensorMetadata()
    for tensor in (network.get_input(at) for at in range(network.num_inputs)):
        shape = tuple(tensor.shape)
        shape = tuple(profile.get_shape(tensor.name)[1]) if -1 in shape else shape
        metadata.add(tensor.name, NUMPY_NAMES[tensor.dtype.name], shape)
    if hasattr(calibrator, "set_input_metadata"):
        calibrator.set_input_metadata(metadata)
    config.int8_calibrator = calibrator
