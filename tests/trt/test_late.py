"""Engines built on the first feed, for dynamic models without a profile."""

from collections.abc import Callable

RunIn = Callable[..., str]


def test_the_profile_range_widens_with_the_fed_shapes(scenario: Callable[[str], str]) -> None:
    said = scenario("""
model = conv()
runner = opened(model)
print(runner.inputs[0].shape, runner.outputs)
for batch in (4, 4, 2, 3):
    found = runner.infer(feed(batch)).outputs["y"]
    print(np.abs(found - reference(model, feed(batch))["y"]).max() < 1e-5, id(runner._runner) and [
        tuple(shape)[0] for shape in runner._runner.execution.engine.engine.get_tensor_profile_shape("x", 0)])
print(runner.notes()[0])
runner.close(), runner.close()
""")
    lines = said.splitlines()
    assert lines[0] == "('N', 3, 8, 8) ['y']"
    assert lines[1:5] == ["True [4, 4, 4]", "True [4, 4, 4]", "True [2, 2, 4]", "True [2, 2, 4]"]
    assert "built for the shapes that are fed (x)" in lines[5]


def test_given_shapes_build_immediately(scenario: Callable[[str], str]) -> None:
    said = scenario("""
runner = opened(conv(), shapes={"x": [3, 3, 8, 8]})
print(type(runner).__name__, runner.infer(feed(3)).outputs["y"].shape)
""")
    assert said.strip() == "TrtRunner (3, 4, 6, 6)"


def test_a_scripted_network_is_built_on_the_first_feed(scenario: Callable[[str], str]) -> None:
    said = scenario("""
from pathlib import Path
Path("net.py").write_text('''
import tensorrt as trt
def load_network(builder, network):
    x = network.add_input("x", trt.float32, (2, 2))
    y = network.add_elementwise(x, x, trt.ElementWiseOperation.SUM).get_output(0)
    y.name = "y"
    network.mark_output(y)
def broken():
    raise ValueError("on purpose")
def odd():
    return 5
''')
script = Loadable(path=Path("net.py"))
def network(name): return TrtOptions(network=NetworkOptions(function=name))
print(opened(script, network("load_network")).infer({"x": np.ones((2, 2), "f")}).outputs["y"].tolist())
print(error_of(lambda: opened(script, network("broken"))))
print(error_of(lambda: opened(script, network("odd"))))
print(error_of(lambda: opened(script, network("none"))))
""").splitlines()
    assert said[0] == "[[2.0, 2.0], [2.0, 2.0]]"
    assert "net.py, line 9, in broken: ValueError: on purpose" in said[1]
    assert "must return (builder, network)" in said[2]
    assert "has no 'none'; it has: " in said[3]


def test_marks_timing_caches_and_weight_streaming_work_on_late_builds(scenario: Callable[[str], str]) -> None:
    said = scenario("""
model = conv(2)
runner = opened(model, network=NetworkOptions(outputs=["c"]))
print(runner.outputs)
print(error_of(lambda: opened(model, network=NetworkOptions(outputs=["z"]))))
strict = ConfigOptions(error_on_timing_cache_miss=True)
print(error_of(lambda: build_engine(model, TrtOptions(config=strict, fresh=True)))[:80])
build_engine(model, TrtOptions(save_timing_cache="t.cache", fresh=True))
print(build_engine(model, TrtOptions(config=strict, load_timing_cache="t.cache", fresh=True)).cached)
print(error_of(lambda: build_engine(model, TrtOptions(load_timing_cache="none.cache"))))
open("bad.cache", "wb").write(b"rubbish")
print(error_of(lambda: build_engine(model, TrtOptions(load_timing_cache="bad.cache")))[:60])
streaming = ConfigOptions(weight_streaming=True)
network = NetworkOptions(strongly_typed=True)
runner = opened(model, config=streaming, network=network, run=RunOptions(budget="50%"))
print(runner.execution.engine.engine.weight_streaming_budget_v2, runner.infer(feed(2)).outputs["y"].shape)
print(error_of(lambda: opened(model, run=RunOptions(budget="50%"))))
""").splitlines()
    assert said[0] == "['c']"
    assert "the network has no tensor 'z' to mark; it has c, y" in said[1]
    assert "cannot build the engine" in said[2]
    assert said[3] == "False"
    assert "none.cache" not in said[4]  # it is a first one
    assert "bad.cache: not a timing cache" in said[5]
    assert said[6] == "216 (2, 4, 6, 6)"
    assert "was not built with --weight-streaming" in said[7]
