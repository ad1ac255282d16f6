"""Reduced precision on TensorRT 11, which has no flags for it: written into the graph before it is parsed."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.filesystem.temporary import temporary_folder
from layerwise._tool.backends.runner import Loadable
from layerwise._tool.backends.specs import FeedSpec
from layerwise._tool.backends.torch_bridge import is_tensor, to_array
from layerwise._tool.backends.trt.building.config import in_graph, reduces
from layerwise._tool.backends.trt.capabilities import able
from layerwise._tool.backends.trt.inference.late import described
from layerwise._tool.backends.trt.library import tensorrt
from layerwise._tool.backends.trt.options import ConfigOptions, TrtOptions
from layerwise._tool.debugtools.actions import hand_over
from layerwise.backend.base import value_of
from layerwise.backend.trt.calibrator import EMPTY, GraphCalibrator
from layerwise.backend.trt.config import CreateConfig
from layerwise.backend.trt.logger import tell
from layerwise.backend.trt.network import BaseNetworkFromOnnx
from layerwise.backend.trt.postprocess import PostprocessNetwork
from layerwise.common import TensorMetadata
from layerwise.cuda import DeviceView
from layerwise.json import save_json


def network_and_config(network: Any, config: Any) -> tuple[Any, Any, Any]:
    """Builder, network and config of loaders or of what they gave.

    On TensorRT 11 the precision that a CreateConfig asks for goes into the graph of a BaseNetworkFromOnnx loader, also
    of one whose network is changed by loaders of ours.
    """
    source, changes = _source(network)
    if (
        isinstance(source, BaseNetworkFromOnnx)
        and isinstance(config, CreateConfig)
        and not able(tensorrt(), "fp16_flag")
    ):
        made = _lowered(source, config)
        for change in changes:
            change(network=made[1])
        config = config.without_precision()
    else:
        made = value_of(network)
    builder, definition = made[:2]
    return builder, definition, config(builder, definition) if callable(config) else config


def _source(network: Any) -> tuple[Any, list[Callable[..., Any]]]:
    """The loader that a network comes from, and what is done to the network after that."""
    changes: list[Callable[..., Any]] = []
    while isinstance(network, PostprocessNetwork):
        changes.insert(0, network.func)
        network = network.network
    return network, changes


def _lowered(network: BaseNetworkFromOnnx, config: CreateConfig) -> Any:
    hand_over()
    model, options = network.model(), TrtOptions(config=config.options)
    if not reduces(options):
        return network.parse(model)
    with (
        _calibrated(config.options, config.calibrator, model) as wanted,
        in_graph(tensorrt(), model, TrtOptions(config=wanted), tell) as lowered,
    ):
        return network.parse(lowered)


@contextmanager
def _calibrated(options: ConfigOptions, calibrator: Any, model: Loadable) -> Iterator[ConfigOptions]:
    """The options with the batches of a calibrator in a file, which is gone when the context ends."""
    if not options.int8 or not isinstance(calibrator, GraphCalibrator):
        yield options
        return
    with temporary_folder() as folder:
        calibrator.set_input_metadata(TensorMetadata.from_infos(described(model)[0]))
        cached = calibrator.cache is not None and Path(calibrator.cache).is_file()
        batches = [] if cached else [{k: _array(v) for k, v in feed.items()} for feed in calibrator.data_loader]
        if not cached and not batches:
            raise UsageError(EMPTY)
        feeds = None
        if batches:
            save_json(batches, folder / "batches.json")
            feeds = FeedSpec(files=[str(folder / "batches.json")])
        yield msgspec.structs.replace(options, calibration=feeds, calibration_cache=calibrator.cache)


def _array(value: Any) -> Any:
    if isinstance(value, int):
        raise UsageError("calibration on TensorRT 11 needs arrays or DeviceViews, not addresses on the device")
    if is_tensor(value):
        return to_array(value)
    return value.numpy() if isinstance(value, DeviceView) else value
