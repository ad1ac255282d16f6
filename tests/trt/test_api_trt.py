"""layerwise.backend.trt and layerwise.cuda beyond the examples: results and errors."""

from collections.abc import Callable
from pathlib import Path

import pytest

SETUP = """
import sys
sys.path.insert(0, {root!r})
sys.path.insert(0, {tests!r})
import numpy as np, onnx, tensorrt as trt
from support import models
from layerwise.backend.trt import *
from layerwise.cuda import *
from layerwise.exception import PolygraphyException
from layerwise.logger import G_LOGGER
G_LOGGER.module_severity = G_LOGGER.CRITICAL
onnx.save(models.mlp(), "m.onnx")
feed = {{"x": np.linspace(-1, 1, 32, dtype=np.float32).reshape(2, 16)}}
profile = Profile().add("x", (1, 16), (2, 16), (4, 16))
def error_of(act):
    try:
        act()
    except PolygraphyException as error:
        return str(error)
def outputs(network, **options):
    with TrtRunner(EngineFromNetwork(network, CreateConfig(profiles=[profile], **options))) as runner:
        return runner.infer(feed)
"""


@pytest.fixture
def said(in_fake: Callable[..., str], tmp_path: Path) -> Callable[[str], list[str]]:
    """The lines that a script prints on the fake, alone and over the real bindings."""
    tests = Path(__file__).parents[1]
    setup = SETUP.format(root=str(tests.parent / ".editable"), tests=str(tests))
    return lambda source: in_fake(setup + source, LAYERWISE_HOME=str(tmp_path / "home")).splitlines()


def test_profiles_are_completed_or_rejected(said: Callable[[str], list[str]]) -> None:
    lines = said("""
builder, network, parser = network_from_onnx_path("m.onnx")
print(Profile().fill_defaults(network)["x"], Profile().fill_defaults(network, default_shape_value=3)["x"])
wrong = Profile().add("q", (1,), (1,), (1,))
print(error_of(lambda: Profile()["x"]), "|", error_of(lambda: wrong.to_trt(builder, network)))
print(error_of(lambda: create_config(builder, network, profiles=[Profile().add("x", (4, 16), (2, 16), (4, 16))])))
print(error_of(lambda: CreateConfig(fast=True)))
""")
    assert lines[0] == "(min=[1, 16], opt=[1, 16], max=[1, 16]) (min=[3, 16], opt=[3, 16], max=[3, 16])"
    assert "says nothing of 'x'" in lines[1] and "no input 'q'" in lines[1]
    assert "are not in order" in lines[2] and "no option fast" in lines[3]


def test_marked_outputs_stay_on_the_device_on_request(said: Callable[[str], list[str]]) -> None:
    lines = said("""
from layerwise import constants
every = outputs(ModifyNetworkOutputs(NetworkFromOnnxPath("m.onnx"), constants.MARK_ALL))
other = next(name for name in every if name != "y")
chosen = modify_network_outputs(network_from_onnx_path("m.onnx"), [other, "y"], exclude_outputs=["y"])
print(len(every) > 2, list(outputs(chosen)) == [other])
engine = engine_from_network(NetworkFromOnnxPath("m.onnx"), CreateConfig(profiles=[profile]))
with TrtRunner(engine) as runner, DeviceArray((2, 16), np.float32) as x:
    view = runner.infer({"x": x.copy_from(feed["x"])}, copy_outputs_to_host=False)["y"]
    print(type(view).__name__, view.shape, np.array_equal(view.numpy(), every["y"]))
    print(error_of(lambda: runner.infer({"x": np.ones((9, 16), np.float32)})))
    print(error_of(lambda: runner.set_profile(3)))
print(error_of(lambda: runner.infer(feed)))
print(error_of(lambda: engine_from_bytes(b"no engine")))
print(error_of(lambda: modify_network_outputs(network_from_onnx_path("m.onnx"), ["nowhere"])))
""")
    assert lines[:2] == ["True True", "DeviceView (2, 16) True"]
    assert "does not fit profile 0" in lines[2] and "the engine has 1" in lines[3]
    assert "Must be activated" in lines[4] and "the engine" in lines[5] and "no tensor 'nowhere'" in lines[6]


def test_low_precision_and_calibration_on_both_versions(said: Callable[[str], list[str]]) -> None:
    lines = said("""
plain = outputs(NetworkFromOnnxPath("m.onnx"))["y"]
half = outputs(NetworkFromOnnxPath("m.onnx"), fp16=True)["y"]
calibrator = Calibrator([feed], cache="m.cache")
eight = outputs(NetworkFromOnnxPath("m.onnx"), int8=True, calibrator=calibrator)["y"]
again = outputs(NetworkFromOnnxPath("m.onnx"), int8=True, calibrator=Calibrator([], cache="m.cache"))["y"]
for found in (half, eight):
    gap = np.abs(found - plain).max() / np.abs(plain).max()
    print(0 < gap < 0.1, gap)
print(np.array_equal(eight, again), np.abs(half - plain).max() < np.abs(eight - plain).max())
""")
    assert [line.split()[0] for line in lines] == ["True", "True", "True"] and lines[2] == "True True", lines


def test_calibration_data_that_do_not_match_are_reported(said: Callable[[str], list[str]]) -> None:
    lines = said("""
for batches in ([], [{"other": feed["x"]}]):
    print(error_of(lambda: outputs(NetworkFromOnnxPath("m.onnx"), int8=True, calibrator=Calibrator(batches))))
""")
    assert len(lines) == 2 and all(line != "None" for line in lines) and "x" in lines[1], lines


def test_tactics_are_recorded_and_replayed(said: Callable[[str], list[str]], trt_version: int) -> None:
    lines = said("""
import json
first = outputs(NetworkFromOnnxPath("m.onnx"), algorithm_selector=TacticRecorder("t.json"))
second = outputs(NetworkFromOnnxPath("m.onnx"), algorithm_selector=TacticReplayer("t.json"))
found = json.load(open("t.json"))
print(len(found.get("replay", found.get("ops"))) > 3, np.array_equal(first["y"], second["y"]))
replay = {"replay": {"/fc0/MatMul": {"implementation": 1, "tactic": 1, "inputs": [], "outputs": []}}}
json.dump(replay, open("t.json", "w"))
def again():
    outputs(NetworkFromOnnxPath("m.onnx"), algorithm_selector=TacticReplayer("t.json"))
print(error_of(again))
open("t.json", "w").write('{"no": "tactics"}')
print(error_of(again))
""")
    assert lines[0] == "True True"
    told = "its recorded tactic is not among those" if trt_version == 10 else "is a replay of TensorRT 10's"
    assert told in lines[1] and "t.json: not a tactic replay" in lines[2]


def test_device_arrays_grow_and_reject_mismatches(said: Callable[[str], list[str]]) -> None:
    lines = said("""
data = np.arange(6, dtype=np.float16).reshape(2, 3)
with DeviceArray(dtype=np.float16) as array, Stream() as stream:
    print(array.nbytes, np.array_equal(array.copy_from(data, stream).numpy(), data), array.view((3,)).numpy().tolist())
    other = wrapper().malloc(array.nbytes)
    wrapper().memcpy(other, array.ptr, array.nbytes, MemcpyKind.DeviceToDevice, stream.ptr)
    wrapper().stream_synchronize(stream.ptr)
    print(np.array_equal(DeviceView(other, (6,), np.float16).numpy(), data.ravel()))
    wrapper().free(other)
    print(error_of(lambda: array.copy_from(data.astype(np.int8))), "|", error_of(lambda: array.view((9,))))
    print(error_of(lambda: array.copy_to(np.empty(2, np.float16))), "|", error_of(lambda: array.copy_from(data.T)))
print(array.ptr, stream.ptr)
""")
    assert lines[:2] == ["2 True [0.0, 1.0, 2.0]", "True"] and lines[4] == "0 0"
    assert "float16, the host's int8" in lines[2] and "18 bytes does not fit into 12" in lines[2]
    assert lines[3].count("a contiguous array of 12 bytes") == 2


def test_networks_and_configs_are_changed_between_loaders(said: Callable[[str], list[str]], trt_version: int) -> None:
    lines = said("""
made = network_from_onnx_path("m.onnx")
formats = set_tensor_formats(made, {"y": [trt.TensorFormat.LINEAR]})
print(formats[1] is made[1], made[1].get_output(0).allowed_formats == 1 << int(trt.TensorFormat.LINEAR))
name = made[1].get_layer(0).name
print(error_of(lambda: set_layer_precisions(made, {"nowhere": trt.DataType.HALF})))
print(mark_debug(made, ["y"])[1].is_debug_tensor(made[1].get_output(0)))
print(error_of(lambda: set_tensor_datatypes(made, {"y": trt.DataType.HALF})))
config = CreateConfig(profiles=[profile], memory_pool_limits={trt.MemoryPoolType.WORKSPACE: 1 << 20}, refittable=True)
seen = PostprocessConfig(config, lambda builder, network, config: config.set_flag(trt.BuilderFlag.DIRECT_IO))
found = seen(*made[:2])
print(found.get_memory_pool_limit(trt.MemoryPoolType.WORKSPACE), found.get_flag(trt.BuilderFlag.REFIT),
      found.get_flag(trt.BuilderFlag.DIRECT_IO))
""")
    assert lines[0] == "True True" and lines[2] == "True" and lines[4] == "1048576 True True", lines
    assert ("nowhere" in lines[1]) == (trt_version == 10) and (lines[3] == "None") == (trt_version == 10), lines


def test_loaders_pass_on_data_loaders_caches_and_bytes(said: Callable[[str], list[str]]) -> None:
    lines = said("""
import pathlib
from layerwise.comparator import DataLoader
loader = DataLoader(iterations=2, val_range=(-1, 1))
low = outputs(NetworkFromOnnxPath("m.onnx"), int8=True, calibrator=Calibrator(loader))["y"]
print(list(loader.input_metadata), 0 < np.abs(low - outputs(NetworkFromOnnxPath("m.onnx"))["y"]).max())
config = CreateConfig(profiles=[profile], load_timing_cache="t.cache")
for _ in range(2):
    network = NetworkFromOnnxBytes(pathlib.Path("m.onnx").read_bytes())
    engine = EngineFromNetwork(network, config, save_timing_cache="t.cache")()
SaveEngine(engine, "m.engine")()
saved = pathlib.Path("m.engine").read_bytes()
again = engine_from_path("m.engine").num_io_tensors
print(pathlib.Path("t.cache").stat().st_size > 0, bytes_from_engine(engine) == saved, again)
print(error_of(lambda: load_plugins(["nowhere.so"])), "|", error_of(lambda: engine_from_path("nowhere.engine")))
print(load_plugins(obj=lambda: "loaded"), error_of(lambda: network_from_onnx_path("nowhere.onnx")))
""")
    assert lines[:2] == ["['x'] True", "True True 2"]
    assert "nowhere.so" in lines[2] and "nowhere.engine" in lines[2]
    assert lines[3].startswith("loaded") and "nowhere.onnx" in lines[3]


def test_a_calibrator_tells_of_its_batches_and_cache(said: Callable[[str], list[str]], trt_version: int) -> None:
    if trt_version != 10:
        pytest.skip("TensorRT 11 has no calibrators")
    lines = said("""
from layerwise import util
from layerwise.common import TensorMetadata
data = [{"x": feed["x"]}] * 2
calibrator = Calibrator(data, batch_size=3)
outputs(NetworkFromOnnxPath("m.onnx"), int8=True, calibrator=calibrator)
print(calibrator.num_batches, calibrator.get_batch_size(), list(calibrator.input_metadata))
buffers = calibrator.device_buffers
print(all(buffer.allocated_nbytes == 0 for buffer in buffers.values()), buffers.keys())
print(calibrator.read_calibration_cache() == calibrator.cache_contents != None, calibrator.is_polygraphy_calibrator)
with open("object.cache", "wb+") as cache:
    outputs(NetworkFromOnnxPath("m.onnx"), int8=True, calibrator=Calibrator(data, cache=cache))
    print(util.get_file_size(cache) > 0)
with Calibrator([{"x": np.ones((1, 16), np.float64)}]) as checked:
    checked.set_input_metadata(TensorMetadata().add("x", np.float32, (1, 16)))
    print(checked.get_batch(["x"]))
""")
    assert lines[0] == "2 3 ['x']" and lines[1] == "True dict_keys(['x'])"
    assert lines[2:] == ["True True", "True", "None"], lines
