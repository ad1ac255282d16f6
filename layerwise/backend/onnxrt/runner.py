"""onnxruntime: the runner."""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from layerwise._tool.backends.runner import Loadable
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.torch_bridge import is_tensor, to_array
from layerwise.backend.base import BaseRunner, Lazy, value_of
from layerwise.common import TensorMetadata
from layerwise.util import array

__all__ = ["OnnxrtRunner"]


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

    def infer_impl(self, feed_dict: Mapping[str, Any]) -> dict[str, Any]:
        torch_out = any(is_tensor(value) for value in feed_dict.values())
        feed = {name: to_array(value) if is_tensor(value) else value for name, value in feed_dict.items()}
        result = self._inner.infer(feed)
        self.inference_time = result.runtime
        return to_torch(result.outputs) if torch_out else OrderedDict(result.outputs)

    def deactivate_impl(self) -> None:
        self._inner.close()
        del self.sess, self._inner


def to_torch(outputs: Mapping[str, Any]) -> dict[str, Any]:
    """Arrays as torch tensors."""
    return OrderedDict((name, array.to_torch(value)) for name, value in outputs.items())
