"""Tactics, timing caches and the faults that can be injected."""

import json
from collections.abc import Callable

import pytest
from trt.conftest import ON_10, ON_11
from trt.scenario import MODEL

RunIn = Callable[..., str]
BUILDS = (
    MODEL
    + """
import onnxruntime
x = np.random.default_rng(1).normal(size=(1, 3, 8, 8)).astype("f")
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
truth = session.run(None, {"x": x})[0]
def error(config=None, builder=None, network=None):
    if builder is None:
        builder, network, _, _ = parsed()
        config = configured(builder)
    data = builder.build_serialized_network(network, config)
    return np.abs(run(loaded(bytes(data)).create_execution_context(), x) - truth).max() if data is not None else None
def cached(flag=True, data=b""):
    builder, network, _, _ = parsed()
    config = configured(builder)
    if flag:
        config.set_flag(trt.BuilderFlag.EDITABLE_TIMING_CACHE)
    cache = config.create_timing_cache(data)
    assert config.set_timing_cache(cache, False)
    return builder, network, config, cache
"""
)
BAD = json.dumps({"seed": 7, "bad_tactic": {"layers": ["conv"], "probability": 0.3, "scale": 1.5}})


@ON_10
def test_a_bad_tactic_is_drawn_at_the_requested_rate(in_fake: RunIn) -> None:
    said = in_fake(BUILDS + "print(sum(error() > 0.1 for _ in range(40)))", LAYERWISE_FAKE_TRT_FAULTS=BAD)
    assert 4 <= int(said) <= 20  # 40 draws at 0.3: outside with probability below 0.01; the seed fixes the draws


@ON_11
def test_a_draw_file_continues_a_seed_across_processes(in_fake: RunIn) -> None:
    fault = json.dumps({**json.loads(BAD), "draws": "draws.txt"})
    found = [in_fake(BUILDS + "print(error() > 0.1)", LAYERWISE_FAKE_TRT_FAULTS=fault) for _ in range(8)]
    assert set(found) == {"True\n", "False\n"}


def test_a_timing_cache_repeats_the_tactics_of_the_build_that_filled_it(in_fake: RunIn) -> None:
    said = in_fake(
        BUILDS
        + """
seen = set()
for _ in range(12):
    builder, network, config, cache = cached(False)
    first = error(config, builder, network)
    data = bytes(cache.serialize())
    builder, network, config, _ = cached(False, data)
    assert error(config, builder, network) == first
    seen.add(first > 0.1)
print(sorted(map(bool, seen)))
""",
        LAYERWISE_FAKE_TRT_FAULTS=BAD,
    )
    assert said == "[False, True]\n"


def test_tactics_are_chosen_through_the_editable_timing_cache(in_fake: RunIn) -> None:
    said = in_fake(
        BUILDS
        + """
import re
builder, network, config, cache = cached()
error(config, builder, network)
lines = [text for level, text in logger.lines if level == "VERBOSE"]
log = chr(10).join(lines)
key = trt.TimingCacheKey.parse(re.search(r"op conv\\(key: (0x[0-9a-f]{32})", log)[1])
tactics = sorted(re.findall(r"(fake_convolution_\\d), (0x[0-9a-f]+)", log))
tactics = [int(tactic, 16) for _kernel, tactic in tactics]
print(len(tactics), len(cache.queryKeys()), cache.query(key).tacticHash in tactics)
for tactic in tactics:
    assert cache.update(key, trt.TimingCacheValue(tactic, 0.5))
    builder, network, config, _ = cached(data=bytes(cache.serialize()))
    config.set_flag(trt.BuilderFlag.ERROR_ON_TIMING_CACHE_MISS)
    print(error(config, builder, network) > 0.1)
cache.update(key, trt.TimingCacheValue(12345, 0.5))
builder, network, config, _ = cached(data=bytes(cache.serialize()))
print(error(config, builder, network), "Could not find any implementation" in logger.lines[-1][1])
print(cache.update(key, trt.TimingCacheValue(tactics[0], float("nan"))), len(cache.queryKeys()))
print(cache.update(key, trt.TimingCacheValue(tactics[0], 1.0)))
builder, network, config, _ = cached(data=bytes(cache.serialize()))
config.set_flag(trt.BuilderFlag.ERROR_ON_TIMING_CACHE_MISS)
print(error(config, builder, network), "miss" in logger.lines[-1][1], config.create_timing_cache(b"rubbish"))
""",
        LAYERWISE_FAKE_TRT_FAULTS=BAD,
    )
    assert said.splitlines() == [
        "3 2 True", "False", "False", "True", "None True", "True 1", "False", "None True None",
    ]  # fmt: skip


@pytest.mark.parametrize(("layers", "found"), [(["nothing"], "False"), (["conv"], "True"), (["c*", "relu"], "True")])
def test_coarse_fp16_only_shows_where_the_layer_runs_in_fp16(in_fake: RunIn, layers: list[str], found: str) -> None:
    said = in_fake(
        BUILDS
        + """
from onnx import TensorProto
def half():
    nodes = [helper.make_node("Cast", ["x"], ["h"], "down", to=10),
        helper.make_node("Conv", ["h", "w"], ["c"], "conv"), helper.make_node("Relu", ["c"], ["r"], "relu"),
        helper.make_node("Cast", ["r"], ["y"], "up", to=1)]
    graph = helper.make_graph(nodes, "g", list(model.graph.input), list(model.graph.output),
        [numpy_helper.from_array(weights.astype(np.float16), "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
print(error() > 1e-5)
model = half()
print(error() > 0.05)
""",
        LAYERWISE_FAKE_TRT_FAULTS=json.dumps({"fp16": {"layers": layers, "bits": 3}}),
    )
    assert said.split() == ["False", found]


def test_on_10_the_flags_and_the_precision_of_a_layer_decide_it(in_fake: RunIn, trt_version: int) -> None:
    if trt_version != 10:
        assert in_fake("import tensorrt as trt; print(hasattr(trt.BuilderFlag, 'FP16'))") == "False\n"
        return
    said = in_fake(
        BUILDS
        + """
def half(*held):
    builder, network, _, _ = parsed()
    config = configured(builder)
    config.set_flag(trt.BuilderFlag.FP16)
    config.set_flag(trt.BuilderFlag.OBEY_PRECISION_CONSTRAINTS)
    for layer in network:
        if layer.name in held:
            layer.precision = trt.float32
            layer.set_output_type(0, trt.float32)
    return error(config, builder, network)
print(half() > 0.05, half("conv") > 0.05, half("relu") > 0.05, 0 < half("conv") < 0.01)
""",
        LAYERWISE_FAKE_TRT_FAULTS=json.dumps({"fp16": {"layers": ["conv"], "bits": 3}}),
    )
    assert said.split() == ["True", "False", "True", "True"]


def test_an_unsupported_node_is_reported_with_its_name_operator_and_reason(in_fake: RunIn) -> None:
    said = in_fake(
        MODEL
        + """
builder, network, parser, good = parsed()
error = parser.get_error(0)
print(good, parser.num_errors, error.node(), error.node_name(), error.node_operator(), error.code().name, error.desc())
print(parser.supports_model_v2(model.SerializeToString()), parser.num_subgraphs,
    [(parser.get_subgraph_nodes(i), parser.is_subgraph_supported(i)) for i in range(parser.num_subgraphs)])
print(parser.supports_operator("Relu"), parser.supports_operator("Conv"))
""",
        LAYERWISE_FAKE_TRT_FAULTS='{"unsupported_ops": ["Relu"]}',
    )
    assert said.splitlines() == [
        "False 1 1 relu Relu UNSUPPORTED_NODE No importer registered for op: Relu",
        "False 2 [([0], True), ([1], False)]",
        "False True",
    ]


def test_an_injected_build_failure_occurs(in_fake: RunIn) -> None:
    fault = '{"fail_build": "no luck"}'
    said = in_fake(BUILDS + "print(error(), logger.lines[-1][1])", LAYERWISE_FAKE_TRT_FAULTS=fault)
    assert said.startswith("None") and "no luck" in said


def test_on_10_the_algorithm_selector_picks_the_tactic(in_fake: RunIn, trt_version: int) -> None:
    if trt_version != 10:
        assert in_fake("import tensorrt as trt; print(hasattr(trt, 'IAlgorithmSelector'))") == "False\n"
        return
    said = in_fake(
        BUILDS
        + """
class Selector(trt.IAlgorithmSelector):
    def __init__(self, at):
        trt.IAlgorithmSelector.__init__(self)
        self.at, self.seen = at, []
    def select_algorithms(self, context, choices):
        assert context.num_inputs == 1 and choices[0].get_algorithm_io_info(0).dtype == trt.float32
        return [self.at]
    def report_algorithms(self, contexts, choices):
        self.seen += [(c.name, a.algorithm_variant.tactic) for c, a in zip(contexts, choices)]
def built_by(selector):
    builder, network, _, _ = parsed()
    config = configured(builder)
    config.algorithm_selector = selector
    return error(config, builder, network) > 0.1, selector.seen
good, bad = built_by(Selector(0)), built_by(Selector(2))
print(good[0], bad[0], [name for name, _ in good[1]], good[1] == built_by(Selector(0))[1], good[1] != bad[1])
""",
        LAYERWISE_FAKE_TRT_FAULTS=BAD,
    )
    assert said == "False True ['conv', 'relu'] True True\n"
