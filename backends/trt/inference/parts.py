"""Engines of parts of a model: what searches try, each for one run.

A part is built for the very feed: every size is fixed, and small integers of at most one dimension, which may be
sizes themselves, become constants (TensorRT would have to be told the range of their values). What the options of the
whole model say of inputs, outputs and files is not a part's; nodes that they name and the part lacks are passed over.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from onnx import numpy_helper

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.feeds.sources import save_feeds
from layerwise._tool.backends.filesystem.temporary import temporary_folder
from layerwise._tool.backends.model.protos import parse_model, set_shape
from layerwise._tool.backends.results.inference import IterationResult
from layerwise._tool.backends.runner import Loadable, RunnerBase, check_names
from layerwise._tool.backends.specs import FeedSpec, RunnerSpec
from layerwise._tool.backends.trt.inference.late import described
from layerwise._tool.backends.trt.inference.runner import TrtRunner, opened_now
from layerwise._tool.backends.trt.options import TrtOptions, to_dict

if TYPE_CHECKING:
    from collections.abc import Iterator

_SIZES = 64  # elements; longer lists of integers are data


class PartRunner(RunnerBase):
    """One part of a model. The engine is that of the last feed's shapes and sizes."""

    def __init__(self, spec: RunnerSpec, model: Loadable, options: TrtOptions, name: str) -> None:
        self.spec, self.name = spec, name
        self._model, self._options = model, options
        self.inputs, self.outputs = described(model)
        self._settled: Any = None
        self._runner: TrtRunner | None = None

    def infer(self, feed: Mapping[str, Array], outputs: Sequence[str] | None = None) -> IterationResult:
        """Run once, as `TrtRunner.infer`; a build is not part of the time."""
        check_names(feed, [info.name for info in self.inputs], outputs or (), self.outputs)
        runner = self._built_for(feed)
        return runner.infer({info.name: feed[info.name] for info in runner.inputs}, outputs)

    def _built_for(self, feed: Mapping[str, Array]) -> TrtRunner:
        key = {name: _settled(np.asarray(array)) for name, array in feed.items()}
        if self._runner is None or key != self._settled:
            self.close()
            with _calibrating(self._options, feed) as options:
                spec = msgspec.structs.replace(self.spec, options=to_dict(options))
                self._runner, self._settled = opened_now(spec, fixed(self._model, feed), options, self.name), key
        return self._runner

    def close(self) -> None:
        if self._runner is not None:
            self._runner.close()
            self._runner = None


def fixed(model: Loadable, feed: Mapping[str, Array]) -> Loadable:
    """The model for this feed: its inputs' shapes as they are fed, those that may be sizes constants."""
    proto = parse_model(model.read())
    inputs = list(proto.graph.input)
    del proto.graph.input[:]
    for value in inputs:
        array = feed.get(value.name)
        if array is not None and _may_be_sizes(array):
            proto.graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(array), value.name))
            continue
        if array is not None:
            set_shape(value, array.shape)
        proto.graph.input.append(value)
    return Loadable(data=proto.SerializeToString(), folder=model.data_folder())


def _may_be_sizes(array: Array) -> bool:
    return array.dtype.kind in "iub" and array.ndim <= 1 and array.size <= _SIZES


def _settled(array: Array) -> Any:
    """What of an input an engine is built for."""
    return array.tolist() if _may_be_sizes(array) else array.shape


def _calibrating(options: TrtOptions, feed: Mapping[str, Array]) -> AbstractContextManager[TrtOptions]:
    """The options with INT8 calibrated on the part's own feed, unless a cache has the ranges."""
    config = options.config
    if not config.int8 or (config.calibration_cache and Path(config.calibration_cache).is_file()):
        return nullcontext(options)
    return _calibrated_on(options, feed)


@contextmanager
def _calibrated_on(options: TrtOptions, feed: Mapping[str, Array]) -> "Iterator[TrtOptions]":
    with temporary_folder() as folder:
        path = folder / "feed.safetensors"
        save_feeds(path, [{name: array for name, array in feed.items() if not _may_be_sizes(array)}])
        config = msgspec.structs.replace(
            options.config, calibration=FeedSpec(files=[str(path)]), calibration_cache=None
        )  # fmt: skip
        yield msgspec.structs.replace(options, config=config)
