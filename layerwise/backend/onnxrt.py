"""onnxruntime: sessions and the runner over them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.runner import Loadable
from layerwise._tool.backends.specs import OptimizationLevel, RunnerSpec
from layerwise._tool.backends.torch_bridge import is_tensor, to_array
from layerwise.backend.base import BaseLoader, BaseRunner, Lazy, immediate, value_of
from layerwise.common import TensorMetadata


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
        from layerwise._tool.backends.onnxrt.session import open_session

        model = value_of(self._model)
        if isinstance(model, bytes):
            return open_session(self.spec, Loadable(data=model))
        return open_session(self.spec, Loadable(path=Path(str(model))))


class OnnxrtRunner(BaseRunner):
    """Runs an onnxruntime session. Torch tensors in give torch tensors out."""

    def __init__(self, sess: Lazy[Any], name: str | None = None) -> None:
        super().__init__(name=name, prefix="onnxrt-runner")
        self._sess = sess

    def activate_impl(self) -> None:
        from layerwise._tool.backends.onnxrt.runner import OnnxrtRunner as Inner

        self.sess = value_of(self._sess)
        self._inner = Inner(RunnerSpec(kind="onnxrt"), Loadable(), self.sess, self.name)

    def get_input_metadata_impl(self) -> TensorMetadata:
        return TensorMetadata.from_infos(self._inner.inputs)

    def infer_impl(self, feed_dict: Mapping[str, Any], **options: Any) -> dict[str, Any]:
        torch_out = any(is_tensor(value) for value in feed_dict.values())
        feed = {name: to_array(value) if is_tensor(value) else value for name, value in feed_dict.items()}
        result = self._inner.infer(feed)
        self.inference_time = result.runtime
        return to_torch(result.outputs) if torch_out else dict(result.outputs)

    def deactivate_impl(self) -> None:
        self._inner.close()
        del self.sess


def to_torch(outputs: Mapping[str, Any]) -> dict[str, Any]:
    import torch

    return {name: torch.from_numpy(array) for name, array in outputs.items()}


def _level(value: Any) -> OptimizationLevel:
    word = str(getattr(value, "name", value)).lower().removeprefix("ort_").removesuffix("_all").removeprefix("enable_")
    if word not in get_args(OptimizationLevel):
        raise UsageError(f"{value!r} is not a graph optimization level")
    return word  # type: ignore[return-value]


session_from_onnx = immediate(SessionFromOnnx)
