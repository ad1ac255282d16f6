"""Which tactics TensorRT chose: recorded, saved, and chosen again."""

import json
from collections.abc import Sequence
from typing import Any

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.trt.capabilities import able, lacks
from layerwise._tool.backends.trt.library import tensorrt
from layerwise.backend.trt import tactics
from layerwise.backend.trt.util import fail_unavailable
from layerwise.common.interface import TypedDict
from layerwise.constants import TAB
from layerwise.json import Decoder, Encoder, add_json_methods
from layerwise.logger import G_LOGGER
from layerwise.util import getattr_nested, try_getattr

__all__ = ["Algorithm", "TacticRecorder", "TacticReplayData", "TacticReplayer", "TensorInfo"]


def check_is_instance(obj: Any, cls: Any, name: str) -> None:
    """PolygraphyException for an object of another class."""
    if not isinstance(obj, cls):
        G_LOGGER.critical(f"'{name}' must be an instance of {cls.__name__}, but is: {obj}.")


class TensorInfo:
    """What an algorithm takes or gives: type (trt.DataType), strides, and of vectorised formats which dimension is in
    vectors and how many elements are in one.
    """

    def __init__(
        self, dtype: Any, strides: Sequence[int], vectorized_dim: int | None, components_per_element: int | None
    ) -> None:
        check_is_instance(dtype, tensorrt().DataType, "dtype")
        check_is_instance(strides, Sequence, "strides")
        for value, name in ((vectorized_dim, "vectorized_dim"), (components_per_element, "components_per_element")):
            if value is not None:
                check_is_instance(value, int, name)
        self.dtype = dtype
        self.strides = tuple(strides)
        self.vectorized_dim = vectorized_dim
        self.components_per_element = components_per_element

    @staticmethod
    def from_trt(io_info: Any) -> "TensorInfo":
        """From a trt.IAlgorithmIOInfo."""
        vectors = (try_getattr(io_info, name) for name in ("vectorized_dim", "components_per_element"))
        return TensorInfo(io_info.dtype, tuple(io_info.strides), *vectors)

    def __eq__(self, other: Any) -> bool:
        return bool(vars(self) == vars(other))

    def __hash__(self) -> int:
        return hash((self.dtype, self.strides, self.vectorized_dim, self.components_per_element))

    def __repr__(self) -> str:
        return f"TensorInfo({self.dtype}, {self.strides}, {self.vectorized_dim}, {self.components_per_element})"


class Algorithm:
    """A layer's implementation and tactic, with what they take and give."""

    def __init__(
        self, implementation: int, tactic: int, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]
    ) -> None:
        for name, infos in (("inputs", inputs), ("outputs", outputs)):
            for index, info in enumerate(infos):
                check_is_instance(info, TensorInfo, f"{name}[{index}]")
        self.implementation = implementation
        self.tactic = tactic
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)

    @staticmethod
    def from_trt(context: Any, algorithm: Any) -> "Algorithm":
        """From a trt.IAlgorithmContext and a trt.IAlgorithm."""
        count = context.num_inputs + context.num_outputs
        infos = [TensorInfo.from_trt(algorithm.get_algorithm_io_info(index)) for index in range(count)]
        variant = algorithm.algorithm_variant
        inputs, outputs = infos[: context.num_inputs], infos[context.num_inputs :]
        return Algorithm(variant.implementation, variant.tactic, inputs, outputs)

    def __eq__(self, other: Any) -> bool:
        return bool(vars(self) == vars(other))

    def __hash__(self) -> int:
        return hash((self.implementation, self.tactic, self.inputs, self.outputs))

    def __str__(self) -> str:
        return (
            f"(Implementation: {self.implementation}, Tactic: {self.tactic}) | Inputs: {self.inputs} | Outputs: "
            f"{self.outputs}"
        )


@add_json_methods("tactic replay file")
class TacticReplayData(TypedDict(lambda: str, lambda: Algorithm)):  # type: ignore[misc]
    """Layer -> algorithm."""

    def add(self, name: str, algorithm: Algorithm) -> "TacticReplayData":
        """Add a layer; returns itself, so that calls can be chained."""
        self[name] = algorithm
        return self

    def __str__(self) -> str:
        return "\n".join(f"Layer: {name}\n{TAB}Algorithm: {algorithm}" for name, algorithm in self.items())


def get_base_selector_type() -> Any:
    """A trt.IAlgorithmSelector that leaves the choice to TensorRT. PolygraphyException on TensorRT 11."""
    trt = tensorrt()
    if not hasattr(trt, "IAlgorithmSelector"):
        fail_unavailable("Algorithm selectors (TacticRecorder/TacticReplayer)")

    class BaseSelector(trt.IAlgorithmSelector):  # type: ignore[misc, name-defined]
        def __init__(self, data: Any) -> None:
            trt.IAlgorithmSelector.__init__(self)
            self.data = data if isinstance(data, TacticReplayData) else TacticReplayData()
            self.path = None if isinstance(data, TacticReplayData) else data

        def select_algorithms(self, context: Any, choices: Sequence[Any]) -> list[int]:
            return list(range(len(choices)))

    return BaseSelector


def TacticRecorder(record: Any) -> Any:
    """For CreateConfig: what TensorRT chooses is written to a file, or added to TacticReplayData.

    On TensorRT 10 an algorithm selector and Polygraphy's replay. On 11, for a file only, a record of the editable
    timing cache, written by EngineFromNetwork and its like when the engine is built.
    """
    if isinstance(record, TacticReplayData):
        _need_selectors()
        data, path, made = record, None, tactics.recorder_in_memory(lambda *chosen: _add(data, *chosen))
    else:
        data, path = TacticReplayData(), record
        made = tactics.recorder(record, lambda *chosen: _add(data, *chosen))
    made.data, made.path, made.make_func = data, path, TacticRecorder
    return made


def TacticReplayer(replay: Any) -> Any:
    """For CreateConfig: TensorRT chooses what a file, or TacticReplayData, says.

    BadFile for a file that is none; LayerwiseError when a recorded tactic is not offered, which ends the build, and
    UsageError for Polygraphy's replays on TensorRT 11.
    """
    if isinstance(replay, TacticReplayData):
        _need_selectors()
        made, path = tactics.replayer_in_memory(json.loads(replay.to_json())["replay"]), None
    else:
        made, path = tactics.replayer(replay), replay
    made.path, made.make_func = path, TacticReplayer
    return made


def _need_selectors() -> None:
    if not able(tensorrt(), "algorithm_selector"):
        raise UsageError(lacks(tensorrt(), "algorithm_selector"))


def _add(data: TacticReplayData, name: str, context: Any, algorithm: Any) -> None:
    data.add(name, Algorithm.from_trt(context, algorithm))


@Encoder.register(TensorInfo)
def _encode_info(info: TensorInfo) -> dict[str, Any]:
    return {**vars(info), "dtype": str(info.dtype)}


@Decoder.register(TensorInfo)
def _decode_info(found: dict[str, Any]) -> TensorInfo:
    dtype = getattr_nested(tensorrt(), found["dtype"])
    return TensorInfo(dtype, found["strides"], found["vectorized_dim"], found["components_per_element"])


@Encoder.register(Algorithm)
def _encode_algorithm(algorithm: Algorithm) -> dict[str, Any]:
    return dict(vars(algorithm))


@Decoder.register(Algorithm)
def _decode_algorithm(found: dict[str, Any]) -> Algorithm:
    return Algorithm(*(found[name] for name in ("implementation", "tactic", "inputs", "outputs")))


@Encoder.register(TacticReplayData)
def _encode_replay(replay: TacticReplayData) -> dict[str, Any]:
    return {"replay": replay.dct}


@Decoder.register(TacticReplayData)
def _decode_replay(found: dict[str, Any]) -> TacticReplayData:
    return TacticReplayData(found["replay"])
