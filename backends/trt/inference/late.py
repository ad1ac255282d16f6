"""Runners whose engine is built for what is fed: for dynamic inputs without a profile, and for parts of a model.

A part, which searches try for one run, is built for the very feed: every size is fixed, and small integers of at most
one dimension, which may be sizes themselves, become constants (TensorRT would have to be told the range of their
values). What the options of the whole model say of inputs, outputs and files is not a part's; nodes that they name and
the part lacks are passed over.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from onnx import numpy_helper

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.feeds.writer import save_feeds
from layerwise._tool.backends.filesystem.temporary import temporary_folder
from layerwise._tool.backends.model.protos import parse_model, set_shape
from layerwise._tool.backends.reference.evaluate import tensor_infos
from layerwise._tool.backends.results.inference import IterationResult
from layerwise._tool.backends.runner import Loadable, RunnerBase, check_names
from layerwise._tool.backends.specs import FeedSpec, RunnerSpec
from layerwise._tool.backends.tensors import TensorInfo
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.trt.building.typing import fed_type
from layerwise._tool.backends.trt.inference.runner import TrtRunner, opened_now
from layerwise._tool.backends.trt.options import ProfileSpec, Shapes, TrtOptions, to_dict

_SIZES = 64  # elements; longer lists of integers are data


class FedRunner(RunnerBase):
    """What they share: the runner of the engine that was built last."""

    def __init__(self, spec: RunnerSpec, model: Loadable, options: TrtOptions, name: str) -> None:
        self.spec, self.name = spec, name
        self._model, self._options = model, options
        self.inputs, self.outputs = described(model)
        self._runner: TrtRunner | None = None

    def infer(self, feed: Mapping[str, Array], outputs: Sequence[str] | None = None) -> IterationResult:
        """Run once, as `TrtRunner.infer`; a build is not part of the time."""
        check_names(feed, [info.name for info in self.inputs], outputs or (), self.outputs)
        runner = self.built_for(feed)
        return runner.infer({info.name: feed[info.name] for info in runner.inputs}, outputs)

    def built_for(self, feed: Mapping[str, Array]) -> TrtRunner:
        """The runner of an engine that takes the feed; the one before is closed where it does not."""
        raise NotImplementedError

    def close(self) -> None:
        if self._runner is not None:
            self._runner.close()
            self._runner = None


class LateRunner(FedRunner):
    """Builds with the first feed, and anew, for the whole range so far, with one that does not fit."""

    def __init__(self, spec: RunnerSpec, model: Loadable, options: TrtOptions, name: str) -> None:
        super().__init__(spec, model, options, name)
        self.inputs = [fed_type(info, options.network.tensor_dtypes) for info in self.inputs]
        self._dynamic = [info.name for info in self.inputs if not static(info)]
        self._low: Shapes = {}
        self._high: Shapes = {}

    def built_for(self, feed: Mapping[str, Array]) -> TrtRunner:
        return self._fitting({name: list(np.shape(feed[name])) for name in self._dynamic})

    def _fitting(self, shapes: Shapes) -> TrtRunner:
        if self._runner is not None and all(self._holds(name, shape) for name, shape in shapes.items()):
            return self._runner
        self.close()
        for name, shape in shapes.items():
            if len(self._low.get(name, shape)) != len(shape):
                del self._low[name], self._high[name]
            self._low[name] = list(map(min, self._low.get(name, shape), shape))
            self._high[name] = list(map(max, self._high.get(name, shape), shape))
        profile = ProfileSpec(min=dict(self._low), opt=shapes, max=dict(self._high))
        options = msgspec.structs.replace(self._options, profiles=[profile])
        spec = msgspec.structs.replace(self.spec, options=to_dict(options))
        self._runner = opened_now(spec, ranked(self._model, shapes), options, self.name)
        return self._runner

    def _holds(self, name: str, shape: Sequence[int]) -> bool:
        low, high = self._low[name], self._high[name]
        return len(shape) == len(low) and all(a <= b <= c for a, b, c in zip(low, shape, high, strict=True))

    def notes(self) -> list[str]:
        told = f"No profile is given: the engine is built for the shapes that are fed ({', '.join(self._dynamic[:5])})."
        return [shown(told, 300), *(self._runner.notes() if self._runner else [])]

    @property
    def engine_file(self) -> str | None:  # type: ignore[override]
        """The file of the last engine that was built."""
        return self._runner.engine_file if self._runner else None


def described(model: Loadable) -> tuple[list[TensorInfo], list[str]]:
    """The inputs of an ONNX model, initializers not among them, and the names of its outputs."""
    graph = parse_model(model.read()).graph
    given = {tensor.name for tensor in graph.initializer}
    return tensor_infos([value for value in graph.input if value.name not in given]), [v.name for v in graph.output]


def ranked(model: Loadable, shapes: Shapes) -> Loadable:
    """The model with as many sizes for each input without a shape as are fed: TensorRT takes no unknown ranks."""
    proto = parse_model(model.read())
    bare = [value for value in proto.graph.input if not value.type.tensor_type.HasField("shape")]
    if not any(value.name in shapes for value in bare):
        return model
    for value in bare:
        set_shape(value, [f"{value.name}_{at}" for at in range(len(shapes.get(value.name, ())))])
    return Loadable(data=proto.SerializeToString(), folder=model.data_folder())


def static(info: TensorInfo) -> bool:
    """Whether every size of an input is known."""
    return info.shape is not None and all(isinstance(size, int) for size in info.shape)


def needs_shapes(model: Loadable, options: TrtOptions) -> bool:
    """Whether the model has dynamic inputs of which the options say nothing. False for what is no ONNX model."""
    if options.profiles or options.network.function or options.config.config_script:
        return False
    try:
        inputs, _ = described(model)
    except LayerwiseError:
        return False
    return any(not static(info) and info.name not in options.shapes for info in inputs)


class PartRunner(FedRunner):
    """One part of a model. The engine is that of the last feed's shapes and sizes."""

    _settled: Any = None

    def built_for(self, feed: Mapping[str, Array]) -> TrtRunner:
        key = {name: _settled(np.asarray(array)) for name, array in feed.items()}
        if self._runner is None or key != self._settled:
            self.close()
            with _calibrating(self._options, feed) as options:
                spec = msgspec.structs.replace(self.spec, options=to_dict(options))
                self._runner, self._settled = opened_now(spec, fixed(self._model, feed), options, self.name), key
        return self._runner


def fixed(model: Loadable, feed: Mapping[str, Array]) -> Loadable:
    """The model for this feed: its inputs' shapes as they are fed, those that may be sizes constants."""
    proto = parse_model(model.read())
    inputs = list(proto.graph.input)
    del proto.graph.input[:]
    for value in inputs:
        array = feed.get(value.name)
        if array is not None and _may_be_sizes(array):
            proto.graph.initializer.append(numpy_helper.from_array(np.asarray(array, order="C"), value.name))
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
def _calibrated_on(options: TrtOptions, feed: Mapping[str, Array]) -> Iterator[TrtOptions]:
    with temporary_folder() as folder:
        path = folder / "feed.safetensors"
        save_feeds(path, [{name: array for name, array in feed.items() if not _may_be_sizes(array)}])
        config = msgspec.structs.replace(
            options.config, calibration=FeedSpec(files=[str(path)]), calibration_cache=None
        )  # fmt: skip
        yield msgspec.structs.replace(options, config=config)
