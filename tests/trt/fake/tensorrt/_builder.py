"""Builder: network and config to a plan, with the failures that the real one has."""

from typing import Any

import onnx
import onnxruntime

from . import _calibrate, _faults, _network
from ._arguments import CLASSES
from ._callbacks import call
from ._classes import behaves
from ._config import config, profile
from ._engine import engine
from ._layers import Unsupported, emitted
from ._plan import Plan
from ._plugins import registry
from ._recording import api, version
from ._rewrite import rewrite, strongly_typed
from ._tactics import BuildFailed, choose
from ._values import host_memory, say


@behaves("Builder")
class _Builder:
    def _init(self, logger: Any) -> None:
        self._logger = logger
        self._values["max_threads"] = 1

    logger = property(lambda self: self._logger)
    platform_has_fast_fp16 = property(lambda self: True)
    platform_has_fast_int8 = property(lambda self: True)
    platform_has_tf32 = property(lambda self: True)
    num_DLA_cores = property(lambda self: 0)
    max_DLA_batch_size = property(lambda self: 0)

    def create_network(self, flags: int = 0) -> Any:
        return _network.network(self, flags)

    def create_builder_config(self) -> Any:
        return config()

    def create_optimization_profile(self) -> Any:
        return profile()

    def get_plugin_registry(self) -> Any:
        return registry()

    def is_network_supported(self, network: Any, config: Any) -> bool:
        try:
            _check(network, config)
        except BuildFailed:
            return False
        return True

    def reset(self) -> None:
        """Nothing is kept."""

    def build_serialized_network(self, network: Any, config: Any, kernel_text: Any = None) -> Any:
        plan = self._plan(network, config)
        return host_memory(plan.to_bytes()) if plan else None

    def build_serialized_network_to_stream(self, network: Any, config: Any, writer: Any) -> bool:
        plan = self._plan(network, config)
        return plan is not None and (call("write", writer.write, plan.to_bytes()) or 0) > 0

    def build_engine_with_config(self, network: Any, config: Any) -> Any:
        plan = self._plan(network, config)
        return engine(plan, self._logger) if plan else None

    def _plan(self, network: Any, config: Any) -> Plan | None:
        try:
            return _build(network, config, self._logger)
        except (BuildFailed, Unsupported) as error:
            recorder = self._values.get("error_recorder")
            if recorder is not None:
                recorder.report_error(CLASSES["ErrorCodeTRT"].INTERNAL_ERROR, str(error))
            say(self._logger, "ERROR", f"IBuilder::buildSerializedNetwork: Error Code 10: Internal Error ({error})")
            return None


class _Progress:
    """The phases of a build, as the monitor hears them."""

    def __init__(self, monitor: Any, layers: list[Any]) -> None:
        self.monitor, self.layers = monitor, layers

    def run(self, step: Any) -> None:
        """Report one phase within another with a step a layer; a monitor that says False ends the build."""
        if self.monitor is None:
            return step()
        outer, inner = "Building engine from subgraph", "Timing graph nodes"
        call("phaseStart", self.monitor.phase_start, outer, None, 2)
        call("phaseStart", self.monitor.phase_start, inner, outer, len(self.layers))
        steps = (call("stepComplete", self.monitor.step_complete, inner, at) for at in range(len(self.layers)))
        going = all(step is not False for step in steps)
        call("phaseFinish", self.monitor.phase_finish, inner)
        try:
            if not going:
                raise BuildFailed("Build was cancelled by the progress monitor")
            step()
            call("stepComplete", self.monitor.step_complete, outer, 0)
        finally:
            call("phaseFinish", self.monitor.phase_finish, outer)
        return None


def _build(network: Any, config: Any, logger: Any) -> Plan:
    profiles = _check(network, config)
    if message := _faults.faults().get("fail_build"):
        raise BuildFailed(message)
    model = network._onnx()
    made: dict[str, Any] = {}
    _Progress(config._values.get("progress_monitor"), network._layers).run(
        lambda: made.update(choices=choose(network, config, logger))
    )
    scales = _calibrate.calibrate(network, config, model, profiles)
    precisions = rewrite(model, network, config, made["choices"], scales)
    _runs(model)
    header = _header(network, config, profiles, made["choices"], precisions)
    if config._has("STRIP_PLAN"):
        header["missing"] = _strip(model)
    say(logger, "INFO", f"Engine generation completed: {len(network._layers)} layers.")
    return Plan(header, model)


def _check(network: Any, config: Any) -> list[dict[str, Any]]:
    """The profiles as data.

    Raises:
        BuildFailed: no outputs, or a dynamic input without a shape in a profile.
    """
    if not network._outputs:
        raise BuildFailed("Network must have at least one output")
    dynamic = [t for t in network._inputs if -1 in t._typed()[1]]
    if dynamic and not config._profiles:
        raise BuildFailed("Network has dynamic or shape inputs, but no optimization profile has been defined.")
    for at, given in enumerate(config._profiles):
        for tensor in dynamic:
            shapes = given._shapes.get(tensor._name)
            if shapes is None:
                raise BuildFailed(f"{tensor._name}: dynamic input is missing dimensions in profile {at}.")
            _fits(tensor, shapes, at)
    given = [{"shapes": p._shapes, "values": p._shape_values} for p in config._profiles]
    return given or [{"shapes": {}, "values": {}}]


def _fits(tensor: Any, shapes: Any, at: int) -> None:
    for shape in shapes:
        fixed = tensor._typed()[1]
        if len(shape) != len(fixed) or any(w not in (-1, g) for w, g in zip(fixed, shape, strict=True)):
            raise BuildFailed(f"{tensor._name}: profile {at} has shape {shape} for a tensor of shape {fixed}")


def _runs(model: onnx.ModelProto) -> None:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    try:
        onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's own exception types are not public
        raise BuildFailed(f"the fake cannot run this network: {error}") from None


def _strip(model: onnx.ModelProto) -> list[str]:
    names = []
    for initializer in model.graph.initializer:
        names.append(initializer.name)
        initializer.raw_data = bytes(len(initializer.raw_data))
        for field in ("float_data", "int32_data", "int64_data"):
            values = getattr(initializer, field)
            if values:
                values[:] = [0] * len(values)
    return names


def _header(network: Any, config: Any, profiles: Any, choices: Any, precisions: dict[str, str]) -> dict[str, Any]:
    flags = [name for name in CLASSES["BuilderFlag"].__members__ if config._has(name)]
    verbosity = config._values.get("profiling_verbosity")
    return {
        "version": api()["version"],
        "name": network.name or "Unnamed Network 0",
        "io": [_tensor(t, "INPUT") for t in network._inputs] + [_tensor(t, "OUTPUT") for t in network._outputs],
        "layers": [_layer(layer, c, precisions) for layer, c in zip(network._layers, choices, strict=True)],
        "profiles": profiles,
        "flags": flags,
        "verbosity": verbosity.name if verbosity is not None else "LAYER_NAMES_ONLY",
        "capability": _named(config, "engine_capability", "STANDARD"),
        "hardware": _named(config, "hardware_compatibility_level", "NONE"),
        "aux_streams": max(0, config._values.get("max_aux_streams", -1)),
        "tactic_sources": config.get_tactic_sources(),
        "workspace": 1 << 20,
        "strongly_typed": strongly_typed(network),
        "debug": [[tensor._name, tensor._id] for tensor in network._debug.values()],
        "unfused": network._unfused,
        "refittable": sorted(network._refittable),
        "missing": [],
        "major": version(),
    }


def _named(config: Any, name: str, otherwise: str) -> str:
    value = config._values.get(name)
    return value.name if value is not None else otherwise


def _tensor(tensor: Any, mode: str) -> dict[str, Any]:
    kind, shape = tensor._typed()
    return {"name": tensor._name, "id": tensor._id, "mode": mode, "dtype": kind.name, "shape": list(shape),
            "shape_io": tensor.is_shape_tensor, "formats": tensor._values.get("allowed_formats", 1)}  # fmt: skip


def _layer(layer: Any, choice: Any, precisions: dict[str, str]) -> dict[str, Any]:
    constants = {c.name for c in layer.network._initializers.values()} if layer.node else set()
    weights = [n for n in layer.node.input if n in constants] if layer.node else [c.name for c in emitted(layer)[1]]
    return {
        "name": layer.name, "kind": layer.kind, "key": choice.key, "tactic": choice.tactic, "at": choice.candidate,
        "ms": choice.milliseconds, "precision": precisions[layer.name], "metadata": layer.values.get("metadata", ""),
        "inputs": [[t._id, t._typed()[0].name, list(t._typed()[1])] for t in layer.inputs if t is not None],
        "outputs": [[t._id, t._typed()[0].name, list(t._typed()[1])] for t in layer.outputs],
        "weights": weights,
    }  # fmt: skip
