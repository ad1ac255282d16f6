"""ICudaEngine."""

from typing import Any

import onnx
import onnxruntime

from ._arguments import CLASSES
from ._classes import behaves, new
from ._context import context
from ._inspect import inspector
from ._plan import Plan
from ._values import dims, host_memory, say


def member(enum: str, name: str) -> Any:
    """An enum's member by name."""
    return getattr(CLASSES[enum], name)


def engine(plan: Plan, logger: Any) -> Any:
    """An engine of a plan."""
    return new("ICudaEngine", _plan=plan, _logger=logger, _sessions={}, _budget=None)


@behaves("ICudaEngine")
class _Engine:
    _plan: Plan
    _sessions: dict[Any, Any]

    name = property(lambda self: self._plan.header["name"])
    num_io_tensors = property(lambda self: len(self._plan.header["io"]))
    num_layers = property(lambda self: len(self._plan.header["layers"]) * len(self._plan.header["profiles"]))
    num_optimization_profiles = property(lambda self: len(self._plan.header["profiles"]))
    num_aux_streams = property(lambda self: self._plan.header["aux_streams"])
    tactic_sources = property(lambda self: self._plan.header["tactic_sources"])
    profiling_verbosity = property(lambda self: member("ProfilingVerbosity", self._plan.header["verbosity"]))
    engine_capability = property(lambda self: member("EngineCapability", self._plan.header["capability"]))
    hardware_compatibility_level = property(
        lambda self: member("HardwareCompatibilityLevel", self._plan.header["hardware"])
    )
    refittable = property(lambda self: any(flag.startswith("REFIT") for flag in self._plan.header["flags"]))
    has_implicit_batch_dimension = property(lambda self: False)
    device_memory_size_v2 = property(lambda self: self._plan.header["workspace"])
    device_memory_size = device_memory_size_v2
    streamable_weights_size = property(lambda self: self._weights() if self._streams() else 0)
    weight_streaming_scratch_memory_size = property(lambda self: 1 << 10 if self._streams() else 0)
    minimum_weight_streaming_budget = property(lambda self: 0)

    def _streams(self) -> bool:
        return "WEIGHT_STREAMING" in self._plan.header["flags"]

    def _weights(self) -> int:
        return sum(len(initializer.raw_data) or 4 for initializer in self._plan.model.graph.initializer)

    def _get_budget(self) -> int:
        everything = self._weights() if self._streams() else 0
        return everything if self._budget is None else self._budget

    def _set_budget(self, value: int) -> None:
        if not self._streams() or not 0 <= value <= self._weights():
            raise RuntimeError(f"Error in setting weight streaming budget to {value}")
        self._budget = value

    weight_streaming_budget_v2 = property(_get_budget, _set_budget)
    weight_streaming_budget = weight_streaming_budget_v2

    def get_weight_streaming_automatic_budget(self) -> int:
        return self._weights() // 2 if self._streams() else 0

    def __getitem__(self, index: int) -> str:
        return str(self._plan.header["io"][index]["name"])

    def get_tensor_name(self, index: int) -> Any:
        return self._plan.header["io"][index]["name"] if 0 <= index < self.num_io_tensors else None

    def _io(self, name: str) -> dict[str, Any]:
        for entry in self._plan.header["io"]:
            if entry["name"] == name:
                return dict(entry)
        say(self._logger, "ERROR", f"ICudaEngine: invalid tensor name {name}")
        return {"name": name, "dtype": "FLOAT", "mode": "NONE", "shape": [], "shape_io": False, "formats": 1}

    def get_tensor_dtype(self, name: str) -> Any:
        return member("DataType", self._io(name)["dtype"])

    def get_tensor_mode(self, name: str) -> Any:
        return member("TensorIOMode", self._io(name)["mode"])

    def get_tensor_shape(self, name: str) -> Any:
        return dims(self._io(name)["shape"])

    def get_tensor_location(self, name: str) -> Any:
        return member("TensorLocation", "HOST" if self._io(name)["shape_io"] else "DEVICE")

    def is_shape_inference_io(self, name: str) -> bool:
        return bool(self._io(name)["shape_io"])

    def is_debug_tensor(self, name: str) -> bool:
        return any(name == shown for shown, _inner in self._plan.header["debug"])

    def get_tensor_format(self, name: str, profile_index: int = 0) -> Any:
        mask = self._io(name)["formats"]
        for found in CLASSES["TensorFormat"].__members__.values():
            if mask >> int(found) & 1:
                return found
        return member("TensorFormat", "LINEAR")

    def get_tensor_format_desc(self, name: str, profile_index: int = 0) -> str:
        kind = self._io(name)["dtype"]
        return f"Row-Major Linear {kind} format (kLINEAR)"

    def get_tensor_vectorized_dim(self, name: str, profile_index: int = 0) -> int:
        return -1

    def get_tensor_components_per_element(self, name: str, profile_index: int = 0) -> int:
        return -1

    def get_tensor_bytes_per_component(self, name: str, profile_index: int = 0) -> int:
        return int(member("DataType", self._io(name)["dtype"]).itemsize)

    def get_aliased_input_tensor(self, name: str) -> str:
        return ""

    def get_tensor_profile_shape(self, name: str, profile_index: int) -> list[Any]:
        found = self._plan.header["profiles"][profile_index]["shapes"].get(name)
        return [dims(shape) for shape in found or [self._io(name)["shape"]] * 3]

    def get_tensor_profile_values(self, profile_index: int, name: str) -> list[list[int]]:
        if not self._io(name)["shape_io"]:
            raise RuntimeError("Binding index does not correspond to an input shape tensor.")
        return [list(v) for v in self._plan.header["profiles"][profile_index]["values"].get(name, ())]

    def get_device_memory_size_for_profile_v2(self, profile_index: int) -> int:
        return int(self._plan.header["workspace"])

    get_device_memory_size_for_profile = get_device_memory_size_for_profile_v2

    def get_engine_stat(self, stat: Any) -> int:
        return self._weights() if stat.name == "TOTAL_WEIGHTS_SIZE" else 0

    def create_engine_inspector(self) -> Any:
        return inspector(self)

    def create_execution_context(self, strategy: Any = None) -> Any:
        config = strategy if isinstance(strategy, CLASSES["IRuntimeConfig"]) else None
        chosen = config._strategy if config is not None else strategy
        return context(self, chosen)

    def create_execution_context_without_device_memory(self) -> Any:
        return context(self, member("ExecutionContextAllocationStrategy", "USER_MANAGED"))

    def create_runtime_config(self) -> Any:
        return new("IRuntimeConfig", _strategy=member("ExecutionContextAllocationStrategy", "STATIC"))

    def create_serialization_config(self) -> Any:
        return new("ISerializationConfig")

    def serialize(self) -> Any:
        return host_memory(self._plan.to_bytes())

    def serialize_with_config(self, arg0: Any) -> Any:
        return self.serialize()

    def _session(self, extra: tuple[str, ...] = ()) -> Any:
        """onnxruntime's session of the model, with these inner tensors as outputs too."""
        if extra not in self._sessions:
            model = onnx.ModelProto()
            model.CopyFrom(self._plan.model)
            known = {value.name for value in model.graph.output}
            model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in extra if name not in known)
            options = onnxruntime.SessionOptions()
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
            options.intra_op_num_threads, options.log_severity_level = 1, 4
            self._sessions[extra] = onnxruntime.InferenceSession(
                model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
        return self._sessions[extra]


@behaves("IRuntimeConfig")
class _RuntimeConfig:
    def set_execution_context_allocation_strategy(self, strategy: Any) -> None:
        self._strategy = strategy

    def get_execution_context_allocation_strategy(self) -> Any:
        return self._strategy


@behaves("ISerializationConfig")
class _SerializationConfig:
    def set_flag(self, flag: Any) -> bool:
        self._values["flags"] = self._values.get("flags", 0) | 1 << int(flag)
        return True

    def clear_flag(self, flag: Any) -> bool:
        self._values["flags"] = self._values.get("flags", 0) & ~(1 << int(flag))
        return True

    def get_flag(self, flag: Any) -> bool:
        return bool(self._values.get("flags", 0) >> int(flag) & 1)
