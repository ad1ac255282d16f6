"""An onnxruntime CUDA session whose outputs stay on the device."""

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from backends.cuda.tensors import DeviceTensor
from backends.errors import UsageError
from backends.onnxrt_session import CUDA, in_words, open_session, provider_names
from backends.onnxrt_values import to_ort
from backends.runner import Loadable
from backends.specs import RunnerSpec
from backends.tensors import dtype_name, onnx_to_numpy
from backends.text import shown

Array = NDArray[Any]


class BoundSession:
    """Runs a model by an IOBinding, a new one each time: tensors of a run live as long as somebody holds them.

    UsageError for a runner that is not on CUDA, or outputs that are no tensors; else raises as `open_session`.
    """

    def __init__(self, spec: RunnerSpec, model: Loadable, device: int = 0) -> None:
        if provider_names(spec.providers)[0] != CUDA:
            raise UsageError("outputs stay on the device with the CUDA provider only")
        self._session: Any = open_session(spec, model)
        self._device = device
        nodes = self._session.get_outputs()
        odd = [node.name for node in nodes if not node.type.startswith("tensor(")]
        if odd:
            raise UsageError(f"output {shown(odd[0])!r} is no tensor and cannot stay on the device")
        self.outputs = [node.name for node in nodes]

    def run(self, feed: Mapping[str, Array]) -> dict[str, DeviceTensor]:
        """Run once and wait; the outputs by name. LayerwiseError naming the node that failed."""
        with in_words("onnxruntime on CUDA"):
            binding = self._session.io_binding()
            held = {name: to_ort(array) for name, array in feed.items()}
            for name, value in held.items():
                binding.bind_ortvalue_input(name, value)
            for name in self.outputs:
                binding.bind_output(name, "cuda", self._device)
            self._session.run_with_iobinding(binding)
            binding.synchronize_outputs()
            return {name: _tensor(value) for name, value in zip(self.outputs, binding.get_outputs(), strict=True)}

    def close(self) -> None:
        self._session = None


def _tensor(value: Any) -> DeviceTensor:
    dtype = dtype_name(onnx_to_numpy(value.element_type()))
    return DeviceTensor(int(value.data_ptr()), tuple(value.shape()), dtype, value)
