"""An onnxruntime session whose outputs stay on the device."""

import time
from collections.abc import Mapping
from typing import Any

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.cuda.tensors import DeviceTensor
from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.onnxrt.session import CPU, CUDA, in_words, open_session, provider_names
from layerwise._tool.backends.onnxrt.values import to_ort
from layerwise._tool.backends.results.inference import IterationResult
from layerwise._tool.backends.runner import Loadable
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.tensors import dtype_name, onnx_to_numpy
from layerwise._tool.backends.text import shown

Value = Array | DeviceTensor
_KINDS = {CUDA: "cuda", CPU: "cpu"}


class BoundSession:
    """Runs a model with a new IOBinding each time; tensors of a run live as long as they are referenced.

    They are on the GPU with the CUDA provider, in host memory with the CPU provider. UsageError for other providers and
    for outputs that are not numeric tensors; otherwise raises like `open_session`.
    """

    def __init__(self, spec: RunnerSpec, model: Loadable, name: str = "onnxruntime") -> None:
        provider = provider_names(spec.providers)[0]
        if provider not in _KINDS:
            raise UsageError(f"with {provider} outputs do not stay where they are made")
        self.name = name
        self._kind, self._device = _KINDS[provider], device_of(spec)
        self._session: Any = open_session(spec, model)
        nodes = self._session.get_outputs()
        odd = [node.name for node in nodes if not _stays(node.type)]
        if odd:
            raise UsageError(f"output {shown(odd[0])!r} is no tensor of numbers and cannot stay on the device")
        self.outputs = [node.name for node in nodes]

    def run(self, feed: Mapping[str, Value]) -> dict[str, DeviceTensor]:
        """Run once and wait; return the outputs by name. LayerwiseError names the node that failed."""
        with in_words(self.name):
            binding = self._session.io_binding()
            held = {name: _held(value) for name, value in feed.items()}
            for name, value in held.items():
                binding.bind_ortvalue_input(name, value)
            for name in self.outputs:
                binding.bind_output(name, self._kind, self._device)
            self._session.run_with_iobinding(binding)
            binding.synchronize_outputs()
            return {name: _tensor(value) for name, value in zip(self.outputs, binding.get_outputs(), strict=True)}

    def infer(self, feed: Mapping[str, Any]) -> IterationResult:
        """Like `Runner.infer`, with `DeviceTensor` instead of arrays."""
        start = time.perf_counter()
        outputs: Mapping[str, Any] = self.run(feed)
        return IterationResult(outputs, time.perf_counter() - start, self.name)

    def close(self) -> None:
        self._session = None


def device_of(spec: RunnerSpec) -> int:
    """Return the index of the GPU that a runner asks for. UsageError if it is invalid."""
    given = [values["device_id"] for values in spec.provider_options.values() if "device_id" in values]
    if given and not given[0].isdecimal():
        raise UsageError(f"device_id={shown(given[0], 40)}: give the number of a GPU")
    return int(given[0]) if given else 0


def _held(value: Value) -> Any:
    return value.owner if isinstance(value, DeviceTensor) else to_ort(value)


def _stays(kind: str) -> bool:
    return kind.startswith("tensor(") and "string" not in kind


def _tensor(value: Any) -> DeviceTensor:
    dtype = dtype_name(onnx_to_numpy(value.element_type()))
    return DeviceTensor(int(value.data_ptr()), tuple(value.shape()), dtype, value)
