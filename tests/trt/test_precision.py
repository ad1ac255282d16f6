"""Reduced precision: builder flags on 10, the graph on 11 and on request; INT8 both ways; the method is reported."""

from collections.abc import Callable

import pytest

RunIn = Callable[..., str]


HEADER = """
def header(options, model=None):
    plan = build_engine(model or conv(2), options)
    from tensorrt._plan import from_bytes
    found = from_bytes(plan.data).header
    return found, {layer["name"]: layer["precision"] for layer in found["layers"]}, plan.told
"""


@pytest.mark.parametrize(("option", "kind", "low"), [("fp16", "HALF", "float16"), ("bf16", "BF16", "bfloat16")])
def test_low_precision_by_flag_on_10_and_in_the_graph_on_11(
    scenario: Callable[[str], str], trt_version: int, option: str, kind: str, low: str
) -> None:
    said = scenario(
        HEADER
        + f"""
try:
    found, layers, told = header(TrtOptions(config=ConfigOptions({option}=True)))
    print(found["flags"], found["strongly_typed"], layers["conv"], told)
except LayerwiseError as error:
    print(error)
"""
    )
    if trt_version == 10:
        assert f"'{option.upper()}'" in said and "False" in said and kind in said
    elif option == "fp16":
        assert "FP16" not in said and f"True {kind}" in said and f"2 nodes are {low}" in said
    else:
        assert f"2 nodes are {low}" in said or "the fake cannot run this network" in said


def test_fp16_in_the_graph_on_request_is_the_same_on_both(scenario: Callable[[str], str]) -> None:
    said = scenario(
        HEADER
        + """
found, layers, told = header(TrtOptions(config=ConfigOptions(fp16=True, graph_precision=True)))
print(found["strongly_typed"], layers["conv"], layers["relu"], "FP16" in found["flags"])
network = NetworkOptions(strongly_typed=True, layer_precisions={"relu": "float32"})
found, layers, told = header(TrtOptions(config=ConfigOptions(fp16=True), network=network))
print(found["strongly_typed"], layers["conv"], layers["relu"])
model = conv(2)
runner = opened(model, config=ConfigOptions(fp16=True, graph_precision=True))
difference = np.abs(runner.infer(feed(2)).outputs["y"] - reference(model, feed(2))["y"]).max()
print(0 < difference < 0.1)
"""
    )
    assert said.splitlines() == ["True HALF HALF False", "True HALF FLOAT", "True"]


def test_nodes_that_only_move_data_stay_as_they_are(scenario: Callable[[str], str]) -> None:
    said = scenario(
        HEADER
        + """
def moving(*computing):
    nodes = [helper.make_node("Transpose", ["x"], ["t"], "turn"), *computing,
             helper.make_node("Identity", ["a" if computing else "t"], ["y"], "same")]
    return bytes_of(nodes, [value("x", [2, 2])], [value("y", [2, 2])])
config = ConfigOptions(fp16=True, graph_precision=True)
for model in (moving(), moving(helper.make_node("Tanh", ["t"], ["a"], "tanh"))):
    _, layers, _ = header(TrtOptions(config=config), model)
    print(layers["turn"], layers["same"])
network = NetworkOptions(layer_precisions={"same": "float16"})
print(header(TrtOptions(config=config, network=network), moving())[1]["same"])
"""
    )
    assert said.splitlines() == ["FLOAT FLOAT", "HALF HALF", "HALF"]


def test_outputs_are_named_by_wildcards(scenario: Callable[[str], str]) -> None:
    said = scenario("""
def outputs(*names, exclude=()):
    runner = opened(conv(2), network=NetworkOptions(outputs=list(names), exclude_outputs=list(exclude)))
    return sorted(runner.infer(feed(2)).outputs)
print(outputs("[cd]"), outputs("*", exclude=["y*"]), outputs("c", "*"))
print(error_of(lambda: outputs("none*")))
""")
    assert said.splitlines()[0] == "['c'] ['c'] ['c', 'y']"
    assert "no tensor 'none*' to mark; it has c, y" in said


def test_int8_works_by_calibrator_and_in_the_graph(scenario: Callable[[str], str], trt_version: int) -> None:
    said = scenario(
        HEADER
        + """
config = ConfigOptions(int8=True, calibration_cache="c.cache", calibrator="IInt8MinMaxCalibrator")
found, layers, told = header(TrtOptions(config=config))
print("INT8" in found["flags"], [layer["kind"] for layer in found["layers"]].count("DEQUANTIZE") > 0)
print(" ".join(told))
import os
print(os.path.isfile("c.cache") and open("c.cache", "rb").read(4))
"""
    )
    flag, told, cache = said.splitlines()
    assert flag == ("True False" if trt_version == 10 else "False True")
    assert ("INT8 is calibrated by TensorRT (IInt8MinMaxCalibrator)" in told) == (trt_version == 10)
    assert ("QuantizeLinear and DequantizeLinear" in told) == (trt_version == 11)
    assert "random" in told
    assert cache == "b'TRT-'" or trt_version == 11


def test_impossible_precisions_are_reported(scenario: Callable[[str], str], trt_version: int) -> None:
    said = scenario("""
def attempt(**options):
    print(error_of(lambda: build_engine(conv(2), TrtOptions(config=ConfigOptions(**options)))))
attempt(tactic_sources=["nonesuch"])
attempt(fp8=True, graph_precision=True)
attempt(fp16=True, bf16=True, graph_precision=True)
attempt(profiling_verbosity="loud")
attempt(exclude_lean_runtime=True)
attempt(use_dla=True)
attempt(optimization_level=9)
attempt(calibrator="Nonesuch", int8=True)
""").splitlines()
    assert "--tactic-sources 'nonesuch': this TensorRT has " in said[0]
    assert "and this model has none" in said[1]
    assert "choose one" in said[2]
    assert "this TensorRT has LAYER_NAMES_ONLY" in said[3] or "DETAILED" in said[3]
    assert "goes with --version-compatible" in said[4]
    assert "no DLA core" in said[5]
    assert "0 to 5" in said[6]
    assert "--calib-base-cls Nonesuch" in said[7]


def test_the_precision_of_a_layer_by_constraints_on_10_and_by_casts_on_11(
    scenario: Callable[[str], str], trt_version: int
) -> None:
    said = scenario(
        HEADER
        + """
def built(constraint, precisions, **config):
    found, layers, told = header(TrtOptions(
        config=ConfigOptions(precision_constraints=constraint, **config),
        network=NetworkOptions(layer_precisions=precisions)))
    flags = [flag.partition("_")[0] for flag in found["flags"] if "CONSTRAINTS" in flag]
    print(*flags, layers["conv"], layers["relu"], "TF32" in found["flags"])
for constraint in (None, "prefer", "obey"):
    built(constraint, {"re*": "float32"}, fp16=True, tf32=True)
built("prefer", {"conv": "fp16"}, fp16=trt.__version__ < "11")
print(error_of(lambda: built("obey", {"nothing": "fp16"}, fp16=True)))
"""
    ).splitlines()
    kept = "HALF FLOAT True"
    if trt_version == 10:
        assert said[:3] == ["HALF HALF True", f"PREFER {kept}", f"OBEY {kept}"]
        assert said[3] == "PREFER HALF HALF False"
    else:
        assert said[:3] == [kept, kept, kept]
        assert said[3] == "HALF FLOAT False"
    assert "nothing" in said[4] and said[4].startswith("UsageError")


def test_quantised_models_are_unchanged(scenario: Callable[[str], str]) -> None:
    said = scenario(
        HEADER
        + """
def quantised(kind):
    ends = [value("x", [2, 4]), value("y", [2, 4])]
    weights = [numpy_helper.from_array(np.array(0.5, "f"), "s"), helper.make_tensor("z", kind, [], [0])]
    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], "q"),
             helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"], "dq"),
             helper.make_node("Relu", ["d"], ["y"], "relu")]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    return Loadable(data=model.SerializeToString())
strong = NetworkOptions(strongly_typed=True)
for kind, option in ((TensorProto.INT8, "int8"), (TensorProto.FLOAT8E4M3FN, "fp8")):
    options = TrtOptions(config=ConfigOptions(**{option: True}), network=strong)
    found, layers, told = header(options, quantised(kind))
    print([layer["kind"] for layer in found["layers"]], told)
"""
    ).splitlines()
    assert said[0] == (
        "['QUANTIZE', 'DEQUANTIZE', 'ACTIVATION'] "
        "['INT8: the model has quantisation nodes of its own; nothing is calibrated.']"
    )
    assert said[1] == "['QUANTIZE', 'DEQUANTIZE', 'ACTIVATION'] []"


def test_an_exact_name_takes_precedence_over_a_pattern(scenario: Callable[[str], str]) -> None:
    said = scenario(
        HEADER
        + """
nodes = [helper.make_node("Exp", ["x"], ["a"], "n[0]"), helper.make_node("Neg", ["a"], ["y"], "n0")]
model = bytes_of(nodes, [value("x", [2, 3])], [value("y", [2, 3])])
for name in ("n[0]", "n[0-9]"):
    config = ConfigOptions(fp16=True, precision_constraints="obey")
    network = NetworkOptions(layer_precisions={name: "fp32"})
    found, layers, told = header(TrtOptions(config=config, network=network), model)
    print(layers["n[0]"], layers["n0"])
"""
    )
    assert said.splitlines() == ["FLOAT HALF", "HALF FLOAT"]
