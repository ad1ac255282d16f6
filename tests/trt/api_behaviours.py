# ruff: noqa: E501 (scripts in texts)
"""Scripts over the rest of the TensorRT names; PKG is the package."""

BEHAVIOURS = {
    "debug tensors": """
from PKG.backend.trt import EngineFromNetwork, MarkDebug, NetworkFromOnnxPath, TrtRunner
with TrtRunner(EngineFromNetwork(MarkDebug(NetworkFromOnnxPath("chain.onnx"), ["m"]))) as runner:
    print(sorted((name, value.tolist()) for name, value in runner.infer({"x": ONES}).items()))
    class Listener(trt.IDebugListener):
        def __init__(self):
            trt.IDebugListener.__init__(self)
        def process_debug_tensor(self, addr, location, type, shape, name, stream):
            print("told of", name, tuple(shape))
            return True
    listener = Listener()
    runner.set_debug_listener(listener)
    print(list(runner.infer({"x": ONES})))
""",
    "raw buffers": """
from PKG.backend.trt import EngineFromNetwork, NetworkFromOnnxPath, TrtRunner
from PKG.common import FormattedArray
with TrtRunner(EngineFromNetwork(NetworkFromOnnxPath("identity.onnx"))) as runner:
    found = runner.infer({"x": ONES}, return_raw_buffers=True)["y"]
    print(type(found).__name__, found.array.nbytes, tuple(found.shape))
    fed = FormattedArray(ONES.reshape(-1), shape=(1, 1, 2, 2))
    print(runner.infer({"x": fed}, check_inputs=False)["y"])
    metadata = runner.get_input_metadata(use_numpy_dtypes=False)
    print(metadata, list(metadata), runner.last_inference_time() > 0)
""",
    "readers": """
from PKG.backend.trt import (
    BufferFromEngine, EngineFromNetwork, EngineFromPath, FileReader, NetworkFromOnnxPath, SaveEngine, buffer_from_engine,
)
engine = SaveEngine(EngineFromNetwork(NetworkFromOnnxPath("identity.onnx")), "e.engine")()
print(bytes(memoryview(buffer_from_engine(engine))) == open("e.engine", "rb").read(), callable(BufferFromEngine(engine)))
with FileReader("e.engine", getattr(trt, "IStreamReader", None) or trt.IStreamReaderV2) as reader:
    print(len(reader.read(10)), reader.filepath, reader.mode)
print(EngineFromPath(lambda: "e.engine")().num_io_tensors)
""",
    "files that are not there": """
from PKG.backend.trt import engine_from_path, load_plugins
for load in (engine_from_path, lambda path: load_plugins([path])):
    try:
        load("nowhere.file")
    except OSError:
        print("as Python's own error")
""",
    "util": """
from PKG.backend.trt import CreateConfig, create_network, network_from_onnx_path, util
from PKG.backend.trt import Profile
builder, network, parser = network_from_onnx_path("chain.onnx")
print(util.get_network_input_names_meta(network), util.get_network_output_names_meta(network))
print(sorted(util.get_all_tensors(network)), sorted(util.get_all_io_tensors(network)))
print([util.get_layer_output_names_meta(layer)[0] for layer in network], util.get_layer_class_mapping().keys() > set())
util.mark_layerwise(network)
print(sorted(util.get_network_output_names_meta(network)[0]))
util.unmark_outputs(network, ["m*"])
print(util.get_network_output_names_meta(network)[0])
util.mark_outputs(network, ["m"])
print(util.get_network_output_names_meta(network)[0])
for act in (lambda: util.mark_outputs(network, ["nowhere"]), lambda: util.mark_outputs(network, ["n*where"]),
            lambda: util.mark_by_layer_type(network, ["no type"]), lambda: util.fail_unavailable("it")):
    try:
        act()
    except Exception as error:
        print(type(error).__name__ != "AttributeError")
print(util.get_hwc_shape_from_chw((1, 3, 4, 5)), util.get_chw_shape_from_hwc((1, 4, 5, 3)))
profile = Profile().add("x", (1, 1, 2, 2), (1, 1, 2, 2), (1, 1, 2, 2))
print(profile, repr(profile), list(profile["x"]))
config = CreateConfig(profiles=[profile], memory_pool_limits={trt.MemoryPoolType.WORKSPACE: 1 << 20})(builder, network)
print(config.get_memory_pool_limit(trt.MemoryPoolType.WORKSPACE), "Memory Pools" in util.str_from_config(config, network))
print(util.get_input_metadata_from_network(network, None))
""",
    "tactics": """
from PKG.backend.trt import (
    Algorithm, CreateConfig, EngineFromNetwork, NetworkFromOnnxPath, TacticRecorder, TacticReplayData, TacticReplayer, TensorInfo,
)
from PKG.json import to_json
def build(selector):
    config = CreateConfig(algorithm_selector=selector)
    return EngineFromNetwork(NetworkFromOnnxPath("chain.onnx"), config)()
data = TacticReplayData()
build(TacticRecorder(data))
print(len(data), list(data.keys()), str(data).count("Implementation: "))
data.save("t.json")
print(TacticReplayData.load("t.json") == data, build(TacticReplayer(data)).num_layers, build(TacticReplayer("t.json")).num_layers)
build(TacticRecorder("u.json"))
print(list(TacticReplayData.load("u.json").keys()))
info = TensorInfo(trt.float32, (4, 1), -1, 1)
print(repr(info), info == TensorInfo(trt.float32, [4, 1], -1, 1), len({info, TensorInfo(trt.float32, (4, 1), -1, 1)}))
algorithm = Algorithm(5, 6, [info], [])
print(algorithm, TacticReplayData().add("l", algorithm)["l"] == Algorithm(5, 6, (info,), ()), hash(algorithm) == hash(Algorithm(5, 6, [info], [])))
print(to_json(TacticReplayData().add("l", algorithm)))
for act in (lambda: TensorInfo("float32", (1,), None, None), lambda: TensorInfo(trt.float32, 3, None, None),
            lambda: Algorithm(1, 2, [3], []), lambda: TacticReplayData().add("l", 3)):
    try:
        act()
    except Exception as error:
        print("Exception" in type(error).__mro__[-3].__name__)
data["chain"] = algorithm
wrong = TacticReplayData({name: algorithm for name in data.keys()})
try:
    build(TacticReplayer(wrong))
except Exception as error:
    print("no such tactic")
""",
    "ownership": """
from PKG.backend.trt import CreateConfig, EngineFromNetwork, NetworkFromOnnxPath, TrtRunner, engine_from_network
from PKG.cuda import DeviceArray, DeviceView, Stream, wrapper
engine = engine_from_network(NetworkFromOnnxPath("identity.onnx"))
context = engine.create_execution_context()
runners = [TrtRunner(engine), TrtRunner(context), TrtRunner(lambda: engine), TrtRunner(lambda: context)]
for runner in runners * 2:
    with runner:
        print(runner.infer({"x": ONES})["y"].sum(), runner.engine is engine, runner.context is context, runner.is_active)
    print(runner.is_active, hasattr(runner, "engine"), runner.inference_time)
print(engine.num_io_tensors, context.active_optimization_profile)
for bad in (None, 3, "engine"):
    try:
        with TrtRunner(bad):
            pass
    except Exception as error:
        print("not an engine")
for act in (lambda: TrtRunner(engine).infer({"x": ONES}), lambda: TrtRunner(engine).set_profile(0)):
    try:
        act()
    except Exception as error:
        print("Must be activated" in str(error))
with DeviceArray((1, 1, 2, 2), np.float32) as array, Stream() as stream, TrtRunner(engine) as runner:
    array.copy_from(ONES, stream)
    stream.synchronize()
    for fed in (array, DeviceView(array.ptr, array.shape, array.dtype), array.view()):
        print(runner.infer({"x": fed})["y"].sum(), fed.nbytes, fed.shape, fed.itemsize)
    kept = runner.infer({"x": ONES * 3}, copy_outputs_to_host=False)["y"]
    print(type(kept).__name__, kept.numpy().sum(), kept.shape, np.dtype(kept.dtype).name)
    print(array.allocated_nbytes, array.resize((2, 2)) is array, array.shape, array.copy_to(np.zeros((2, 2), np.float32)).sum())
print(array.ptr, array.shape, array.allocated_nbytes)
print(DeviceArray.raw((7,)).nbytes, DeviceArray().shape, DeviceArray(dtype=np.int8).nbytes, repr(DeviceView(16, (1, 2), np.float32)), str(DeviceView(16, (1, 2), np.int8)))
for act in (lambda: DeviceArray((2,), np.float32).view((3,)), lambda: DeviceArray((4,), np.float32).copy_to(np.zeros(2, np.float32)),
            lambda: DeviceArray((2, 2), np.float32).copy_from(np.ones((2, 4), np.float32)[:, ::2])):
    try:
        act()
        print("no error")
    except Exception as error:
        print("error")
""",
    "caches": """
from PKG.backend.trt import CreateConfig, EngineBytesFromNetwork, EngineFromBytes, EngineFromNetwork, NetworkFromOnnxPath, PostprocessConfig
from PKG.common import TensorMetadata
import os
config = CreateConfig(load_timing_cache="timing.cache")
for _ in range(2):
    loader = EngineFromNetwork(NetworkFromOnnxPath("chain.onnx"), config, save_timing_cache="timing.cache")
    print(loader.timing_cache_path, loader().num_layers, os.path.getsize("timing.cache") > 0)
plan = EngineBytesFromNetwork(NetworkFromOnnxPath("chain.onnx"))()
print(isinstance(plan, trt.IHostMemory), EngineFromBytes(plan)().num_layers, EngineFromBytes(lambda: bytes(plan), runtime=trt.Runtime(LOGGER()))().num_layers)
def post(builder, network, config):
    config.set_flag(trt.BuilderFlag.REFIT)
print(EngineFromNetwork(NetworkFromOnnxPath("chain.onnx"), PostprocessConfig(CreateConfig(), post))().refittable)
for act in (lambda: PostprocessConfig(CreateConfig(), None), lambda: EngineFromBytes(b"none")(), lambda: CreateConfig(exclude_lean_runtime=True)(*NetworkFromOnnxPath("chain.onnx")()[:2])):
    try:
        act()
        print("no error")
    except Exception as error:
        print("error")
""",
}
