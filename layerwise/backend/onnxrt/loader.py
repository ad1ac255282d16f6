"""onnxruntime: sessions."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, get_args

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.runner import Loadable
from layerwise._tool.backends.specs import OptimizationLevel, RunnerSpec
from layerwise.backend.base import BaseLoader, Lazy, immediate, value_of
from layerwise.logger import G_LOGGER

__all__ = ["SessionFromOnnx", "session_from_onnx"]


class SessionFromOnnx(BaseLoader[Any]):
    """Makes an onnxruntime.InferenceSession.

    model_bytes: a serialised model, a path, or a loader of one. providers: names or parts of names, ["cpu"] by default;
    one that does not load is a MissingDependency, not a silent fall-back. graph_optimization_level: onnxruntime's enum
    or its word ("disable", "basic", "extended", "all"). More options (tf32, threads, custom_ops, provider_options) are
    those of `backends.specs.RunnerSpec`.
    """

    def __init__(
        self,
        model_bytes: Lazy[bytes | str],
        providers: Sequence[str] | None = None,
        graph_optimization_level: Any = None,
        **options: Any,
    ) -> None:
        self._model = model_bytes
        level = None if graph_optimization_level is None else _level(graph_optimization_level)
        self.spec = RunnerSpec(
            kind="onnxrt", providers=list(providers or ["cpu"]), graph_optimization_level=level, **options
        )

    def call_impl(self) -> Any:
        from layerwise._tool.backends.onnxrt.session import open_session, provider_names

        model = value_of(self._model)
        names = provider_names(self.spec.providers)
        G_LOGGER.start(f"Creating ONNX-Runtime Inference Session with providers: {names}")
        if isinstance(model, bytes):
            return open_session(self.spec, Loadable(data=model))
        if not isinstance(model, str | PathLike):
            raise TypeError(f"Unable to load from type '{type(model)}': BytesFromOnnx makes bytes of a model")
        return open_session(self.spec, Loadable(path=Path(model)))


def _level(value: Any) -> OptimizationLevel:
    word = str(getattr(value, "name", value)).lower().removeprefix("ort_").removesuffix("_all").removeprefix("enable_")
    if word not in get_args(OptimizationLevel):
        raise UsageError(f"{value!r} is not a graph optimization level")
    return word  # type: ignore[return-value]


session_from_onnx = immediate(SessionFromOnnx)
