"""INT8 calibration with TensorRT 10's calibrators: batches from any feed, the cache in a file."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.feeds.sources import make_feeds
from layerwise._tool.backends.filesystem.files import MOST, read_file, write_named
from layerwise._tool.backends.specs import FeedSpec
from layerwise._tool.backends.tensors import TensorInfo
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.trt.capabilities import able, lacks
from layerwise._tool.backends.trt.inference.engine import NUMPY_NAMES
from layerwise._tool.backends.trt.inference.memory import Buffer, Stream, device_form
from layerwise._tool.backends.trt.options import ConfigOptions

_DEFAULT = "IInt8EntropyCalibrator2"
_LEGACY = "IInt8LegacyCalibrator"


class Batches:
    """Feeds calibration inputs on the device one by one, and reads and writes the cache.

    error: what failed meanwhile, since an exception must not pass through TensorRT.
    """

    def __init__(self, feeds: Iterator[dict[str, Any]], cache: Path | None) -> None:
        self._feeds, self._cache = feeds, cache
        self._stream = Stream()
        self._buffers: dict[str, Buffer] = {}
        self.error: BaseException | None = None

    def next(self, names: list[str]) -> list[int] | None:
        """Return the addresses of the next batch's inputs, None after the last."""
        try:
            feed = next(self._feeds, None)
            return None if feed is None else [self._put(name, feed[name]) for name in names]
        except Exception as error:
            self.error = error
            return None

    def _put(self, name: str, array: Any) -> int:
        data = device_form(array)
        address = self._buffers.setdefault(name, Buffer()).ensure(data.nbytes)
        self._stream.to_device(address, data)
        self._stream.wait()
        return address

    def read(self) -> bytes | None:
        return read_file(self._cache, MOST) if self._cache is not None and self._cache.is_file() else None

    def write(self, cache: Any) -> None:
        try:
            if self._cache is not None:
                write_named(self._cache, bytes(memoryview(cache)))
        except OSError as error:
            self.error = LayerwiseError(f"{shown(str(self._cache))} cannot be written: {error.strerror}")


def calibrated(
    trt: Any, network: Any, config: Any, options: ConfigOptions, profiles: list[Any], tell: Callable[[str], None]
) -> Any:
    """Give a TensorRT 10 builder config its calibrator, which must be kept until the build is over.

    None for a network that has its own quantisation nodes. UsageError for an invalid base class.
    """
    if not able(trt, "calibrators"):
        raise UsageError(lacks(trt, "calibrators"))
    layers = (network.get_layer(at) for at in range(network.num_layers))
    if any(layer.type in (trt.LayerType.QUANTIZE, trt.LayerType.DEQUANTIZE) for layer in layers):
        tell("INT8: the model has quantisation nodes of its own; nothing is calibrated.")
        return None
    name = options.calibrator or _DEFAULT
    if not name.startswith("IInt8") or not hasattr(trt, name):
        raise UsageError(f"--calib-base-cls {shown(name, 80)}: a calibrator such as IInt8MinMaxCalibrator")
    if not (options.calibration and (options.calibration.files or options.calibration.script)) and not _there(options):
        tell("The calibration data is random: give real inputs with --load-inputs or --data-loader-script.")
    if profiles and not config.set_calibration_profile(profiles[0]):
        raise LayerwiseError("TensorRT does not take the first profile for calibration")
    cache = Path(options.calibration_cache) if options.calibration_cache else None
    infos = [_info(network.get_input(i), profiles) for i in range(network.num_inputs)]
    feeds = make_feeds(options.calibration or FeedSpec(), infos, tell)
    config.int8_calibrator = calibrator = make_calibrator(trt, name, Batches(iter(feeds), cache), options)
    source = f" with {shown(str(options.calibration_cache))}" if _there(options) else ""
    tell(f"INT8 is calibrated by TensorRT ({name}){source}.")
    if name != _LEGACY:
        for text in without_effect(options, "quantile", "regression_cutoff"):
            tell(text)
    return calibrator


def without_effect(options: ConfigOptions, *names: str) -> Iterator[str]:
    """Return a remark for each legacy-calibrator option that is given but has no effect."""
    for name in names:
        if getattr(options, name) is not None:
            flag = f"--{name.replace('_', '-')}"
            yield f"{flag} has no effect: it is of TensorRT 10's {_LEGACY} (--calib-base-cls)."


def _there(options: ConfigOptions) -> bool:
    return options.calibration_cache is not None and Path(options.calibration_cache).is_file()


def _info(tensor: Any, profiles: list[Any]) -> TensorInfo:
    """Return an input as calibration feeds it: with the optimum shape of its profile."""
    shape = tuple(tensor.shape)
    if -1 in shape:
        shape = tuple(profiles[0].get_shape(tensor.name)[1])
    return TensorInfo(tensor.name, NUMPY_NAMES[tensor.dtype.name], shape)


def make_calibrator(trt: Any, name: str, batches: Batches, options: ConfigOptions) -> Any:
    """Return a calibrator over `batches` with TensorRT's class `name` as its base."""
    base: Any = getattr(trt, name)

    class Calibrator(base):  # type: ignore[misc]
        @property
        def error(self) -> BaseException | None:
            return batches.error

        def get_batch_size(self) -> int:
            return 1

        def get_batch(self, names: list[str]) -> list[int] | None:
            return batches.next(names)

        def read_calibration_cache(self) -> bytes | None:
            return batches.read()

        def write_calibration_cache(self, cache: Any) -> None:
            batches.write(cache)

    if name == _LEGACY:
        cutoff = options.regression_cutoff
        Calibrator.get_quantile = lambda self: 0.5 if options.quantile is None else options.quantile
        Calibrator.get_regression_cutoff = lambda self: 0.5 if cutoff is None else cutoff
        Calibrator.read_histogram_cache = lambda self, length: None
        Calibrator.write_histogram_cache = lambda self, pointer, length: None
    return Calibrator()
