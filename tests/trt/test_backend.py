"""Engines built, saved, loaded and run like any other runner: both versions, and over the real bindings."""

from collections.abc import Callable

import pytest
from trt.conftest import ON_10, ON_11

RunIn = Callable[..., str]


def test_a_built_saved_and_loaded_engine_agrees_with_onnxruntime(scenario: RunIn) -> None:
    said = scenario("""
model = conv()
runner = opened(model, profiles=[range_of(1, 2, 4)], save_engine="m.engine")
again = opened(Loadable(), engine="m.engine")
by_path = opened(Loadable(path=__import__("pathlib").Path("m.engine")))
for batch in (3, 1, 4):
    expected = reference(model, feed(batch))["y"]
    for each in (runner, again, by_path):
        found = each.infer(feed(batch)).outputs["y"]
        assert found.shape == expected.shape and np.abs(found - expected).max() < 1e-5, each
print(runner.inputs[0].shape, runner.outputs)
runner.close(), runner.close()
print(error_of(lambda: runner.infer(feed(1))))
""")
    assert said.splitlines()[0] == "(None, 3, 8, 8) ['y']"
    assert "is closed" in said


def test_a_shape_outside_the_profile_names_the_profile_that_takes_it(scenario: RunIn) -> None:
    said = scenario("""
runner = opened(conv(), profiles=[range_of(1, 2, 4), range_of(8, 8, 16)])
print(error_of(lambda: runner.infer(feed(9))))
print(error_of(lambda: runner.infer(feed(5))))
runner.execution.set_profile(1)
print(runner.infer(feed(9)).outputs["y"].shape)
print(error_of(lambda: opened(conv(), profiles=[range_of(1, 2, 4)], run=RunOptions(profile=3))))
""")
    first, second, third, fourth = said.splitlines()
    assert "takes [1, 3, 8, 8] to [4, 3, 8, 8]; profile 1 takes it (--optimization-profile 1)" in first
    assert "--trt-max-shapes" in second and "profile 1 takes it" not in second
    assert third == "(9, 4, 6, 6)"
    assert "the engine has 1, numbered from 0" in fourth


@pytest.mark.parametrize(
    ("profile", "told"),
    [
        ("ProfileSpec(min={'z': [1]})", "the network has no input 'z'; its inputs: x [-1, 3, 8, 8]"),
        ("ProfileSpec(min={'x': [1, 3, 8]})", "[1, 3, 8] does not fit input 'x', which is [-1, 3, 8, 8]"),
        ("ProfileSpec(min={'x': [4, 3, 8, 8]}, max={'x': [2, 3, 8, 8]})", "min <= opt <= max is needed"),
    ],
)
def test_profiles_that_do_not_match_are_reported(scenario: RunIn, profile: str, told: str) -> None:
    assert told in scenario(f"print(error_of(lambda: build_engine(conv(), TrtOptions(profiles=[{profile}]))))")


def test_missing_shapes_of_a_profile_are_filled_in_and_reported(scenario: RunIn) -> None:
    said = scenario("""
for given in (ProfileSpec(min={"x": [2, 3, 8, 8]}), ProfileSpec(max={"x": [4, 3, 8, 8]}),
              ProfileSpec(opt={"x": [3, 3, 8, 8]})):
    runner = opened(conv(), profiles=[given])
    shapes = runner.execution.engine.engine.get_tensor_profile_shape("x", 0)
    print([tuple(shape)[0] for shape in shapes], len(runner.notes()))
""")
    assert said.splitlines() == ["[2, 2, 2] 1", "[1, 4, 4] 1", "[3, 3, 3] 1"]


def test_an_output_with_a_data_dependent_shape_is_returned(scenario: RunIn) -> None:
    said = scenario("""
model = bytes_of([helper.make_node("NonZero", ["x"], ["y"], "where")], [value("x", [6])],
                 [value("y", [1, None], TensorProto.INT64)])
runner = opened(model)
for x in ([0, 1, 0, 2, 0, 3], [0] * 6, [1] * 6):
    print(runner.infer({"x": np.array(x, "f")}).outputs["y"].tolist())
""")
    assert said.splitlines() == ["[[1, 3, 5]]", "[[]]", "[[0, 1, 2, 3, 4, 5]]"]


def test_buffers_grow_and_are_reused(scenario: RunIn) -> None:
    said = scenario("""
from cuda import _host
runner = opened(conv(), profiles=[range_of(1, 2, 8)])
before = _host.memory.used
sizes = []
for batch in (2, 8, 1, 8, 3):
    runner.infer(feed(batch))
    sizes.append(_host.memory.used - before)
print(sizes[0] < sizes[1] == sizes[2] == sizes[3] == sizes[4])
runner.close()
print(_host.memory.used)
""")
    assert said.split() == ["True", "0"]


@ON_11
@pytest.mark.parametrize("strategy", ["static", "profile", "runtime"])
def test_every_allocation_strategy_runs(scenario: RunIn, strategy: str) -> None:
    said = scenario(f"""
model = conv()
runner = opened(model, profiles=[range_of(1, 2, 4)], run=RunOptions(strategy={strategy!r}))
print(np.abs(runner.infer(feed(2)).outputs["y"] - reference(model, feed(2))["y"]).max() < 1e-5)
""")
    assert said.strip() == "True"


def test_faults_are_errors_with_their_reason(scenario: RunIn) -> None:
    attempt = "print(error_of(lambda: opened(conv(1))))"
    unsupported = scenario(attempt, LAYERWISE_FAKE_TRT_FAULTS='{"unsupported_ops": ["Relu"]}')
    assert "TensorRT's parser refuses the model: node relu (Relu):" in unsupported
    failing = scenario(attempt, LAYERWISE_FAKE_TRT_FAULTS='{"fail_build": "no kernel"}')
    assert "TensorRT cannot build the engine" in failing and "no kernel" in failing
    small = scenario(attempt, LAYERWISE_FAKE_TRT_FAULTS='{"device_memory": 1000}')
    assert "cannot make an execution context" in small and "OutOfMemory" in small


@ON_10
def test_files_that_are_not_engines_are_rejected(scenario: RunIn) -> None:
    said = scenario("""
open("bad.engine", "wb").write(b"not an engine")
print(error_of(lambda: opened(Loadable(), engine="bad.engine")))
print(error_of(lambda: opened(Loadable(), engine="missing.engine")))
""")
    assert "BadFile: bad.engine: deserializeCudaEngine" in said
    assert "BadFile: missing.engine: No such file" in said


def test_engines_are_cached_by_model_options_version_and_gpu(scenario: RunIn, trt_version: int) -> None:
    said = scenario("""
from layerwise._tool.backends.trt.store import Store
model, options = conv(1), TrtOptions()
print([build_engine(model, options).cached for _ in range(2)], build_engine(conv(2), options).cached)
print(build_engine(model, TrtOptions(config=ConfigOptions(optimization_level=2))).cached)
print(build_engine(model, TrtOptions(fresh=True)).cached)
print(Store(trt, gpu="A").key(model, options) == Store(trt, gpu="B").key(model, options))
print(Store(trt, gpu="A").key(model, options) == Store(trt, gpu="A").key(model, TrtOptions(run=RunOptions(profile=1))))
""")
    assert said.splitlines() == ["[False, True] False", "False", "False", "False", "True"]


def test_an_engine_that_a_script_took_part_in_is_built_anew(scenario: RunIn) -> None:
    said = scenario("""
import os
from pathlib import Path
Path("level.py").write_text("LEVEL = 1")
Path("code.py").write_text(
    "import os, level\\nlevels = []\\n"
    "def postprocess_config(builder, network, config): config.builder_optimization_level = level.LEVEL\\n"
    "def postprocess(network): network.name = os.environ.get('NAME', 'none')\\n"
)
model = conv(1)
for options in (
    TrtOptions(config=ConfigOptions(config_postprocess="code.py")),
    TrtOptions(network=NetworkOptions(postprocess=["code.py"])),
):
    told = [build_engine(model, options).cached for _ in range(2)]
    print(told, build_engine(model, options).path)
""")
    assert said.splitlines() == ["[False, False] None"] * 2


def test_weights_kept_outside_and_named_files_count_by_content(scenario: RunIn) -> None:
    said = scenario("""
import os
import onnx
from pathlib import Path
from layerwise._tool.backends.trt.store import Store
proto = onnx.load_from_string(conv(1).read())
onnx.save(proto, "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
Path("t.cache").write_bytes(b"12345678")
options = TrtOptions(load_timing_cache="t.cache")
def key():
    return Store(trt, gpu="A").key(Loadable(path=Path("m.onnx")), options).hash()
keys = [key()]
for name in ("w.bin", "t.cache"):
    state = os.stat(name)
    data = bytearray(Path(name).read_bytes())
    data[1] ^= 1
    Path(name).write_bytes(data)
    os.utime(name, ns=(state.st_atime_ns, state.st_mtime_ns))
    keys.append(key())
print(len(set(keys)), key() == keys[-1])
""")
    assert said.strip() == "3 True"


def test_progress_is_reported_and_can_end_a_build(scenario: RunIn) -> None:
    said = scenario("""
steps = []
build_engine(conv(1), TrtOptions(fresh=True), progress=lambda *step: steps.append(step))
print(steps)
class Cancelled(Exception): pass
def give_up(done, total, text):
    raise Cancelled(text)
try:
    build_engine(conv(1), TrtOptions(fresh=True), progress=give_up)
except Cancelled as error:
    print("cancelled", error)
""")
    assert "Building engine from subgraph > Timing graph nodes" in said
    assert "cancelled" in said


def test_a_build_in_a_thread_reports_progress_and_can_be_cancelled(scenario: RunIn) -> None:
    said = scenario(
        """
import threading
from concurrent.futures import ThreadPoolExecutor
from layerwise._tool.backends.builds import OF_PROCESS
heard = threading.Event()
OF_PROCESS.progress = lambda done, total, text: heard.set()
found = ThreadPoolExecutor(1).submit(error_of, lambda: opened(conv(1)))
print(heard.wait(20))
OF_PROCESS.over = True
print(found.result(20))
""",
        LAYERWISE_FAKE_TRT_FAULTS='{"waits": "never"}',
    )
    assert said.splitlines() == ["True", "LayerwiseError: the build was given up"]


def test_cuda_graphs_are_captured_once_per_shape(scenario: RunIn) -> None:
    said = scenario("""
from cuda.bindings import runtime as cudart
made, real = [], cudart.cudaGraphInstantiate
def instantiate(graph, flags):
    made.append(graph)
    return real(graph, flags)
cudart.cudaGraphInstantiate = instantiate
model = conv()
runner = opened(model, profiles=[range_of(1, 2, 4)], run=RunOptions(cuda_graph=True))
for batch in (2, 2, 4, 4, 2):
    other = {"x": feed(batch)["x"] * len(made)}
    print(len(made), np.abs(runner.infer(other).outputs["y"] - reference(model, other)["y"]).max() < 1e-5)
runner.close(), runner.close()
where = bytes_of([helper.make_node("NonZero", ["x"], ["y"], "where")], [value("x", [6])],
                 [value("y", [1, None], TensorProto.INT64)])
print(error_of(lambda: opened(where, run=RunOptions(cuda_graph=True)).infer({"x": np.ones(6, "f")})))
""")
    lines = said.splitlines()
    assert lines[:5] == ["0 True", "1 True", "1 True", "2 True", "2 True"]
    assert "UsageError: a CUDA graph cannot hold 'y'" in lines[5]


def test_concurrent_contexts_must_agree(scenario: RunIn) -> None:
    said = scenario("""
from cuda import _host
model, before = conv(), _host.memory.used
runner = opened(model, profiles=[range_of(1, 2, 4)], run=RunOptions(contexts=3))
print(np.abs(runner.infer(feed(3)).outputs["y"] - reference(model, feed(3))["y"]).max() < 1e-5)
runner.close(), runner.close()
print(_host.memory.used == before)
random = bytes_of([helper.make_node("RandomNormalLike", ["x"], ["y"], "draw")], [value("x", [8])], [value("y", [8])])
print(error_of(lambda: opened(random, run=RunOptions(contexts=2)).infer({"x": np.ones(8, "f")})))
""")
    lines = said.splitlines()
    assert lines[:2] == ["True", "True"] and "context 2, running at the same time, gives another 'y'" in lines[2]


def test_errors_include_the_recorded_code(scenario: RunIn) -> None:
    said = scenario("print(error_of(lambda: opened(conv(1))))", LAYERWISE_FAKE_TRT_FAULTS='{"fail_build": "no kernel"}')
    assert said.strip().endswith("(no kernel) [INTERNAL_ERROR]") and said.count("no kernel") == 1
