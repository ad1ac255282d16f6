"""Engines as files: inspector, refit, stripped weights, versions, calibration, callbacks of a build."""

import json
from collections.abc import Callable

from trt.scenario import MODEL

RunIn = Callable[..., str]


def test_the_inspector_uses_the_schema_of_its_version(in_fake: RunIn, trt_version: int) -> None:
    said = in_fake(
        MODEL
        + """
builder, network, _, _ = parsed()
config = configured(builder, [(1, 3, 8, 8)] * 3, [(1, 3, 8, 8), (2, 3, 8, 8), (3, 3, 8, 8)])
config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
inspector = loaded(bytes(builder.build_serialized_network(network, config))).create_engine_inspector()
print(inspector.get_engine_information(trt.LayerInformationFormat.JSON))
"""
    )
    found = json.loads(said)
    assert [layer["Name"] for layer in found["Layers"]] == ["conv", "relu", "conv [profile 1]", "relu [profile 1]"]
    assert found["Layers"][0]["Metadata"] == "[ONNX Layer: conv]"
    described = found["Layers"][0]["Outputs"][0]
    if trt_version == 10:
        assert found["Bindings"] == ["x", "y"] and described["Format/Datatype"].endswith("FP32")
    else:
        assert [entry["Name"] for entry in found["I/O Tensors"]] == ["x", "y"]
        assert found["I/O Tensors"][0]["ProfileInfo"][1]["Max"] == [3, 3, 8, 8] and described["Datatype"] == "FP32"


def test_the_inspector_gives_layer_names_by_default_and_nothing_for_none(in_fake: RunIn) -> None:
    said = in_fake(
        MODEL
        + """
for verbosity in (None, trt.ProfilingVerbosity.NONE):
    builder, network, _, _ = parsed()
    config = configured(builder)
    if verbosity is not None:
        config.profiling_verbosity = verbosity
    inspector = builder.build_engine_with_config(network, config).create_engine_inspector()
    import json
    print(json.loads(inspector.get_engine_information(trt.LayerInformationFormat.JSON))["Layers"])
print(inspector.get_layer_information(0, trt.LayerInformationFormat.ONELINE) == "")
"""
    )
    assert said.splitlines() == ["['conv', 'relu']", "[]", "True"]


def test_a_refittable_engine_accepts_weights_by_name_layer_and_onnx(in_fake: RunIn) -> None:
    said = in_fake(
        MODEL
        + """
builder, network, _, _ = parsed()
config = configured(builder)
config.set_flag(trt.BuilderFlag.REFIT)
engine = loaded(bytes(builder.build_serialized_network(network, config)))
x = np.ones((1, 3, 8, 8), "f")
before = run(engine.create_execution_context(), x)
refitter = trt.Refitter(engine, logger)
print(refitter.get_all_weights(), refitter.get_all()[0], refitter.get_all()[1][0].name, refitter.get_missing_weights())
print(refitter.set_named_weights("w", weights * 2), refitter.set_named_weights("w", np.zeros(3, "f")))
print(refitter.refit_cuda_engine(), bool(np.allclose(run(engine.create_execution_context(), x), 2 * before)))
print(refitter.set_weights("conv", trt.WeightsRole.KERNEL, weights * 3), refitter.refit_cuda_engine())
print(bool(np.allclose(run(engine.create_execution_context(), x), 3 * before, atol=1e-4)))
parser = trt.OnnxParserRefitter(refitter, logger)
print(parser.refit_from_bytes(model.SerializeToString()), refitter.refit_cuda_engine())
print(bool(np.allclose(run(engine.create_execution_context(), x), before)))
try:
    trt.Refitter(loaded(), logger)
except Exception as error:
    print(type(error).__name__)
"""
    )
    assert said.splitlines() == [
        "['w'] ['conv'] KERNEL []", "True False", "True True", "True True", "True", "True True", "True", "RuntimeError",
    ]  # fmt: skip


def test_a_stripped_engine_runs_after_refitting(in_fake: RunIn) -> None:
    said = in_fake(
        MODEL
        + """
builder, network, _, _ = parsed()
config = configured(builder)
config.set_flag(trt.BuilderFlag.STRIP_PLAN), config.set_flag(trt.BuilderFlag.REFIT_IDENTICAL)
data = bytes(builder.build_serialized_network(network, config))
print(weights.tobytes() in data, weights.tobytes() in built())
engine = loaded(data)
context = engine.create_execution_context()
context.set_input_shape("x", (1, 3, 8, 8))
refitter = trt.Refitter(engine, logger)
print(context.execute_async_v3(0), refitter.get_missing_weights(), refitter.refit_cuda_engine())
parser = trt.OnnxParserRefitter(refitter, logger)
print(parser.refit_from_bytes(model.SerializeToString()), refitter.refit_cuda_engine())
print(bool(np.allclose(run(context, np.ones((1, 3, 8, 8), "f")),
    run(loaded().create_execution_context(), np.ones((1, 3, 8, 8), "f")))))
"""
    )
    assert said.splitlines() == ["False True", "False ['w'] False", "True True", "True"]


def test_invalid_engines_and_other_versions_are_rejected(in_fake: RunIn, trt_version: int) -> None:
    said = in_fake(
        MODEL
        + """
print(loaded(b"rubbish"), logger.lines[-1][0])
data = built()
print(loaded(data[: len(data) // 2]), logger.lines[-1][0])
other = data.replace(b'"major": %d' % MAJOR, b'"major": %d' % (21 - MAJOR))
print(loaded(other), "not compatible with this version" in logger.lines[-1][1])
builder, network, _, _ = parsed()
config = configured(builder)
config.set_flag(trt.BuilderFlag.VERSION_COMPATIBLE)
data = bytes(builder.build_serialized_network(network, config))
print(loaded(data))
runtime = trt.Runtime(logger)
runtime.engine_host_code_allowed = True
print(runtime.deserialize_cuda_engine(data).num_layers)
""".replace("MAJOR", str(trt_version))
    )
    assert said.splitlines() == ["None ERROR", "None ERROR", "None True", "None", "2"]


def test_the_progress_monitor_gets_phases_and_can_cancel(in_fake: RunIn) -> None:
    said = in_fake(
        MODEL
        + """
class Monitor(trt.IProgressMonitor):
    def __init__(self, going):
        trt.IProgressMonitor.__init__(self)
        self.going, self.heard = going, []
    def phase_start(self, phase_name, parent_phase, num_steps):
        self.heard.append(("start", phase_name, parent_phase, num_steps))
    def step_complete(self, phase_name, step):
        return self.going
    def phase_finish(self, phase_name):
        self.heard.append(("finish", phase_name))
for going in (True, False):
    builder, network, _, _ = parsed()
    config = configured(builder)
    config.progress_monitor = monitor = Monitor(going)
    data = builder.build_serialized_network(network, config)
    print(data is not None, len(monitor.heard), monitor.heard[1][2:], monitor.heard[-1][0])
class Careless(trt.IProgressMonitor):
    def __init__(self):
        pass
try:
    Careless()
except TypeError as error:
    print(error)
"""
    )
    assert said.splitlines()[:2] == [
        "True 4 ('Building engine from subgraph', 2) finish", "False 4 ('Building engine from subgraph', 2) finish",
    ]  # fmt: skip
    assert "__init__() must be called when overriding __init__" in said


def test_on_10_a_calibrator_provides_batches_and_gets_its_cache(in_fake: RunIn, trt_version: int) -> None:
    if trt_version != 10:
        assert in_fake("import tensorrt as trt; print(hasattr(trt, 'IInt8EntropyCalibrator2'))") == "False\n"
        return
    said = in_fake(
        MODEL
        + """
batches = [np.full((2, 3, 8, 8), value, "f") for value in (1.0, -2.54)]
class Calibrator(trt.IInt8EntropyCalibrator2):
    def __init__(self, cache=None):
        trt.IInt8EntropyCalibrator2.__init__(self)
        self.cache, self.left = cache, list(batches)
    def get_batch_size(self):
        return 2
    def get_batch(self, names):
        self.names = names
        return [self.left.pop(0).ctypes.data] if self.left else None
    def read_calibration_cache(self):
        return self.cache
    def write_calibration_cache(self, cache):
        self.cache = bytes(cache)
def build_with(calibrator):
    builder, network, _, _ = parsed()
    config = configured(builder)
    config.set_flag(trt.BuilderFlag.INT8)
    config.int8_calibrator = calibrator
    data = builder.build_serialized_network(network, config)
    x = batches[0][:1]
    change = run(loaded(bytes(data)).create_execution_context(), x) - run(loaded().create_execution_context(), x)
    return 0 < np.abs(change).max() < 0.2
first = Calibrator()
print(build_with(first), first.names, first.cache.decode().splitlines()[:2], len(first.cache.splitlines()))
second = Calibrator(first.cache)
print(build_with(second), len(second.left), first.get_algorithm().name)
"""
    )
    assert said.splitlines() == [
        "True ['x'] ['TRT-101601-EntropyCalibration2', 'x: 3ca3d70a'] 4", "True 2 ENTROPY_CALIBRATION_2",
    ]  # fmt: skip
