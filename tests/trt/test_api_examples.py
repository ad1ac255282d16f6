# ruff: noqa: E501 (scripts in texts)
"""What the examples of Polygraphy's API do, in scripts of our own: with one word changed they print the same on both.

The numbers are those of its examples/api; the scripts in examples/ are tested in test_examples.py.
"""

import os
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from trt.conftest import fake_environment
from trt.test_examples import MODULES, with_cuda_runtime
from trt.zygote import Zygote

SCRIPTS = {
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
ONLY_10 = {"04 calibration"}


def identity(name: str, shape: list[object], ends: tuple[str, str], between: str = "") -> onnx.ModelProto:
    """A model that gives its input back, by way of another tensor."""
    names = [ends[0], *([between] if between else []), ends[1]]
    nodes = [helper.make_node("Identity", [a], [b], f"to_{b}") for a, b in pairwise(names)]
    values = [helper.make_tensor_value_info(end, TensorProto.FLOAT, shape) for end in ends]
    graph = helper.make_graph(nodes, name, values[:1], values[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture
def models(tmp_path: Path) -> Path:
    from polygraphy.comparator import RunResults
    from polygraphy.json import save_json

    onnx.save(identity("identity", [1, 1, 2, 2], ("x", "y")), tmp_path / "identity.onnx")
    onnx.save(identity("chain", [1, 1, 2, 2], ("x", "y"), "m"), tmp_path / "chain.onnx")
    onnx.save(identity("dynamic", ["N", 3, 4, 4], ("X", "Y")), tmp_path / "dynamic_identity.onnx")
    save_json([{"x": np.ones((1, 2), np.float32)}], str(tmp_path / "inputs.json"))
    results = RunResults()
    results.add([{"y": np.arange(3)}], runner_name="a")
    results.save(str(tmp_path / "outputs.json"))
    return tmp_path


@pytest.fixture(scope="module")
def polygraphys() -> Iterator[Callable[[int], Zygote]]:
    made: dict[int, Zygote] = {}

    def find(version: int) -> Zygote:
        if version not in made:
            environment = {**os.environ, **fake_environment(version), **with_cuda_runtime()}
            made[version] = Zygote(environment, *[f"polygraphy.{module}" for module in MODULES])
        return made[version]

    yield find
    for each in made.values():
        each.close()


def script(name: str, package: str) -> str:
    head = (
        "import numpy as np\nimport tensorrt as trt\nfrom PKG.logger import G_LOGGER as LOG\nLOG.module_severity = 60\n"
    )
    ones = "ONES = np.ones((1, 1, 2, 2), np.float32)\n"
    return f"{head}{ones}{SCRIPTS[name]}".replace("PKG", package)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_prints_what_it_prints_with_polygraphy(
    name: str, trt_version: int, in_fake: Callable[..., str], models: Path, polygraphys: Callable[[int], Zygote]
) -> None:
    if name in ONLY_10 and trt_version != 10:
        pytest.skip("TensorRT 11 has no calibrators, and Polygraphy nothing else")
    theirs = models / "theirs"
    theirs.mkdir()
    for path in models.glob("*.*"):
        (theirs / path.name).write_bytes(path.read_bytes())
    done = polygraphys(trt_version).run(script(name, "polygraphy"), str(theirs), {})
    assert done["code"] == 0, done["err"] + done["out"]
    said = in_fake(script(name, "layerwise"), LAYERWISE_HOME=str(models / "home"))
    assert said == done["out"] and said


def test_tensors_of_torch_calibrate_and_come_out(in_fake: Callable[..., str], models: Path) -> None:
    """Example 09; Polygraphy cannot run it here, as torch's own CUDA runtime is loaded."""
    place = Path(pytest.importorskip("torch").__file__).parents[1]
    head = f"import sys\nsys.path.append({str(place)!r})\nimport numpy as np, tensorrt as trt\n"
    said = in_fake(head + TORCH.replace("PKG", "layerwise"), LAYERWISE_HOME=str(models / "home"))
    assert "True cpu tensor([[[[1., 1.],\n          [1., 1.]]]])" in said
