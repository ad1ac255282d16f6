"""Builder: network and config to a plan, with the failures that the real one has."""

import time
from pathlib import Path
from typing import Any

import onnx
import onnxruntime

from . import _calibrate, _faults, _network
from ._arguments import CLASSES
from ._callbacks import call
from ._classes import behaves
from ._config import config, profile
from ._engine import engine
from ._header import header
from ._layers import Unsupported
from ._plan import Plan
from ._plugins import registry
from ._rewrite import rewrite
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
    num_DLA_cores = property(lambda self: _faults.faults().get("dla_cores", 0))
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
        going = all(self._step(inner, at) for at in range(len(self.layers)))
        call("phaseFinish", self.monitor.phase_finish, inner)
        try:
            if not going:
                raise BuildFailed("Build was cancelled by the progress monitor")
            step()
            call("stepComplete", self.monitor.step_complete, outer, 0)
        finally:
            call("phaseFinish", self.monitor.phase_finish, outer)
        return None

    def _step(self, phase: str, at: int) -> bool:
        """Complete one step; false where the monitor ends the build. The first goes on until the file of `waits` is."""
        waits = _faults.faults().get("waits")
        while at == 0 and waits and not Path(waits).exists():
            if call("stepComplete", self.monitor.step_complete, phase, at) is False:
                return False
            time.sleep(0.01)
        return call("stepComplete", self.monitor.step_complete, phase, at) is not False


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
    facts = header(network, config, profiles, made["choices"], precisions)
    if config._has("STRIP_PLAN"):
        facts["missing"] = _strip(model)
    say(logger, "INFO", f"Engine generation completed: {len(network._layers)} layers.")
    return Plan(facts, model)


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
