# ruff: noqa: E501 (scripts in texts)
"""Scripts that do what the examples of Polygraphy's API do, by their numbers; PKG is the package."""

EXAMPLES = {
    "00 inference": """
from PKG.backend.common import BytesFromPath
from PKG.backend.trt import CreateConfig, EngineFromBytes, EngineFromNetwork, NetworkFromOnnxPath, SaveEngine, TrtRunner
config = CreateConfig(fp16=trt.__version__.startswith("10"))
build = SaveEngine(EngineFromNetwork(NetworkFromOnnxPath("identity.onnx"), config=config), path="identity.engine")
for load in (build, EngineFromBytes(BytesFromPath("identity.engine"))):
    with TrtRunner(load) as runner:
        print(runner.infer(feed_dict={"x": ONES})["y"])
""",
    "01 comparing": """
from PKG.backend.onnxrt import OnnxrtRunner, SessionFromOnnx
from PKG.backend.trt import EngineFromNetwork, NetworkFromOnnxPath, TrtRunner
from PKG.comparator import Comparator, CompareFunc, L2CompareFunc, PsnrCompareFunc, RunResults, SimpleCompareFunc
runners = [TrtRunner(EngineFromNetwork(NetworkFromOnnxPath("identity.onnx"))),
           OnnxrtRunner(SessionFromOnnx("identity.onnx"))]
results = Comparator.run(runners)
print(bool(Comparator.compare_accuracy(results, compare_func=CompareFunc.simple(atol=1e-8))))
both = Comparator.compare_accuracy(results, compare_func=[SimpleCompareFunc(atol=1e-8), L2CompareFunc(), PsnrCompareFunc()])
print(bool(both), [result.stats() for result in both])
results.save("inference_results.json")
print(RunResults.load("inference_results.json") == results)
""",
    "02 data set": """
from PKG.backend.trt import EngineFromNetwork, NetworkFromOnnxPath, TrtRunner
data = [ONES, np.zeros_like(ONES), ONES * 2]
with TrtRunner(EngineFromNetwork(NetworkFromOnnxPath("identity.onnx"))) as runner:
    print([np.array_equal(runner.infer(feed_dict={"x": each})["y"], each) for each in data])
""",
    "03 interoperating": """
from PKG import func
from PKG.backend.trt import CreateConfig, EngineFromNetwork, NetworkFromOnnxPath, TrtRunner

@func.extend(NetworkFromOnnxPath("identity.onnx"))
def load_network(builder, network, parser):
    network.name = "Mine"
    print(network.name)

@func.extend(CreateConfig())
def load_config(config):
    config.set_flag(trt.BuilderFlag.REFIT)

with TrtRunner(EngineFromNetwork(load_network, config=load_config)) as runner:
    print(runner.engine.refittable, runner.infer({"x": ONES})["y"])
""",
    "04 calibration": """
from PKG.backend.trt import Calibrator, CreateConfig, EngineFromNetwork, NetworkFromOnnxPath, TrtRunner
from PKG.logger import G_LOGGER
def data():
    for _ in range(4):
        yield {"x": ONES}
calibrator = Calibrator(data_loader=data(), cache="identity-calib.cache", batch_size=1)
build = EngineFromNetwork(NetworkFromOnnxPath("identity.onnx"), config=CreateConfig(int8=True, calibrator=calibrator))
with G_LOGGER.verbosity(G_LOGGER.CRITICAL), TrtRunner(build) as runner:
    print(runner.infer({"x": ONES})["y"], calibrator.get_batch_size())
print(open("identity-calib.cache", "rb").read()[:4])
""",
    "05 network by API": """
from PKG import func
from PKG.backend.trt import CreateNetwork, EngineFromNetwork, TrtRunner

@func.extend(CreateNetwork())
def create_network(builder, network):
    inp = network.add_input(name="input", shape=(8, 8), dtype=trt.float32)
    ones = network.add_constant(shape=(8, 8), weights=np.ones((8, 8), np.float32)).get_output(0)
    add = network.add_elementwise(inp, ones, op=trt.ElementWiseOperation.SUM).get_output(0)
    add.name = "output"
    network.mark_output(add)

with TrtRunner(EngineFromNetwork(create_network)) as runner:
    print(runner.infer({"input": np.arange(64, dtype=np.float32).reshape(8, 8)})["output"].sum())
""",
    "06 immediate": """
from PKG.backend.common import bytes_from_path
from PKG.backend.trt import (
    TrtRunner, create_config, engine_from_bytes, engine_from_network, network_from_onnx_path, save_engine,
)
builder, network, parser = network_from_onnx_path("identity.onnx")
before = network.get_output(0)
network.unmark_output(before)
output = network.add_identity(before).get_output(0)
output.name = "output"
network.mark_output(output)
config = create_config(builder, network, fp16=trt.__version__.startswith("10"))
engine = engine_from_network((builder, network), config)
save_engine(engine, path="identity.engine")
for each in (engine, engine_from_bytes(bytes_from_path("identity.engine"))):
    with TrtRunner(each) as runner:
        print(runner.infer(feed_dict={"x": ONES})["output"])
""",
    "07 contexts": """
from PKG.backend.trt import CreateConfig, Profile, TrtRunner, engine_from_network, network_from_onnx_path, save_engine
from PKG.logger import G_LOGGER
shape = lambda batch: (batch, 3, 4, 4)
profiles = [Profile().add("X", min=shape(1), opt=shape(1), max=shape(1)),
            Profile().add("X", min=shape(1), opt=shape(4), max=shape(32)),
            Profile().add("X", min=shape(64), opt=shape(64), max=shape(64))]
engine = engine_from_network(network_from_onnx_path("dynamic_identity.onnx"), config=CreateConfig(profiles=profiles))
save_engine(engine, "dynamic_identity.engine")
low_latency = TrtRunner(engine.create_execution_context())
with G_LOGGER.verbosity(G_LOGGER.CRITICAL):
    batching = TrtRunner(engine.create_execution_context(), optimization_profile=1)
    offline = TrtRunner(engine.create_execution_context)
image = np.ones(shape(1), np.float32)
def run(runner, batch):
    fed = np.repeat(image, batch, axis=0)
    return np.array_equal(runner.infer({"X": fed})["Y"], fed)
with low_latency:
    print(run(low_latency, 1), low_latency.engine is engine or "same")
    with batching:
        print(run(batching, 4))
with batching:
    print(run(batching, 16), batching.context.active_optimization_profile)
with offline:
    offline.set_profile(2)
    print(run(offline, 64))
""",
    "08 saved results": """
from PKG.comparator import RunResults
from PKG.json import load_json
[feed_dict] = load_json("inputs.json")
for name, array in feed_dict.items():
    print(name, array)
for runner_name, [outputs] in RunResults.load("outputs.json").items():
    for name, array in outputs.items():
        print(runner_name, name, array)
with open("outputs.json") as stream:
    print(list(RunResults.load(stream).keys()))
""",
    "10 streaming": """
from PKG.backend.onnxrt import OnnxrtRunner, SessionFromOnnx
from PKG.comparator import Comparator, RunResults
def load_data():
    for index in range(5):
        yield {"x": ONES * index}
def runner(name):
    return OnnxrtRunner(SessionFromOnnx("identity.onnx"), name=name)
for _ in Comparator.run([runner("golden")], data_loader=load_data(), save_outputs_path="golden", streaming=True):
    pass
import os
print(sorted(os.listdir("golden")))
live = [Comparator.run([runner("a"), runner("b")], data_loader=load_data(), streaming=True)]
print(bool(Comparator.compare_accuracy(live)))
live = Comparator.run([runner("onnxrt")], data_loader=load_data(), streaming=True)
found = Comparator.compare_accuracy([live, RunResults.load_streaming("golden")])
print(bool(found), found[0].stats(), list(found[0]))
""",
}

TORCH = """
import torch
from PKG.backend.trt import Calibrator, CreateConfig, NetworkFromOnnxPath, TrtRunner, engine_from_network
def data():
    for _ in range(4):
        yield {"x": torch.ones((1, 1, 2, 2), dtype=torch.float32)}
options = {"int8": True, "calibrator": Calibrator(data_loader=data())}
engine = engine_from_network(NetworkFromOnnxPath("identity.onnx"), config=CreateConfig(**options))
with TrtRunner(engine) as runner:
    found = runner.infer({"x": torch.ones((1, 1, 2, 2), dtype=torch.float32)})["y"]
    print(isinstance(found, torch.Tensor), found.device.type, found)
"""
