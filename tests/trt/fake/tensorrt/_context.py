"""IExecutionContext: reads inputs from addresses, runs onnxruntime, writes outputs to addresses."""

import ctypes
import sys
from typing import Any

import numpy as np

from . import _faults
from ._arguments import CLASSES
from ._classes import behaves, new
from ._shapes import output_shapes
from ._types import numpy_of
from ._values import dims, say


def context(engine: Any, strategy: Any) -> Any:
    """A context; None where the device has too little memory."""
    limit = _faults.faults().get("device_memory")
    user_managed = strategy is not None and strategy.name == "USER_MANAGED"
    if limit is not None and not user_managed and engine._plan.header["workspace"] > limit:
        say(engine._logger, "ERROR", "IExecutionContext: Error Code 2: OutOfMemory (Requested size was "
            f"{engine._plan.header['workspace']} bytes.)")  # fmt: skip
        return None
    last = len(engine._plan.header["profiles"]) - 1
    first = last if _faults.faults().get("wrong_profile") else 0
    made = new(
        "IExecutionContext", _engine=engine, _profile=first, _shapes={}, _addresses={}, _allocators={}, _listener=None,
        _debug=set(), _strategy=strategy, _memory=not user_managed, _pending=None, _event=0, _inferred={},
    )  # fmt: skip
    made._values.update(enqueue_emits_profile=True, name="")
    return made


@behaves("IExecutionContext")
class _Context:
    _engine: Any
    _shapes: dict[str, tuple[int, ...]]
    _addresses: dict[str, int]
    _values: dict[str, Any]

    engine = property(lambda self: self._engine)
    active_optimization_profile = property(lambda self: self._profile)
    all_binding_shapes_specified = property(lambda self: not self._missing())
    all_shape_inputs_specified = property(
        lambda self: all(e["name"] in self._addresses for e in self._inputs() if e["shape_io"])
    )

    def _inputs(self) -> list[dict[str, Any]]:
        return [entry for entry in self._engine._plan.header["io"] if entry["mode"] == "INPUT"]

    def _outputs(self) -> list[dict[str, Any]]:
        return [entry for entry in self._engine._plan.header["io"] if entry["mode"] == "OUTPUT"]

    def _fail(self, text: str) -> bool:
        say(self._engine._logger, "ERROR", f"IExecutionContext: Error Code 3: API Usage Error ({text})")
        recorder = self._values.get("error_recorder")
        if recorder is not None:
            recorder.report_error(CLASSES["ErrorCodeTRT"].INVALID_ARGUMENT, text)
        return False

    def set_optimization_profile_async(self, profile_index: int, stream_handle: int) -> bool:
        if not 0 <= profile_index < len(self._engine._plan.header["profiles"]):
            self._fail(f"Profile index {profile_index} is not valid")
            raise RuntimeError("Error in set optimization profile async.")
        self._profile = profile_index
        self._shapes.clear()
        return True

    def set_input_shape(self, name: str, shape: Any) -> bool:
        entry = next((e for e in self._inputs() if e["name"] == name), None)
        if entry is None:
            return self._fail(f"{name} is not an input tensor")
        wanted, static = tuple(shape), entry["shape"]
        if len(wanted) != len(static) or any(s not in (-1, w) for s, w in zip(static, wanted, strict=True)):
            return self._fail(f"Static dimension mismatch while setting input shape for {name}: {wanted}, {static}")
        limits = self._engine._plan.header["profiles"][self._profile]["shapes"].get(name)
        if limits and not all(low <= w <= high for low, w, high in zip(limits[0], wanted, limits[2], strict=True)):
            return self._fail(f"Set dimension {list(wanted)} for tensor {name} does not satisfy any optimization "
                              f"profile. Valid for profile {self._profile}: {limits[0]}..{limits[2]}.")  # fmt: skip
        self._shapes[name] = wanted
        return True

    def _input_shape(self, entry: dict[str, Any]) -> tuple[int, ...]:
        return self._shapes.get(entry["name"], tuple(entry["shape"]))

    def _missing(self) -> list[str]:
        """Inputs whose shape is not set, or whose shape values are not given."""
        return [
            e["name"]
            for e in self._inputs()
            if -1 in self._input_shape(e) or (e["shape_io"] and e["name"] not in self._addresses)
        ]

    def infer_shapes(self) -> list[str]:
        return self._missing()

    def get_tensor_shape(self, name: str) -> Any:
        entry = next((e for e in self._engine._plan.header["io"] if e["name"] == name), None)
        if entry is None:
            self._fail(f"invalid tensor name {name}")
            return dims([])
        if entry["mode"] == "INPUT":
            return dims(self._input_shape(entry))
        if self._missing():
            return dims(entry["shape"])
        return dims(self._out()[name])

    def _out(self) -> dict[str, tuple[int, ...]]:
        shapes = {e["name"]: self._input_shape(e) for e in self._inputs()}
        values = {e["name"]: self._read(e) for e in self._inputs() if e["shape_io"]}
        key = repr((shapes, {name: value.tolist() for name, value in values.items()}))
        if key not in self._inferred:
            self._inferred[key] = output_shapes(self._engine, shapes, values)
        return self._inferred[key]

    def get_tensor_strides(self, name: str) -> Any:
        shape = tuple(self.get_tensor_shape(name))
        return dims([int(np.prod(shape[at + 1 :], dtype=np.int64)) for at in range(len(shape))])

    def get_max_output_size(self, name: str) -> int:
        entry = next(e for e in self._outputs() if e["name"] == name)
        shape = self._out()[name] if not self._missing() else entry["shape"]
        return int(np.prod(np.abs(shape), dtype=np.int64)) * _kind(entry).itemsize

    def set_tensor_address(self, name: str, memory: int) -> bool:
        if all(entry["name"] != name for entry in self._engine._plan.header["io"]):
            return self._fail(f"Given invalid tensor name: {name}")
        self._addresses[name] = memory
        return True

    def get_tensor_address(self, name: str) -> int:
        return self._addresses.get(name, 0)

    def set_output_allocator(self, name: str, output_allocator: Any) -> bool:
        if all(entry["name"] != name for entry in self._outputs()):
            return self._fail(f"{name} is not an output tensor")
        self._allocators[name] = output_allocator
        return True

    def get_output_allocator(self, name: str) -> Any:
        return self._allocators.get(name)

    def set_device_memory(self, memory: int, size: int) -> None:
        self._memory = bool(memory) and size >= self._engine._plan.header["workspace"]

    device_memory = property(None, lambda self, v: setattr(self, "_memory", bool(v)))

    def update_device_memory_size_for_shapes(self) -> int:
        return int(self._engine._plan.header["workspace"])

    def get_runtime_config(self) -> Any:
        return new("IRuntimeConfig", _strategy=self._strategy)

    def set_input_consumed_event(self, event: int) -> bool:
        self._event = event
        return True

    def get_input_consumed_event(self) -> int:
        return self._event

    def set_aux_streams(self, aux_streams: list[int]) -> None:
        """Everything runs in order."""

    def set_communicator(self, communicator: Any) -> bool:
        return True

    def set_debug_listener(self, listener: Any) -> bool:
        self._listener = listener
        return True

    def get_debug_listener(self) -> Any:
        return self._listener

    def set_tensor_debug_state(self, name: str, flag: bool) -> bool:
        if not any(name == shown for shown, _inner in self._engine._plan.header["debug"]):
            return self._fail(f"{name} is not a debug tensor")
        (self._debug.add if flag else self._debug.discard)(name)
        return True

    def get_debug_state(self, name: str) -> bool:
        return name in self._debug

    def set_all_tensors_debug_state(self, flag: bool) -> bool:
        for name, _inner in self._engine._plan.header["debug"]:
            self.set_tensor_debug_state(name, flag)
        return True

    def _read(self, entry: dict[str, Any]) -> Any:
        shape = self._input_shape(entry)
        size = int(np.prod(shape, dtype=np.int64)) * _kind(entry).itemsize
        data = ctypes.string_at(self._addresses[entry["name"]], size) if size else b""
        return np.frombuffer(data, _kind(entry)).reshape(shape)

    def execute_v2(self, bindings: list[int]) -> bool:
        if len(bindings) != len(self._engine._plan.header["io"]):
            return self._fail("need one binding an I/O tensor")
        for entry, address in zip(self._engine._plan.header["io"], bindings, strict=True):
            self._addresses[entry["name"]] = address
        return self._ready() and self._run(0)

    def execute_async_v3(self, stream_handle: int) -> bool:
        if not self._ready():
            return False
        host = sys.modules.get("cuda._host")
        if host is not None:
            return bool(host.submit(stream_handle, lambda: self._run(stream_handle)))
        return self._run(stream_handle)

    def _ready(self) -> bool:
        if self._engine._plan.header["missing"]:
            return self._fail("the engine has weights stripped: refit it first")
        if not self._memory:
            return self._fail("device memory is user managed and none was given")
        if missing := self._missing():
            return self._fail(f"Not all shapes are specified for inputs: {missing}")
        for entry in self._engine._plan.header["io"]:
            if not self._addresses.get(entry["name"]) and entry["name"] not in self._allocators:
                return self._fail(f"Address is not set for tensor {entry['name']}")
        return True

    def _run(self, stream: int) -> bool:
        from ._running import run

        return run(self, stream)

    def report_to_profiler(self) -> bool:
        from ._running import profile

        return profile(self)


def _kind(entry: dict[str, Any]) -> np.dtype[Any]:
    return numpy_of(getattr(CLASSES["DataType"], entry["dtype"]))
